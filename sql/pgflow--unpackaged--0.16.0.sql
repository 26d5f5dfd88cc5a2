-- The tables, the type and the functions of a pgflow 0.16.0 that was installed by migrations become members of the
-- extension, with their data, owners and privileges. What users added to the schema does not, prune_data_older_than
-- among it.
\echo Use "ALTER EXTENSION pgflow UPDATE" to load this file. \quit

set local search_path to pg_catalog, pg_temp;

-- No lock is waited for longer than 10 s; a shorter limit of the caller's stays.
select set_config('lock_timeout', '10s', true)
from pg_settings
where name = 'lock_timeout' and (setting = '0' or setting::integer > 10000);

lock table pgflow.flows, pgflow.steps, pgflow.deps, pgflow.runs, pgflow.step_states, pgflow.step_tasks,
  pgflow.workers, pgflow.worker_functions
  in access exclusive mode;

alter extension pgflow add table pgflow.flows;
alter extension pgflow add table pgflow.steps;
alter extension pgflow add table pgflow.deps;
alter extension pgflow add table pgflow.workers;
alter extension pgflow add table pgflow.worker_functions;
alter extension pgflow add table pgflow.runs;
alter extension pgflow add table pgflow.step_states;
alter extension pgflow add table pgflow.step_tasks;
alter extension pgflow add type  pgflow.step_task_record;

alter extension pgflow add function pgflow._archive_task_message(uuid, text, integer);
alter extension pgflow add function pgflow._cascade_force_skip_steps(uuid, text, text);
alter extension pgflow add function pgflow._compare_flow_shapes(jsonb, jsonb);
alter extension pgflow add function pgflow._create_flow_from_shape(text, jsonb);
alter extension pgflow add function pgflow._get_flow_shape(text);
alter extension pgflow add function pgflow.add_step(text, text, text[], integer, integer, integer, integer, text, jsonb, jsonb, text, text);
alter extension pgflow add function pgflow.calculate_retry_delay(numeric, integer);
alter extension pgflow add function pgflow.cascade_complete_taskless_steps(uuid);
alter extension pgflow add function pgflow.cascade_resolve_conditions(uuid);
alter extension pgflow add function pgflow.cleanup_ensure_workers_logs(integer);
alter extension pgflow add function pgflow.complete_task(uuid, text, integer, jsonb);
alter extension pgflow add function pgflow.create_flow(text, integer, integer, integer);
alter extension pgflow add function pgflow.delete_flow_and_data(text);
alter extension pgflow add function pgflow.ensure_flow_compiled(text, jsonb);
alter extension pgflow add function pgflow.ensure_workers();
alter extension pgflow add function pgflow.fail_task(uuid, text, integer, text);
alter extension pgflow add function pgflow.get_run_with_states(uuid);
alter extension pgflow add function pgflow.is_local();
alter extension pgflow add function pgflow.is_valid_slug(text);
alter extension pgflow add function pgflow.mark_worker_stopped(uuid);
alter extension pgflow add function pgflow.maybe_complete_run(uuid);
alter extension pgflow add function pgflow.poll_for_tasks(text, integer, integer, integer, integer);
alter extension pgflow add function pgflow.requeue_stalled_tasks();
alter extension pgflow add function pgflow.set_vt_batch(text, bigint[], integer[]);
alter extension pgflow add function pgflow.setup_ensure_workers_cron(text);
alter extension pgflow add function pgflow.setup_requeue_stalled_tasks_cron(text);
alter extension pgflow add function pgflow.start_flow(text, jsonb, uuid);
alter extension pgflow add function pgflow.start_flow_with_states(text, jsonb, uuid);
alter extension pgflow add function pgflow.start_ready_steps(uuid);
alter extension pgflow add function pgflow.start_tasks(text, bigint[], uuid);
alter extension pgflow add function pgflow.track_worker_function(text, text);

select pg_extension_config_dump('pgflow.flows', '');
select pg_extension_config_dump('pgflow.steps', '');
select pg_extension_config_dump('pgflow.deps', '');
select pg_extension_config_dump('pgflow.workers', '');
select pg_extension_config_dump('pgflow.worker_functions', '');
select pg_extension_config_dump('pgflow.runs', '');
select pg_extension_config_dump('pgflow.step_states', '');
select pg_extension_config_dump('pgflow.step_tasks', '');
