-- From pgflow 0.16.0, adopted or installed, to 0.17.0: steps and tasks get their queue's name, functions become C.
-- It succeeds as a whole or changes nothing. Rows that break a new constraint end it with that constraint's error.
--
-- `make upgrade-script` writes sql/pgflow--0.16.0--0.17.0.sql from sql/upgrade/0.16.0--0.17.0.sql: an "@include" line
-- stands for the text of a file, an "@comments" line for its COMMENTs and dump marks.
\echo Use "ALTER EXTENSION pgflow UPDATE" to load this file. \quit

set local search_path to pg_catalog, pg_temp;

-- No lock is waited for longer than 10 s; a shorter limit of the caller's stays.
select set_config('lock_timeout', '10s', true)
from pg_settings
where name = 'lock_timeout' and (setting = '0' or setting::integer > 10000);

lock table pgflow.flows, pgflow.steps, pgflow.deps, pgflow.runs, pgflow.step_states, pgflow.step_tasks,
  pgflow.workers, pgflow.worker_functions
  in access exclusive mode;

-- What a name may look like, and how long a retry waits. These three read no table and run no SQL. The CHECK
-- constraints of the tables call the first two, so they come before the tables and must stay immutable.

-- Names are read as UTF-8: in another encoding some could not be read at all.

do $$
begin
  if pg_catalog.getdatabaseencoding() <> 'UTF8' then
    raise exception using
      errcode = 'feature_not_supported',
      message = 'pgflow needs a database with encoding "UTF8"',
      detail = pg_catalog.format('Database "%s" has encoding "%s".', pg_catalog.current_database(), pg_catalog.getdatabaseencoding()),
      hint = 'Create a database with: create database ... encoding ''UTF8'' template template0.';
  end if;
end
$$;

create or replace function pgflow.is_valid_slug(slug text)
returns boolean
language c
immutable
parallel safe
as 'MODULE_PATHNAME', 'is_valid_slug_wrapper';

comment on function pgflow.is_valid_slug is
'Whether a flow or step may have this slug: letters, digits and underscores, no digit first, at most 128 characters, and not the word "run". False for NULL.';

create or replace function pgflow.is_valid_queue_name(queue_name text)
returns boolean
language c
immutable
parallel safe
as 'MODULE_PATHNAME', 'is_valid_queue_name_wrapper';

comment on function pgflow.is_valid_queue_name is
'Whether a step or task may store this queue name: 1 to 47 characters, all lower case, without "$", ";", "--" and single quotes, which PGMQ refuses. False for NULL.';

create or replace function pgflow.calculate_retry_delay(base_delay numeric, attempts_count integer)
returns integer
language c
immutable
parallel safe
as 'MODULE_PATHNAME', 'calculate_retry_delay_wrapper';

comment on function pgflow.calculate_retry_delay is
'Seconds to wait before the next attempt: floor(base_delay * 2^attempts_count), at most 2147483647. base_delay is in seconds; NULL when an argument is NULL. Error 22003 when base_delay is NaN.';

-- Routes of steps, and of the tasks that were sent: 0.16.0 had one queue for each flow.
alter table pgflow.steps      add column queue_name text;
alter table pgflow.step_tasks add column queue_name text;

set local session_replication_role to replica; -- users' triggers stay silent, until the script ends
update pgflow.steps      set queue_name = lower(flow_slug);
update pgflow.step_tasks set queue_name = lower(flow_slug);

alter table pgflow.steps
  alter column queue_name set not null,
  add constraint queue_name_is_valid check (pgflow.is_valid_queue_name(queue_name));
alter table pgflow.step_tasks
  alter column queue_name set not null,
  add constraint queue_name_is_valid check (pgflow.is_valid_queue_name(queue_name));

create unique index idx_step_tasks_queue_message on pgflow.step_tasks (queue_name, message_id)
                                                 where message_id is not null;
drop index pgflow.idx_step_tasks_message_id;

-- No query uses these, and each would cost a write for every change of a status: docs/adr/0007-fewer-indexes.md.
drop index pgflow.idx_runs_status;
drop index pgflow.idx_step_states_ready, pgflow.idx_step_states_failed, pgflow.idx_step_states_skipped,
           pgflow.idx_step_states_run_id;
drop index pgflow.idx_step_tasks_queued_msg, pgflow.idx_step_tasks_queued, pgflow.idx_step_tasks_completed,
           pgflow.idx_step_tasks_failed, pgflow.idx_step_tasks_last_worker;

-- What is under way is found by this one.
create index idx_runs_started on pgflow.runs (started_at) where status = 'started';

create unique index idx_flows_normalized_slug on pgflow.flows (lower(flow_slug));

-- start_tasks gets an argument, which makes it another function; the old one steps aside and hands its owner and
-- privileges over.
alter function pgflow.start_tasks(text, bigint[], uuid) rename to start_tasks_0_16_0;

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
-- Tasks: workers claim them and report what became of them. Message ids are bigint; JavaScript clients pass and get
-- them as decimal strings.

create or replace function pgflow.start_tasks(
  flow_slug   text,
  msg_ids     bigint[],
  worker_id   uuid,
  queue_name  text  default null
)
returns setof pgflow.step_task_record
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'start_tasks_wrapper';

comment on function pgflow.start_tasks is
'Claims the queued tasks of a flow whose messages a worker read from queue_name (NULL: lower(flow_slug)); returns them with their input. Counts an attempt and hides each message for the step''s timeout + 2 s. Messages without a task, or of another flow, stay as they are, with a WARNING. Errors: 23503 for a worker_id that is not in pgflow.workers, 55000 when a message is gone; then nothing is claimed.';

create or replace function pgflow.complete_task(
  run_id      uuid,
  step_slug   text,
  task_index  integer,
  output      jsonb
)
returns setof pgflow.step_tasks
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'complete_task_wrapper';

comment on function pgflow.complete_task is
'Completes a started task and, with a step''s last one, the step, and starts what waited for it. Returns the task, no row for an unknown one. Late and repeated reports change nothing but may archive the message. An output that is no array where a map step needs one fails the run.';

create or replace function pgflow.complete_tasks(
  run_ids       uuid[],
  step_slugs    text[],
  task_indexes  integer[],
  outputs       jsonb[]
)
returns setof pgflow.step_tasks
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'complete_tasks_wrapper';

comment on function pgflow.complete_tasks is
'Completes the tasks run_ids[n], step_slugs[n], task_indexes[n] with outputs[n], with the effect of complete_task on each in this order and the work shared. Returns the tasks as they are afterwards, in input order, none for an unknown one. No rows for NULL or empty arrays. Error 22023 when the arrays differ in length.';

create or replace function pgflow.fail_task(
  run_id         uuid,
  step_slug      text,
  task_index     integer,
  error_message  text
)
returns setof pgflow.step_tasks
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'fail_task_wrapper';

comment on function pgflow.fail_task is
'Reports a failed attempt. With attempts left the task is queued again, visible after calculate_retry_delay seconds; else it fails, and the step''s when_exhausted decides about step and run. Returns the task, no row for an unknown one. Error 55000 when the message to retry is gone.';

create or replace function pgflow.set_vt_batch(
  queue_name  text,
  msg_ids     bigint[],
  vt_offsets  integer[]
)
returns table (
  msg_id       bigint,
  read_ct      integer,
  enqueued_at  timestamptz,
  vt           timestamptz,
  message      jsonb,
  headers      jsonb
)
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'set_vt_batch_wrapper';

comment on function pgflow.set_vt_batch is
'Makes message msg_ids[n] of a queue visible vt_offsets[n] seconds from now; returns the messages that are there. No rows for NULL or empty arrays. Error 22023 when the arrays differ in length.';

create or replace function pgflow._archive_task_message(
  p_run_id      uuid,
  p_step_slug   text,
  p_task_index  integer
)
returns void
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', '_archive_task_message_wrapper';

comment on function pgflow._archive_task_message is
'Archives the message of a task in the queue stored with the task; does nothing for a task without a message. Internal.';

create or replace function pgflow.poll_for_tasks(
  queue_name        text,
  vt                integer,
  qty               integer,
  max_poll_seconds  integer  default 5,
  poll_interval_ms  integer  default 100
)
returns setof pgflow.step_task_record
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'poll_for_tasks_wrapper';

comment on function pgflow.poll_for_tasks is
'Deprecated: raises a NOTICE and returns no rows. Read with pgmq.read_with_poll and claim with start_tasks.';
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
-- Monitoring: queues as PGMQ measures them, and pictures of flows and runs. All run with the caller's rights. The views
-- are in views.sql; docs/monitoring.md has both.

create or replace function pgflow.queue_depth(flow_slug text default null)
returns table (
  flow_slug             text,
  queue_name            text,
  queue_length          bigint,
  queue_visible_length  bigint,
  oldest_msg_age_sec    integer,
  newest_msg_age_sec    integer,
  total_messages        bigint,
  unfinished_tasks      bigint,
  live_workers          bigint
)
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'queue_depth_wrapper';

comment on function pgflow.queue_depth is
'Queues of a flow, or of all flows, as pgmq.metrics measures them, with the tasks that should be in them and the workers that poll them. NULL measures: PGMQ does not list the queue. No rows for an unknown flow. Error 42P01 when a listed queue''s table is gone.';

create or replace function pgflow.flow_graph(flow_slug text)
returns text
language c
stable
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'flow_graph_wrapper';

comment on function pgflow.flow_graph is
'Picture of a flow as Mermaid text: a node for each step, an edge for each dependency, maps with double sides, conditions in words. NULL for an unknown flow.';

create or replace function pgflow.run_graph(run_id uuid)
returns text
language c
stable
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'run_graph_wrapper';

comment on function pgflow.run_graph is
'Picture of a run as Mermaid text: as flow_graph, with each step''s status as its colour and in words, its tasks, retries and time. NULL for an unknown run.';
-- What people ask every day: how far runs are, and what holds them up. The views show what the caller may read in the
-- tables below them (security_invoker). docs/monitoring.md describes them, and says which columns stay.
-- Now is statement_timestamp() throughout: with clock_timestamp(), which is volatile, a join with a view would read all
-- of it, not the rows that are joined.

create view pgflow.run_progress with (security_invoker = true) as
select
  r.run_id,
  r.flow_slug,
  r.status,
  r.started_at,
  coalesce(r.completed_at, r.failed_at) as ended_at,
  greatest(coalesce(r.completed_at, r.failed_at, statement_timestamp()) - r.started_at, interval '0') as duration,
  s.total_steps,
  s.started_steps,
  s.completed_steps,
  s.skipped_steps,
  s.failed_steps,
  s.total_tasks,
  s.completed_tasks,
  s.error_message
from pgflow.runs r
cross join lateral (
  select
    count(*) as total_steps,
    count(*) filter (where s.status = 'started') as started_steps,
    count(*) filter (where s.status = 'completed') as completed_steps,
    count(*) filter (where s.status = 'skipped') as skipped_steps,
    count(*) filter (where s.status = 'failed') as failed_steps,
    coalesce(sum(s.initial_tasks) filter (where s.status <> 'skipped'), 0) as total_tasks,
    coalesce(sum(s.initial_tasks - s.remaining_tasks), 0) as completed_tasks,
    min(s.error_message) filter (where s.status = 'failed') as error_message
  from pgflow.step_states s
  where s.run_id = r.run_id
) s;

comment on view   pgflow.run_progress                 is 'How far each run is. Reads the run and its step states, however many tasks there are.';
comment on column pgflow.run_progress.status          is 'started, completed or failed.';
comment on column pgflow.run_progress.ended_at        is 'When the run completed or failed; NULL while it goes on.';
comment on column pgflow.run_progress.duration        is 'From started_at to ended_at, or to now.';
comment on column pgflow.run_progress.total_steps     is 'Steps of the flow. Those that are neither started, completed, skipped nor failed have not begun.';
comment on column pgflow.run_progress.started_steps   is 'Steps under way; in a failed run, steps that were under way when it failed.';
comment on column pgflow.run_progress.total_tasks     is 'Tasks of all steps that are not skipped, as far as known: a map step counts once its array is there.';
comment on column pgflow.run_progress.completed_tasks is 'Tasks of these steps that have completed.';
comment on column pgflow.run_progress.error_message   is 'Why the failed step failed; NULL when none has.';

create view pgflow.step_progress with (security_invoker = true) as
select
  s.run_id,
  s.flow_slug,
  s.step_slug,
  d.step_index,
  d.step_type,
  s.status,
  case when s.status = 'created' then (
    select array_agg(e.dep_slug order by p.step_index)
    from pgflow.deps e
    join pgflow.steps p on p.flow_slug = e.flow_slug and p.step_slug = e.dep_slug
    join pgflow.step_states w on w.run_id = s.run_id and w.step_slug = e.dep_slug
    where e.flow_slug = s.flow_slug and e.step_slug = s.step_slug and w.status not in ('completed', 'skipped')
  ) end as waits_for,
  s.started_at,
  coalesce(s.completed_at, s.failed_at, s.skipped_at) as ended_at,
  case when s.started_at is not null then
    greatest(coalesce(s.completed_at, s.failed_at, s.skipped_at, r.failed_at, statement_timestamp()) - s.started_at, interval '0')
  end as duration,
  s.initial_tasks as total_tasks,
  t.queued_tasks,
  t.started_tasks,
  t.completed_tasks,
  t.failed_tasks,
  t.attempts_count,
  t.retries_count,
  s.skip_reason,
  s.error_message
from pgflow.step_states s
join pgflow.runs r on r.run_id = s.run_id
join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
cross join lateral (
  select
    count(*) filter (where t.status = 'queued') as queued_tasks,
    count(*) filter (where t.status = 'started') as started_tasks,
    count(*) filter (where t.status = 'completed') as completed_tasks,
    count(*) filter (where t.status = 'failed') as failed_tasks,
    coalesce(sum(t.attempts_count), 0) as attempts_count,
    coalesce(sum(greatest(0, t.attempts_count - (t.status <> 'queued')::integer)), 0) as retries_count
  from pgflow.step_tasks t
  where t.run_id = s.run_id and t.step_slug = s.step_slug
) t;

comment on view   pgflow.step_progress                is 'How far each step of each run is. Reads the step''s tasks: ask for one run at a time.';
comment on column pgflow.step_progress.status         is 'created, started, completed, failed or skipped.';
comment on column pgflow.step_progress.waits_for      is 'Slugs of the dependencies that must end before the step can start. NULL: none, or the step has started or ended.';
comment on column pgflow.step_progress.ended_at       is 'When the step completed, failed or was skipped; NULL before.';
comment on column pgflow.step_progress.duration       is 'From started_at to ended_at, or to now; a step that was under way when the run failed: to then. NULL before the start.';
comment on column pgflow.step_progress.total_tasks    is '1 for a single step, the array''s length for a map; NULL while that is not known.';
comment on column pgflow.step_progress.queued_tasks   is 'Tasks that wait for a worker, for their start delay or for their next attempt.';
comment on column pgflow.step_progress.started_tasks  is 'Tasks that a worker has claimed, permanently stalled ones among them.';
comment on column pgflow.step_progress.attempts_count is 'How often tasks of the step were claimed.';
comment on column pgflow.step_progress.retries_count  is 'Attempts that came to nothing and were, or will be, followed by another.';

create view pgflow.live_workers with (security_invoker = true) as
select w.worker_id, lower(w.queue_name) as queue_name, w.function_name, w.started_at, w.last_heartbeat_at
from pgflow.workers w
where w.last_heartbeat_at > statement_timestamp() - interval '30 seconds'
  and w.stopped_at is null and w.deprecated_at is null;

comment on view   pgflow.live_workers            is 'Workers that take tasks: heard of in the last 30 seconds, neither stopped nor asked to stop.';
comment on column pgflow.live_workers.queue_name is 'Queue that the worker polls, in lower case.';

create view pgflow.permanently_stalled_tasks with (security_invoker = true) as
select
  t.run_id, t.flow_slug, t.step_slug, t.task_index, t.permanently_stalled_at, t.status, t.attempts_count,
  t.requeued_count, t.last_worker_id, t.error_message, t.queue_name, t.message_id
from pgflow.step_tasks t
where t.permanently_stalled_at is not null and t.status = 'started'
union all
select
  t.run_id, t.flow_slug, t.step_slug, t.task_index, t.permanently_stalled_at, t.status, t.attempts_count,
  t.requeued_count, t.last_worker_id, t.error_message, t.queue_name, t.message_id
from pgflow.runs r
join pgflow.step_states s on s.run_id = r.run_id and s.status = 'started'
join pgflow.step_tasks t on t.run_id = s.run_id and t.step_slug = s.step_slug
where r.status = 'started' and t.permanently_stalled_at is not null and t.status = 'queued';

comment on view   pgflow.permanently_stalled_tasks            is 'Unfinished tasks that requeue_stalled_tasks has given up. Their runs wait until complete_task or fail_task reports on them.';
comment on column pgflow.permanently_stalled_tasks.status     is 'started; queued after a failure was reported that left attempts.';
comment on column pgflow.permanently_stalled_tasks.message_id is 'The task''s message in the archive of queue_name.';

create view pgflow.stalled with (security_invoker = true) as
select
  q.run_id,
  q.flow_slug,
  q.step_slug,
  q.reason,
  count(*) as stalled_tasks,
  min(q.since) as since,
  case q.reason
    when 'permanently_stalled' then 'given up by requeue_stalled_tasks; the run waits until complete_task or fail_task reports'
    when 'timed_out' then format('no report within the timeout of %s s; requeue_stalled_tasks takes the tasks back 30 s after it',
                                 max(q.timeout))
    when 'no_message' then 'queued without a message, so no worker can find the tasks'
    when 'no_worker' then format('no live worker polls queue "%s"', min(q.queue_name))
  end as detail
from (
  select t.run_id, t.flow_slug, t.step_slug, t.queue_name, 'permanently_stalled' as reason,
         t.permanently_stalled_at as since, null::integer as timeout
  from pgflow.permanently_stalled_tasks t
  union all
  select t.run_id, t.flow_slug, t.step_slug, t.queue_name, 'timed_out',
         t.started_at + make_interval(secs => o.timeout), o.timeout
  from pgflow.step_tasks t
  join pgflow.steps d on d.flow_slug = t.flow_slug and d.step_slug = t.step_slug
  join pgflow.flows f on f.flow_slug = t.flow_slug
  cross join lateral (select coalesce(d.opt_timeout, f.opt_timeout) as timeout) o
  where t.status = 'started' and t.permanently_stalled_at is null
    and t.started_at < statement_timestamp() - make_interval(secs => o.timeout)
  union all
  select t.run_id, t.flow_slug, t.step_slug, t.queue_name, case when t.message_id is null then 'no_message' else 'no_worker' end,
         o.due_at, null
  from pgflow.runs r
  join pgflow.step_states s on s.run_id = r.run_id and s.status = 'started'
  join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
  join pgflow.step_tasks t on t.run_id = s.run_id and t.step_slug = s.step_slug
                          and t.status = 'queued' and t.permanently_stalled_at is null
  cross join lateral (
    select greatest(t.queued_at + make_interval(secs => coalesce(d.opt_start_delay, 0)), t.last_requeued_at) as due_at
  ) o
  where r.status = 'started'
    and (t.message_id is null or (
      o.due_at <= statement_timestamp()
      and not exists (select from pgflow.live_workers w where w.queue_name = t.queue_name)))
) q
group by q.run_id, q.flow_slug, q.step_slug, q.reason;

comment on view   pgflow.stalled               is 'Steps of runs under way whose tasks are stuck, a row for each reason. Reads the unfinished work only.';
comment on column pgflow.stalled.reason        is 'permanently_stalled, timed_out, no_message or no_worker.';
comment on column pgflow.stalled.stalled_tasks is 'How many tasks of the step are stuck for this reason.';
comment on column pgflow.stalled.since         is 'Since when the first of them is.';
comment on column pgflow.stalled.detail        is 'The reason in words, and what helps. For people: the words may change.';

do $$
declare
  old       constant regprocedure := 'pgflow.start_tasks_0_16_0(text, bigint[], uuid)';
  new       constant regprocedure := 'pgflow.start_tasks(text, bigint[], uuid, text)';
  tables    constant regclass := 'pgflow.flows';
  object    text;
  privilege record;
begin
  execute format('alter function %s owner to %s', new, (select proowner::regrole from pg_proc where oid = old));
  foreach object in array array[
    'function pgflow.is_valid_queue_name', 'function pgflow.complete_tasks', 'function pgflow.queue_depth',
    'function pgflow.flow_graph', 'function pgflow.run_graph', 'view pgflow.run_progress', 'view pgflow.step_progress',
    'view pgflow.live_workers', 'view pgflow.permanently_stalled_tasks', 'view pgflow.stalled']
  loop
    execute format('alter %s owner to %s', object, (select relowner::regrole from pg_class where oid = tables));
  end loop;

  if (select proacl is not null from pg_proc where oid = old) then
    execute format('revoke all on function %s from public', new);
    for privilege in
      select case a.grantee when 0 then 'public' else a.grantee::regrole::text end as grantee, a.is_grantable
      from pg_proc p, aclexplode(p.proacl) a
      where p.oid = old
    loop
      execute format('grant execute on function %s to %s%s', new, privilege.grantee,
                     case when privilege.is_grantable then ' with grant option' end);
    end loop;
  end if;
  execute format('drop function %s', old);
end
$$;

comment on table  pgflow.flows                  is 'Flows that can be run.';
comment on column pgflow.flows.flow_slug        is 'Name of the flow, in the spelling it was created with.';
comment on column pgflow.flows.opt_max_attempts is 'How often a task is attempted before it fails.';
comment on column pgflow.flows.opt_base_delay   is 'Seconds that retries start from; see calculate_retry_delay. create_flow stores 5 where none is given.';
comment on column pgflow.flows.opt_timeout      is 'Seconds that an attempt may take.';
comment on index  pgflow.idx_flows_normalized_slug is
'Flows whose slugs differ only in case would share one queue, lower(flow_slug).';
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
comment on table  pgflow.deps           is 'Edges of flows: step_slug waits for dep_slug and gets its output.';
comment on column pgflow.deps.dep_slug  is 'The step that must end first.';
comment on column pgflow.deps.step_slug is 'The step that waits.';
comment on table  pgflow.workers                   is 'Workers that registered. Each inserts its own row and keeps its heartbeat; to claim tasks, a worker needs one.';
comment on column pgflow.workers.worker_id         is 'Chosen by the worker, new for each process.';
comment on column pgflow.workers.queue_name        is 'Queue that the worker polls, in the worker''s own spelling.';
comment on column pgflow.workers.function_name     is 'What the worker runs in; matches worker_functions where that function is tracked.';
comment on column pgflow.workers.deprecated_at     is 'When the worker was asked to stop: it reads this with its heartbeat. NULL: it may go on.';
comment on column pgflow.workers.last_heartbeat_at is 'When the worker last said that it is alive.';
comment on column pgflow.workers.stopped_at        is 'When the worker reported its end with mark_worker_stopped. NULL: it runs, or it ended without a word.';
comment on table  pgflow.worker_functions                 is 'Functions that must have a live worker. track_worker_function registers them, ensure_workers starts them.';
comment on column pgflow.worker_functions.function_name   is 'Last part of the function''s URL.';
comment on column pgflow.worker_functions.enabled         is 'False: ensure_workers leaves it alone. Set by users only.';
comment on column pgflow.worker_functions.debounce        is 'Least time between two calls by ensure_workers; a worker silent for longer counts as gone.';
comment on column pgflow.worker_functions.last_invoked_at is 'When ensure_workers last called it; NULL: never.';
comment on column pgflow.worker_functions.updated_at      is 'When track_worker_function last registered it.';
comment on column pgflow.worker_functions.start_mode      is '"http": started by an HTTP call of ensure_workers. "process": runs by itself, never called.';
comment on table  pgflow.runs                 is 'Runs of flows. A completed or failed run never changes again.';
comment on index  pgflow.idx_runs_started     is 'Runs under way, which the views on progress and on what is stalled start from.';
comment on column pgflow.runs.output          is 'Once completed: object of the outputs of completed steps that nothing depends on; NULL when there is no such step.';
comment on column pgflow.runs.remaining_steps is 'Steps that have not ended; at 0 the run completes. Stays as it is when the run fails.';
comment on table  pgflow.step_states                 is 'State of each step of a run, created with the run.';
comment on column pgflow.step_states.remaining_tasks is 'Tasks that have not completed. NULL before the step starts and once it is skipped.';
comment on column pgflow.step_states.remaining_deps  is 'Dependencies that have neither completed nor been skipped; at 0 the step may start.';
comment on column pgflow.step_states.initial_tasks   is 'Number of tasks: 1 for a single step, the array''s length for a map. NULL while a map''s array is not known yet.';
comment on column pgflow.step_states.started_at      is 'NULL when it never started. A step without tasks starts and completes at the same time.';
comment on column pgflow.step_states.error_message   is 'Why the step failed, or was skipped after a failed handler.';
comment on column pgflow.step_states.output          is 'Once completed: the task''s output for a single step, the array of its tasks'' outputs by task_index for a map. NULL otherwise.';
comment on column pgflow.step_states.skip_reason     is 'condition_unmet, handler_failed or dependency_skipped. NULL unless skipped.';
comment on table  pgflow.step_tasks                        is 'Tasks of started steps. Each is delivered to workers as one PGMQ message.';
comment on column pgflow.step_tasks.message_id             is 'The task''s message in queue_name; PGMQ counts messages per queue. NULL: no message.';
comment on column pgflow.step_tasks.task_index             is '0 for a single step, the position in the array for a map.';
comment on column pgflow.step_tasks.attempts_count         is 'How often start_tasks has claimed the task.';
comment on column pgflow.step_tasks.error_message          is 'What the latest failed attempt reported.';
comment on column pgflow.step_tasks.output                 is 'What the handler returned; kept on a task that failed because its output has the wrong type.';
comment on column pgflow.step_tasks.queued_at              is 'When the task was created; retries and requeues leave it.';
comment on column pgflow.step_tasks.started_at             is 'When the latest attempt was claimed; NULL while the task is queued.';
comment on column pgflow.step_tasks.last_worker_id         is 'Worker of the latest claim. NULL: claimed by nobody yet, requeued since, claimed without an id, or the worker''s row is gone.';
comment on column pgflow.step_tasks.requeued_count         is 'How often requeue_stalled_tasks gave the task back, at most 3.';
comment on column pgflow.step_tasks.permanently_stalled_at is 'When requeue_stalled_tasks gave the task up after 3 requeues; its status stays "started". NULL: not given up.';
comment on column pgflow.step_tasks.queue_name             is 'PGMQ queue that the task''s message was sent to: the step''s queue_name at that time. Never changes.';
comment on index  pgflow.idx_step_tasks_queue_message      is 'A message belongs to at most one task. Claims look tasks up by it.';
comment on type   pgflow.step_task_record            is 'A claimed task, as start_tasks hands it to a worker.';
comment on column pgflow.step_task_record.input      is 'What the handler gets. Map: its element of the array. Single without dependencies: {}. Else an object of the outputs of completed dependencies.';
comment on column pgflow.step_task_record.msg_id     is 'The task''s message id in the queue that was polled.';
comment on column pgflow.step_task_record.flow_input is 'The run''s input for a single step without dependencies, else NULL.';
comment on column pgflow.worker_functions.created_at is null;
select pg_catalog.pg_extension_config_dump('pgflow.flows', '');
select pg_catalog.pg_extension_config_dump('pgflow.steps', '');
select pg_catalog.pg_extension_config_dump('pgflow.deps', '');
select pg_catalog.pg_extension_config_dump('pgflow.workers', '');
select pg_catalog.pg_extension_config_dump('pgflow.worker_functions', '');
select pg_catalog.pg_extension_config_dump('pgflow.runs', '');
select pg_catalog.pg_extension_config_dump('pgflow.step_states', '');
select pg_catalog.pg_extension_config_dump('pgflow.step_tasks', '');
comment on schema pgflow is 'pgflow: workflows (DAGs of steps) on PGMQ queues.';

-- Adding an object to an extension, and GRANT and REVOKE in its scripts, record all privileges on the object as the
-- extension's own, and pg_dump leaves those out. The only ones that are: PUBLIC may not run maintenance functions.
-- pg_shdepend has such entries from PostgreSQL 17 on.
with member as (
  select d.classid, d.objid, p.proowner as owner, coalesce(p.proname in (
    'requeue_stalled_tasks', 'setup_requeue_stalled_tasks_cron', 'setup_ensure_workers_cron',
    'cleanup_ensure_workers_logs'), false) as is_maintenance
  from pg_depend d
  left join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
  where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e'
    and d.refobjid = (select oid from pg_extension where extname = 'pgflow')
), corrected as (
  update pg_init_privs i set initprivs = array[makeaclitem(m.owner, m.owner, 'EXECUTE', false)]
  from member m
  where (i.classoid, i.objoid) = (m.classid, m.objid) and m.is_maintenance
), removed as (
  delete from pg_init_privs i using member m
  where (i.classoid, i.objoid) = (m.classid, m.objid) and not m.is_maintenance
)
delete from pg_shdepend s using member m, pg_database b
where (s.classid, s.objid) = (m.classid, m.objid) and s.deptype = 'i'
  and b.datname = current_database() and s.dbid = b.oid
  and not (m.is_maintenance and s.refclassid = 'pg_authid'::regclass and s.refobjid = m.owner);
