-- Compilation: a worker brings the shape of its flow (steps, types, dependencies, conditions) and has it created or
-- compared with the stored one. delete_flow_and_data removes a flow with everything that belongs to it.

create or replace function pgflow._get_flow_shape(p_flow_slug text)
returns jsonb
language c
stable
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', '_get_flow_shape_wrapper';

comment on function pgflow._get_flow_shape is
'Shape of a stored flow: steps in their order, dependencies sorted, no options; {"steps": []} for an unknown flow. Internal.';

create or replace function pgflow._compare_flow_shapes(
  p_local  jsonb,
  p_db     jsonb
)
returns text[]
language c
stable
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', '_compare_flow_shapes_wrapper';

comment on function pgflow._compare_flow_shapes is
'Differences of two shapes in words, empty when they are equal. Options are not compared. Internal.';

create or replace function pgflow._create_flow_from_shape(
  p_flow_slug  text,
  p_shape      jsonb
)
returns void
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', '_create_flow_from_shape_wrapper';

comment on function pgflow._create_flow_from_shape is
'Creates a flow and its steps from a shape, with the errors of create_flow and add_step. Internal.';

create or replace function pgflow.ensure_flow_compiled(
  flow_slug  text,
  shape      jsonb
)
returns jsonb
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'ensure_flow_compiled_wrapper';

comment on function pgflow.ensure_flow_compiled is
'Creates a flow from a shape, or compares the shape with the stored flow. Returns {"status", "differences"}; status is compiled, verified, mismatch (nothing changed) or, where is_local(), recompiled: the old flow was deleted with all its runs and created anew.';

create or replace function pgflow.is_local()
returns boolean
language c
stable
parallel safe
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'is_local_wrapper';

comment on function pgflow.is_local is
'Whether this is a local Supabase: the setting app.settings.jwt_secret has the public default of the Supabase CLI.';

create or replace function pgflow.delete_flow_and_data(p_flow_slug text)
returns void
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'delete_flow_and_data_wrapper';

comment on function pgflow.delete_flow_and_data is
'Deletes a flow with its steps, runs and tasks, and drops its queues with their archives. Does nothing to a queue unless the flow exists in exactly this spelling. Error 42725 when a queue is listed in more than one spelling; then nothing is deleted.';
