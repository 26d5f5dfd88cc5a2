-- Optional, installed by hand (see docs/upgrade.md): deletes old data of pgflow and the archives of its queues.
-- Not part of the extension; change it as you like.
--
--   select pgflow.prune_data_older_than(interval '30 days');

-- Deletes runs that ended before now() - retention_interval, with their messages, archived messages of that age in all
-- of pgflow's queues, and workers not seen since. Unfinished runs stay. Runs with the rights of its caller.
create or replace function pgflow.prune_data_older_than(retention_interval interval)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
set row_security to off -- rather an error than nothing to prune
as $$
declare
  cutoff       constant timestamptz := now() - retention_interval;
  old_runs     uuid[];
  old_workers  uuid[];
  queue        record;
begin
  -- Locks in pgflow's order: runs, step states, tasks, queue rows.
  old_runs := array(
    select run_id from pgflow.runs
    where status in ('completed', 'failed') and coalesce(completed_at, failed_at) < cutoff
    order by run_id
    for update);
  perform from pgflow.step_states where run_id = any (old_runs) order by run_id, step_slug for update;

  -- Messages first, while the tasks still say where they are. An ended task has none in the queue as a rule.
  for queue in
    select task.queue_name as name, array_agg(task.message_id) as messages
    from (
      select queue_name, message_id from pgflow.step_tasks
      where run_id = any (old_runs)
      order by run_id, step_slug, task_index
      for update
    ) task
    where task.message_id is not null
    group by task.queue_name
    order by task.queue_name
  loop
    begin
      perform pgmq.delete(queue.name, queue.messages);
    exception when undefined_table then
      null; -- the queue was dropped, perhaps a moment ago
    end;
  end loop;
  delete from pgflow.step_tasks  where run_id = any (old_runs);
  delete from pgflow.step_states where run_id = any (old_runs);
  delete from pgflow.runs        where run_id = any (old_runs);

  -- The archives of all queues that steps are routed to, and of every flow's own queue, also without steps.
  for queue in
    select queue_name as name from pgflow.steps union select lower(flow_slug) from pgflow.flows order by name
  loop
    begin
      execute format('delete from pgmq.%I where archived_at < $1', pgmq.format_table_name(queue.name, 'a')) using cutoff;
    exception when undefined_table then
      null; -- likewise
    end;
  end loop;

  -- A claim locks its tasks, then its worker's row: so do these statements. A worker that claims meanwhile stays.
  old_workers := array(select worker_id from pgflow.workers where last_heartbeat_at < cutoff);
  perform from pgflow.step_tasks where last_worker_id = any (old_workers)
  order by run_id, step_slug, task_index for update;
  update pgflow.step_tasks set last_worker_id = null where last_worker_id = any (old_workers);
  perform from pgflow.workers where worker_id = any (old_workers) order by worker_id for update;
  delete from pgflow.workers w
  where w.worker_id = any (old_workers) and w.last_heartbeat_at < cutoff
    and not exists (select from pgflow.step_tasks t where t.last_worker_id = w.worker_id);
end
$$;

comment on function pgflow.prune_data_older_than is
'Deletes runs that ended longer ago than retention_interval, their messages, archived messages of that age, and workers not seen since. A user''s function, no member of the extension.';
