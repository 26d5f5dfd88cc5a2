-- Recovery of stalled tasks, and keeping workers alive. pg_cron, pg_net and Vault are used where a function needs
-- them, and looked up when it is called: without them the call fails with an error that names what is missing.
-- The four security definer functions are maintenance: their owner grants them, PUBLIC does not have them.

create or replace function pgflow.requeue_stalled_tasks()
returns integer
language c
security definer
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'requeue_stalled_tasks_wrapper';

revoke execute on function pgflow.requeue_stalled_tasks from public;

comment on function pgflow.requeue_stalled_tasks is
'Queues tasks again that started longer ago than their timeout + 30 s, visible at once; after 3 times it archives the message and sets permanently_stalled_at. Returns the number queued again. Passes over rows that others have locked.';

create or replace function pgflow.setup_requeue_stalled_tasks_cron(cron_interval text default '15 seconds')
returns text
language c
security definer
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'setup_requeue_stalled_tasks_cron_wrapper';

revoke execute on function pgflow.setup_requeue_stalled_tasks_cron from public;

comment on function pgflow.setup_requeue_stalled_tasks_cron is
'Schedules requeue_stalled_tasks with pg_cron as job pgflow_requeue_stalled_tasks, in place of an earlier one; returns what was scheduled. cron_interval is a pg_cron schedule; those in seconds need pg_cron 1.5.';

create or replace function pgflow.track_worker_function(
  function_name  text,
  start_mode     text  default 'http'
)
returns void
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'track_worker_function_wrapper';

comment on function pgflow.track_worker_function is
'Registers a function that ensure_workers keeps alive, or sets the start_mode of a registered one. Error 23514 for a start_mode other than http and process.';

create or replace function pgflow.mark_worker_stopped(worker_id uuid)
returns void
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'mark_worker_stopped_wrapper';

comment on function pgflow.mark_worker_stopped is
'Records that a worker ended, so that ensure_workers can start another at once. Does nothing for an unknown worker.';

create or replace function pgflow.ensure_workers()
returns table (
  function_name  text,
  invoked        boolean,
  request_id     bigint
)
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'ensure_workers_wrapper';

comment on function pgflow.ensure_workers is
'Calls, through pg_net, each enabled function of start_mode http that has no live worker and was not called within its debounce; where is_local(), each one. Returns a row per call. Elsewhere needs the Vault secrets supabase_project_id and pgflow_auth_secret (or supabase_service_role_key), and calls nothing without them.';

create or replace function pgflow.setup_ensure_workers_cron(cron_interval text default '1 second')
returns text
language c
security definer
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'setup_ensure_workers_cron_wrapper';

revoke execute on function pgflow.setup_ensure_workers_cron from public;

comment on function pgflow.setup_ensure_workers_cron is
'Schedules ensure_workers (job pgflow_ensure_workers) and, hourly, cleanup_ensure_workers_logs (job pgflow_cleanup_logs) with pg_cron, in place of earlier ones; returns what was scheduled. cron_interval is a pg_cron schedule; those in seconds need pg_cron 1.5.';

create or replace function pgflow.cleanup_ensure_workers_logs(retention_hours integer default 24)
returns table (cron_deleted bigint)
language c
security definer
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'cleanup_ensure_workers_logs_wrapper';

revoke execute on function pgflow.cleanup_ensure_workers_logs from public;

comment on function pgflow.cleanup_ensure_workers_logs is
'Deletes the records of pg_cron runs, of all jobs, that ended more than retention_hours ago; returns how many.';
