-- Definitions: a flow is a graph of steps, deps are its edges. create_flow and add_step write them.
-- Options of a step that are NULL fall back to those of its flow, each time they are used.

create table pgflow.flows (
  flow_slug         text         not null,
  opt_max_attempts  integer      not null  default 3,
  opt_base_delay    integer      not null  default 1,
  opt_timeout       integer      not null  default 60,
  created_at        timestamptz  not null  default now(),

  constraint flows_pkey                        primary key (flow_slug),
  constraint slug_is_valid                     check (pgflow.is_valid_slug(flow_slug)),
  constraint opt_max_attempts_is_nonnegative   check (opt_max_attempts >= 0),
  constraint opt_base_delay_is_nonnegative     check (opt_base_delay >= 0),
  constraint opt_timeout_is_positive           check (opt_timeout > 0)
);

create unique index idx_flows_normalized_slug on pgflow.flows (lower(flow_slug));

comment on table  pgflow.flows                  is 'Flows that can be run.';
comment on column pgflow.flows.flow_slug        is 'Name of the flow, in the spelling it was created with.';
comment on column pgflow.flows.opt_max_attempts is 'How often a task is attempted before it fails.';
comment on column pgflow.flows.opt_base_delay   is 'Seconds that retries start from; see calculate_retry_delay. create_flow stores 5 where none is given.';
comment on column pgflow.flows.opt_timeout      is 'Seconds that an attempt may take.';
comment on index  pgflow.idx_flows_normalized_slug is
'Flows whose slugs differ only in case would share one queue, lower(flow_slug).';

create table pgflow.steps (
  flow_slug                text         not null,
  step_slug                text         not null,
  step_type                text         not null  default 'single',
  step_index               integer      not null  default 0,
  deps_count               integer      not null  default 0,
  opt_max_attempts         integer,
  opt_base_delay           integer,
  opt_timeout              integer,
  created_at               timestamptz  not null  default now(),
  opt_start_delay          integer,
  required_input_pattern   jsonb,
  forbidden_input_pattern  jsonb,
  when_unmet               text         not null  default 'skip',
  when_exhausted           text         not null  default 'fail',
  queue_name               text         not null,

  constraint steps_pkey                          primary key (flow_slug, step_slug),
  constraint steps_flow_slug_step_index_key      unique (flow_slug, step_index),
  constraint steps_flow_slug_fkey                foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint steps_step_slug_check               check (pgflow.is_valid_slug(step_slug)),
  constraint steps_step_type_check               check (step_type in ('single', 'map')),
  constraint steps_deps_count_check              check (deps_count >= 0),
  constraint opt_max_attempts_is_nonnegative     check (opt_max_attempts is null or opt_max_attempts >= 0),
  constraint opt_base_delay_is_nonnegative       check (opt_base_delay is null or opt_base_delay >= 0),
  constraint opt_timeout_is_positive             check (opt_timeout is null or opt_timeout > 0),
  constraint opt_start_delay_is_nonnegative      check (opt_start_delay is null or opt_start_delay >= 0),
  constraint required_input_pattern_is_object    check (
    required_input_pattern is null or jsonb_typeof(required_input_pattern) = 'object'
  ),
  constraint forbidden_input_pattern_is_object   check (
    forbidden_input_pattern is null or jsonb_typeof(forbidden_input_pattern) = 'object'
  ),
  constraint when_unmet_is_valid                 check (when_unmet in ('fail', 'skip', 'skip-cascade')),
  constraint when_exhausted_is_valid             check (when_exhausted in ('fail', 'skip', 'skip-cascade')),
  constraint queue_name_is_valid                 check (pgflow.is_valid_queue_name(queue_name))
);

comment on table  pgflow.steps                  is 'Steps of flows.';
comment on column pgflow.steps.step_type        is '"single": one task. "map": one task for each element of an array, which is the output of its only dependency or, without one, the run''s input.';
comment on column pgflow.steps.step_index       is 'Position in the flow in the order of definition, from 0.';
comment on column pgflow.steps.deps_count       is 'Number of its rows in deps as dependent step.';
comment on column pgflow.steps.opt_max_attempts is 'How often a task is attempted before it fails; NULL: as the flow.';
comment on column pgflow.steps.opt_base_delay   is 'Seconds that retries start from; NULL: as the flow.';
comment on column pgflow.steps.opt_timeout      is 'Seconds that an attempt may take; NULL: as the flow.';
comment on column pgflow.steps.opt_start_delay  is 'Seconds between the start of the step and its tasks becoming visible to workers; NULL: 0.';
comment on column pgflow.steps.required_input_pattern is
'The step runs only if its input contains this object (@>); NULL: no such condition. The input is the run''s input without dependencies, else an object of the outputs of completed dependencies.';
comment on column pgflow.steps.forbidden_input_pattern is
'The step runs only if its input does not contain this object; NULL: no such condition.';
comment on column pgflow.steps.when_unmet       is 'What an unmet condition does: fail the run, skip the step, or skip it with everything that depends on it.';
comment on column pgflow.steps.when_exhausted   is 'What a task without attempts left does: fail the run, skip the step, or skip it with everything that depends on it.';
comment on column pgflow.steps.queue_name       is 'PGMQ queue that new tasks of the step are sent to, in lower case. add_step stores lower(flow_slug).';

create table pgflow.deps (
  flow_slug   text         not null,
  dep_slug    text         not null,
  step_slug   text         not null,
  created_at  timestamptz  not null  default now(),

  constraint deps_pkey                      primary key (flow_slug, dep_slug, step_slug),
  constraint deps_flow_slug_fkey            foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint deps_flow_slug_dep_slug_fkey   foreign key (flow_slug, dep_slug)
                                              references pgflow.steps (flow_slug, step_slug),
  constraint deps_flow_slug_step_slug_fkey  foreign key (flow_slug, step_slug)
                                              references pgflow.steps (flow_slug, step_slug),
  constraint deps_check                     check (dep_slug <> step_slug)
);

create index idx_deps_by_flow_step on pgflow.deps (flow_slug, step_slug);
create index idx_deps_by_flow_dep  on pgflow.deps (flow_slug, dep_slug);

comment on table  pgflow.deps           is 'Edges of flows: step_slug waits for dep_slug and gets its output.';
comment on column pgflow.deps.dep_slug  is 'The step that must end first.';
comment on column pgflow.deps.step_slug is 'The step that waits.';
