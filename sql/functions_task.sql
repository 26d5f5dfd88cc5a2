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
