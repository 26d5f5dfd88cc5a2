-- What pg_dump keeps, and who may come in. Runs last.

-- pg_dump leaves out the rows of an extension's tables unless they are marked; referenced tables come first.
select pg_catalog.pg_extension_config_dump('pgflow.flows', '');
select pg_catalog.pg_extension_config_dump('pgflow.steps', '');
select pg_catalog.pg_extension_config_dump('pgflow.deps', '');
select pg_catalog.pg_extension_config_dump('pgflow.workers', '');
select pg_catalog.pg_extension_config_dump('pgflow.worker_functions', '');
select pg_catalog.pg_extension_config_dump('pgflow.runs', '');
select pg_catalog.pg_extension_config_dump('pgflow.step_states', '');
select pg_catalog.pg_extension_config_dump('pgflow.step_tasks', '');

comment on schema pgflow is 'pgflow: workflows (DAGs of steps) on PGMQ queues.';

-- USAGE on the schema is the gate: functions keep PostgreSQL's EXECUTE for PUBLIC, tables grant nothing. A role with
-- USAGE alone can start and read runs with start_flow_with_states and get_run_with_states, and do nothing more.
revoke all on schema pgflow from public;
