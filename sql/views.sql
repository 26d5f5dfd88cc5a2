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
