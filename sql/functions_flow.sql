-- Definition: create_flow and add_step.
--
-- In all functions_*.sql: functions are volatile, parallel unsafe and not strict unless they say so, and every one
-- has the same search_path, so that no object of another schema is ever used in place of ours.

create or replace function pgflow.create_flow(
  flow_slug     text,
  max_attempts  integer  default null,
  base_delay    integer  default null,
  timeout       integer  default null
)
returns pgflow.flows
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'create_flow_wrapper';

comment on function pgflow.create_flow is
'Creates a flow and its queue lower(flow_slug); returns the flow. Defaults: 3 attempts, base_delay 5 s, timeout 60 s. Repeating it changes no row and creates the queue if it is missing. Errors: 23505 when another flow''s slug differs only in case or the queue exists already, 23514 for an invalid slug or option, 22023 for a slug over 47 characters, which no queue can have.';

create or replace function pgflow.add_step(
  flow_slug                text,
  step_slug                text,
  deps_slugs               text[]   default '{}',
  max_attempts             integer  default null,
  base_delay               integer  default null,
  timeout                  integer  default null,
  start_delay              integer  default null,
  step_type                text     default 'single',
  required_input_pattern   jsonb    default null,
  forbidden_input_pattern  jsonb    default null,
  when_unmet               text     default 'skip',
  when_exhausted           text     default 'fail'
)
returns pgflow.steps
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'add_step_wrapper';

comment on function pgflow.add_step is
'Adds a step after the flow''s last one; returns the step. base_delay, timeout and start_delay are seconds; NULL options are the flow''s. Repeating it changes nothing, whatever the other arguments. Errors: 23503 for an unknown flow or dependency, 23514 for an invalid slug or option or a step that depends on itself, 22023 for a map with more than one dependency.';
