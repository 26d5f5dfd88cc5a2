-- Runs: starting and showing them, and the moves that take a run forward. Every verb makes those moves by itself;
-- they can be called by hand and change nothing when there is nothing to do.

create or replace function pgflow.start_flow(
  flow_slug  text,
  input      jsonb,
  run_id     uuid  default null
)
returns setof pgflow.runs
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'start_flow_wrapper';

comment on function pgflow.start_flow is
'Starts a run and the steps that are ready; returns the run. run_id NULL is generated. Errors: 23503 for an unknown flow, 23502 for NULL input, 22023 for an input that is no array where a map step needs one, 23505 for a run_id that exists.';

create or replace function pgflow.start_flow_with_states(
  flow_slug  text,
  input      jsonb,
  run_id     uuid  default null
)
returns jsonb
language c
security definer
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'start_flow_with_states_wrapper';

comment on function pgflow.start_flow_with_states is
'As start_flow, with the same errors; returns {"run": row, "steps": [rows]}. Runs with its owner''s rights: the caller needs only USAGE on the schema.';

create or replace function pgflow.get_run_with_states(run_id uuid)
returns jsonb
language c
security definer
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'get_run_with_states_wrapper';

comment on function pgflow.get_run_with_states is
'Shows a run as {"run": row, "steps": [rows]}; NULL for an unknown run. Runs with its owner''s rights: the caller needs only USAGE on the schema.';

create or replace function pgflow.start_ready_steps(run_id uuid)
returns void
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'start_ready_steps_wrapper';

comment on function pgflow.start_ready_steps is
'Starts the steps of a run that wait for nothing and have tasks, and sends a message for each task. Does nothing on a run that has ended.';

create or replace function pgflow.cascade_complete_taskless_steps(run_id uuid)
returns integer
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'cascade_complete_taskless_steps_wrapper';

comment on function pgflow.cascade_complete_taskless_steps is
'Completes ready steps without tasks, such as a map over an empty array, and those that become so by it; returns how many.';

create or replace function pgflow.maybe_complete_run(run_id uuid)
returns void
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'maybe_complete_run_wrapper';

comment on function pgflow.maybe_complete_run is
'Completes a started run when no step remains. Its output is the object of the outputs of completed steps that nothing depends on.';

create or replace function pgflow.cascade_resolve_conditions(run_id uuid)
returns boolean
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'cascade_resolve_conditions_wrapper';

comment on function pgflow.cascade_resolve_conditions is
'Judges the conditions of ready steps, and of those that become ready by it: an unmet one fails the run or skips the step, as its when_unmet says. False when the run has failed. Error 42704 for an unknown run.';

create or replace function pgflow._cascade_force_skip_steps(
  run_id       uuid,
  step_slug    text,
  skip_reason  text
)
returns integer
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', '_cascade_force_skip_steps_wrapper';

comment on function pgflow._cascade_force_skip_steps is
'Skips a step and everything that depends on it, with their unfinished tasks; returns the number of steps skipped. Internal. Error 42704 for an unknown run.';
