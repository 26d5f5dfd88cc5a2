-- pgflow 0.16.0 as an extension: its tables, type and function signatures. It is a place to upgrade from: functions
-- raise an error until ALTER EXTENSION pgflow UPDATE has been run.
\echo Use "CREATE EXTENSION pgflow VERSION '0.16.0'" to load this file. \quit

create function pgflow.is_valid_slug(slug text)
returns boolean
language sql
immutable
set search_path to ''
as $$
  select coalesce(slug ~ '^[A-Za-z_][A-Za-z0-9_]*$' and length(slug) <= 128 and slug <> 'run', false)
$$;

create table pgflow.flows (
  flow_slug         text         not null,
  opt_max_attempts  integer      not null  default 3,
  opt_base_delay    integer      not null  default 1,
  opt_timeout       integer      not null  default 60,
  created_at        timestamptz  not null  default now(),

  constraint flows_pkey                       primary key (flow_slug),
  constraint slug_is_valid                    check (pgflow.is_valid_slug(flow_slug)),
  constraint opt_max_attempts_is_nonnegative  check (opt_max_attempts >= 0),
  constraint opt_base_delay_is_nonnegative    check (opt_base_delay >= 0),
  constraint opt_timeout_is_positive          check (opt_timeout > 0)
);

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

  constraint steps_pkey                         primary key (flow_slug, step_slug),
  constraint steps_flow_slug_step_index_key     unique (flow_slug, step_index),
  constraint steps_flow_slug_fkey               foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint steps_step_slug_check              check (pgflow.is_valid_slug(step_slug)),
  constraint steps_step_type_check              check (step_type in ('single', 'map')),
  constraint steps_deps_count_check             check (deps_count >= 0),
  constraint opt_max_attempts_is_nonnegative    check (opt_max_attempts is null or opt_max_attempts >= 0),
  constraint opt_base_delay_is_nonnegative      check (opt_base_delay is null or opt_base_delay >= 0),
  constraint opt_timeout_is_positive            check (opt_timeout is null or opt_timeout > 0),
  constraint opt_start_delay_is_nonnegative     check (opt_start_delay is null or opt_start_delay >= 0),
  constraint required_input_pattern_is_object   check (
    required_input_pattern is null or jsonb_typeof(required_input_pattern) = 'object'
  ),
  constraint forbidden_input_pattern_is_object  check (
    forbidden_input_pattern is null or jsonb_typeof(forbidden_input_pattern) = 'object'
  ),
  constraint when_unmet_is_valid                check (when_unmet in ('fail', 'skip', 'skip-cascade')),
  constraint when_exhausted_is_valid            check (when_exhausted in ('fail', 'skip', 'skip-cascade'))
);

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

create table pgflow.workers (
  worker_id          uuid         not null,
  queue_name         text         not null,
  function_name      text         not null,
  started_at         timestamptz  not null  default now(),
  deprecated_at      timestamptz,
  last_heartbeat_at  timestamptz  not null  default now(),
  stopped_at         timestamptz,

  constraint workers_pkey primary key (worker_id)
);

create index idx_workers_queue_name on pgflow.workers (queue_name);
create index idx_workers_heartbeat  on pgflow.workers (last_heartbeat_at);

create table pgflow.worker_functions (
  function_name    text         not null,
  enabled          boolean      not null  default true,
  debounce         interval     not null  default interval '6 seconds',
  last_invoked_at  timestamptz,
  created_at       timestamptz  not null  default now(),
  updated_at       timestamptz  not null  default now(),
  start_mode       text         not null  default 'http',

  constraint worker_functions_pkey              primary key (function_name),
  constraint worker_functions_debounce_check    check (debounce >= interval '1 second'),
  constraint worker_functions_start_mode_check  check (start_mode in ('http', 'process'))
);

comment on table  pgflow.worker_functions                 is 'Functions to keep alive.';
comment on column pgflow.worker_functions.function_name   is 'Its name.';
comment on column pgflow.worker_functions.enabled         is 'Whether to call it.';
comment on column pgflow.worker_functions.debounce        is 'Time between two calls.';
comment on column pgflow.worker_functions.last_invoked_at is 'Its last call.';
comment on column pgflow.worker_functions.created_at      is 'Its first registration.';

create table pgflow.runs (
  run_id           uuid         not null  default gen_random_uuid(),
  flow_slug        text         not null,
  status           text         not null  default 'started',
  input            jsonb        not null,
  output           jsonb,
  remaining_steps  integer      not null  default 0,
  started_at       timestamptz  not null  default now(),
  completed_at     timestamptz,
  failed_at        timestamptz,

  constraint runs_pkey                         primary key (run_id),
  constraint runs_flow_slug_fkey               foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint status_is_valid                   check (status in ('started', 'failed', 'completed')),
  constraint runs_remaining_steps_check        check (remaining_steps >= 0),
  constraint completed_at_or_failed_at         check (not (completed_at is not null and failed_at is not null)),
  constraint completed_at_is_after_started_at  check (completed_at is null or completed_at >= started_at),
  constraint failed_at_is_after_started_at     check (failed_at is null or failed_at >= started_at)
);

create index idx_runs_flow_slug on pgflow.runs (flow_slug);
create index idx_runs_status    on pgflow.runs (status);

create table pgflow.step_states (
  flow_slug        text         not null,
  run_id           uuid         not null,
  step_slug        text         not null,
  status           text         not null  default 'created',
  remaining_tasks  integer,
  remaining_deps   integer      not null  default 0,
  created_at       timestamptz  not null  default now(),
  started_at       timestamptz,
  completed_at     timestamptz,
  failed_at        timestamptz,
  error_message    text,
  initial_tasks    integer,
  output           jsonb,
  skip_reason      text,
  skipped_at       timestamptz,

  constraint step_states_pkey                         primary key (run_id, step_slug),
  constraint step_states_flow_slug_fkey               foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint step_states_run_id_fkey                  foreign key (run_id) references pgflow.runs (run_id),
  constraint step_states_flow_slug_step_slug_fkey     foreign key (flow_slug, step_slug)
                                                        references pgflow.steps (flow_slug, step_slug),
  constraint status_is_valid                          check (
    status in ('created', 'started', 'completed', 'failed', 'skipped')
  ),
  constraint step_states_initial_tasks_check          check (initial_tasks is null or initial_tasks >= 0),
  constraint step_states_remaining_deps_check         check (remaining_deps >= 0),
  constraint initial_tasks_known_when_started         check (status <> 'started' or initial_tasks is not null),
  constraint remaining_tasks_state_consistency        check (
    remaining_tasks is null or status not in ('created', 'skipped')
  ),
  constraint status_and_remaining_tasks_match         check (status <> 'completed' or remaining_tasks = 0),
  constraint output_only_for_completed_or_null        check (output is null or status = 'completed'),
  constraint skip_reason_matches_status               check (
    (status = 'skipped' and skip_reason is not null) or (status <> 'skipped' and skip_reason is null)
  ),
  constraint completed_at_or_failed_at_or_skipped_at  check (
    case when completed_at is not null then 1 else 0 end
    + case when failed_at is not null then 1 else 0 end
    + case when skipped_at is not null then 1 else 0 end
    <= 1
  ),
  constraint started_at_is_after_created_at           check (started_at is null or started_at >= created_at),
  constraint completed_at_is_after_started_at         check (completed_at is null or completed_at >= started_at),
  constraint failed_at_is_after_started_at            check (failed_at is null or failed_at >= started_at),
  constraint skipped_at_is_after_created_at           check (skipped_at is null or skipped_at >= created_at)
);

create index idx_step_states_ready     on pgflow.step_states (run_id, status, remaining_deps)
                                       where status = 'created' and remaining_deps = 0;
create index idx_step_states_failed    on pgflow.step_states (run_id, step_slug) where status = 'failed';
create index idx_step_states_skipped   on pgflow.step_states (run_id, step_slug) where status = 'skipped';
create index idx_step_states_flow_slug on pgflow.step_states (flow_slug);
create index idx_step_states_run_id    on pgflow.step_states (run_id);

create table pgflow.step_tasks (
  flow_slug               text         not null,
  run_id                  uuid         not null,
  step_slug               text         not null,
  message_id              bigint,
  task_index              integer      not null  default 0,
  status                  text         not null  default 'queued',
  attempts_count          integer      not null  default 0,
  error_message           text,
  output                  jsonb,
  queued_at               timestamptz  not null  default now(),
  completed_at            timestamptz,
  failed_at               timestamptz,
  started_at              timestamptz,
  last_worker_id          uuid,
  requeued_count          integer      not null  default 0,
  last_requeued_at        timestamptz,
  permanently_stalled_at  timestamptz,

  constraint step_tasks_pkey                   primary key (run_id, step_slug, task_index),
  constraint step_tasks_flow_slug_fkey         foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint step_tasks_run_id_fkey            foreign key (run_id) references pgflow.runs (run_id),
  constraint step_tasks_run_id_step_slug_fkey  foreign key (run_id, step_slug)
                                                 references pgflow.step_states (run_id, step_slug),
  constraint step_tasks_last_worker_id_fkey    foreign key (last_worker_id)
                                                 references pgflow.workers (worker_id) on delete set null,
  constraint valid_status                      check (
    status in ('queued', 'started', 'completed', 'failed', 'skipped', 'cancelled')
  ),
  constraint attempts_count_nonnegative        check (attempts_count >= 0),
  constraint output_valid_only_for_completed   check (output is null or status in ('completed', 'failed')),
  constraint completed_at_or_failed_at         check (not (completed_at is not null and failed_at is not null)),
  constraint started_at_is_after_queued_at     check (started_at is null or started_at >= queued_at),
  constraint completed_at_is_after_queued_at   check (completed_at is null or completed_at >= queued_at),
  constraint failed_at_is_after_queued_at      check (failed_at is null or failed_at >= queued_at),
  constraint completed_at_is_after_started_at  check (
    completed_at is null or started_at is null or completed_at >= started_at
  ),
  constraint failed_at_is_after_started_at     check (
    failed_at is null or started_at is null or failed_at >= started_at
  )
);

create index idx_step_tasks_message_id    on pgflow.step_tasks (message_id);
create index idx_step_tasks_queued_msg    on pgflow.step_tasks (message_id) where status = 'queued';
create index idx_step_tasks_queued        on pgflow.step_tasks (run_id, step_slug) where status = 'queued';
create index idx_step_tasks_completed     on pgflow.step_tasks (run_id, step_slug) where status = 'completed';
create index idx_step_tasks_failed        on pgflow.step_tasks (run_id, step_slug) where status = 'failed';
create index idx_step_tasks_started       on pgflow.step_tasks (started_at) where status = 'started';
create index idx_step_tasks_last_worker   on pgflow.step_tasks (last_worker_id) where status = 'started';
create index idx_step_tasks_flow_run_step on pgflow.step_tasks (flow_slug, run_id, step_slug);

create type pgflow.step_task_record as (
  flow_slug   text,
  run_id      uuid,
  step_slug   text,
  input       jsonb,
  msg_id      bigint,
  task_index  integer,
  flow_input  jsonb
);

do $do$
declare
  -- A line per function: what stands between its name and its body.
  declarations constant text := $$
    _archive_task_message(p_run_id uuid, p_step_slug text, p_task_index integer) returns void set search_path to ''
    _cascade_force_skip_steps(run_id uuid, step_slug text, skip_reason text) returns integer
    _compare_flow_shapes(p_local jsonb, p_db jsonb) returns text[] stable set search_path to ''
    _create_flow_from_shape(p_flow_slug text, p_shape jsonb) returns void set search_path to ''
    _get_flow_shape(p_flow_slug text) returns jsonb stable set search_path to ''
    add_step(flow_slug text, step_slug text, deps_slugs text[] default '{}', max_attempts integer default null, base_delay integer default null, timeout integer default null, start_delay integer default null, step_type text default 'single', required_input_pattern jsonb default null, forbidden_input_pattern jsonb default null, when_unmet text default 'skip', when_exhausted text default 'fail') returns pgflow.steps set search_path to ''
    calculate_retry_delay(base_delay numeric, attempts_count integer) returns integer immutable parallel safe set search_path to ''
    cascade_complete_taskless_steps(run_id uuid) returns integer
    cascade_resolve_conditions(run_id uuid) returns boolean set search_path to ''
    cleanup_ensure_workers_logs(retention_hours integer default 24) returns table (cron_deleted bigint) security definer set search_path to pgflow, cron, pg_temp
    complete_task(run_id uuid, step_slug text, task_index integer, output jsonb) returns setof pgflow.step_tasks set search_path to ''
    create_flow(flow_slug text, max_attempts integer default null, base_delay integer default null, timeout integer default null) returns pgflow.flows set search_path to ''
    delete_flow_and_data(p_flow_slug text) returns void set search_path to ''
    ensure_flow_compiled(flow_slug text, shape jsonb) returns jsonb set search_path to ''
    ensure_workers() returns table (function_name text, invoked boolean, request_id bigint)
    fail_task(run_id uuid, step_slug text, task_index integer, error_message text) returns setof pgflow.step_tasks set search_path to ''
    get_run_with_states(run_id uuid) returns jsonb security definer
    is_local() returns boolean stable parallel safe set search_path to ''
    mark_worker_stopped(worker_id uuid) returns void
    maybe_complete_run(run_id uuid) returns void set search_path to ''
    poll_for_tasks(queue_name text, vt integer, qty integer, max_poll_seconds integer default 5, poll_interval_ms integer default 100) returns setof pgflow.step_task_record set search_path to ''
    requeue_stalled_tasks() returns integer security definer set search_path to ''
    set_vt_batch(queue_name text, msg_ids bigint[], vt_offsets integer[]) returns table (msg_id bigint, read_ct integer, enqueued_at timestamptz, vt timestamptz, message jsonb, headers jsonb)
    setup_ensure_workers_cron(cron_interval text default '1 second') returns text security definer set search_path to pgflow, cron, pg_temp
    setup_requeue_stalled_tasks_cron(cron_interval text default '15 seconds') returns text security definer set search_path to pgflow, cron, pg_temp
    start_flow(flow_slug text, input jsonb, run_id uuid default null) returns setof pgflow.runs set search_path to ''
    start_flow_with_states(flow_slug text, input jsonb, run_id uuid default null) returns jsonb security definer
    start_ready_steps(run_id uuid) returns void set search_path to ''
    start_tasks(flow_slug text, msg_ids bigint[], worker_id uuid) returns setof pgflow.step_task_record set search_path to ''
    track_worker_function(function_name text, start_mode text default 'http') returns void
  $$;
  body constant text := $$
    begin
      raise exception 'the functions of pgflow 0.16.0 do nothing as an extension: upgrade first'
        using errcode = 'object_not_in_prerequisite_state', hint = 'ALTER EXTENSION pgflow UPDATE;';
    end
  $$;
  declaration text;
begin
  foreach declaration in array string_to_array(declarations, E'\n') loop
    if btrim(declaration) <> '' then
      execute format('create function pgflow.%s language plpgsql as %L', btrim(declaration), body);
    end if;
  end loop;
end
$do$;

comment on function pgflow.requeue_stalled_tasks            is 'Recovers stalled tasks.';
comment on function pgflow.setup_requeue_stalled_tasks_cron is 'Schedules the recovery of stalled tasks.';
comment on function pgflow.track_worker_function            is 'Registers a worker function.';
comment on function pgflow.mark_worker_stopped              is 'Records the end of a worker.';
comment on function pgflow.ensure_workers                   is 'Starts missing workers.';
comment on function pgflow.setup_ensure_workers_cron        is 'Schedules the start of missing workers.';
comment on function pgflow.cleanup_ensure_workers_logs      is 'Deletes old cron logs.';

select pg_catalog.pg_extension_config_dump('pgflow.flows', '');
select pg_catalog.pg_extension_config_dump('pgflow.steps', '');
select pg_catalog.pg_extension_config_dump('pgflow.deps', '');
select pg_catalog.pg_extension_config_dump('pgflow.workers', '');
select pg_catalog.pg_extension_config_dump('pgflow.worker_functions', '');
select pg_catalog.pg_extension_config_dump('pgflow.runs', '');
select pg_catalog.pg_extension_config_dump('pgflow.step_states', '');
select pg_catalog.pg_extension_config_dump('pgflow.step_tasks', '');
