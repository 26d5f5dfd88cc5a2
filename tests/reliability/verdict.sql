-- What must hold after a load, beside tests/fixtures/invariants.sql: load.wrong() names what was lost or done twice.
create schema load;

-- Runs and tasks that were deleted on purpose, by pruning or with their flow.
create table load.gone_runs (run_id uuid);
create function load.keep_run() returns trigger language plpgsql as $$
begin
  insert into load.gone_runs values (old.run_id);
  return old;
end $$;
create trigger keep before delete on pgflow.runs for each row execute function load.keep_run();

create table load.gone (run_id uuid, step_slug text, task_index integer, status text, output jsonb, attempts_count integer);
create function load.keep_task() returns trigger language plpgsql as $$
begin
  insert into load.gone values (old.run_id, old.step_slug, old.task_index, old.status, old.output, old.attempts_count);
  return old;
end $$;
create trigger keep before delete on pgflow.step_tasks for each row execute function load.keep_task();

-- The events that the rows call for: one for each transition.
create view load.expected_events as
  select run_id, 'run:started' as event from pgflow.runs
  union all
  select run_id, 'run:' || status from pgflow.runs where status <> 'started'
  union all
  select run_id, format('step:%s:started', step_slug) from pgflow.step_states
  where started_at is not null and initial_tasks > 0
  union all
  select run_id, format('step:%s:%s', step_slug, status) from pgflow.step_states
  where status in ('completed', 'failed', 'skipped');

create view load.sent_events as
  select (payload->>'run_id')::uuid as run_id, event from realtime.sent;

-- Messages that are hidden for longer than their task needs. Nothing here waits for a retry, a read hides a message for a
-- second, and a claim for the timeout of 60 s and two more.
create function load.hidden() returns setof text language plpgsql as $$
declare queue text;
begin
  for queue in select distinct t.queue_name from pgflow.step_tasks t loop
    return query execute format('
      select format(''%%s %%s, %%s: hidden until %%s'', t.queue_name, t.message_id, t.status, m.vt)
      from pgmq.%I m join pgflow.step_tasks t on t.queue_name = %L and t.message_id = m.msg_id
      where m.vt > clock_timestamp() + case t.status when ''queued'' then interval ''5 s'' else interval ''65 s'' end',
      'q_' || queue, queue);
  end loop;
end $$;

create function load.messages(prefix text) returns table (queue_name text, message_id bigint)
language plpgsql as $$
declare queue text;
begin
  for queue in select distinct t.queue_name from pgflow.step_tasks t loop
    return query execute format('select %L, msg_id from pgmq.%I', queue, prefix || queue);
  end loop;
end $$;

create function load.wrong() returns setof text language sql as $$
  select format('the output of a step is not that of its tasks: %s %s', s.run_id, s.step_slug)
  from pgflow.step_states s
  join pgflow.steps d using (flow_slug, step_slug)
  cross join lateral (
    select count(*) as number, jsonb_agg(t.output order by t.task_index) as outputs
    from pgflow.step_tasks t
    where t.run_id = s.run_id and t.step_slug = s.step_slug and t.status = 'completed') done
  where s.status = 'completed'
    and (done.number <> s.initial_tasks
      or s.output is distinct from case when d.step_type = 'map' then coalesce(done.outputs, '[]') else done.outputs->0 end)
  union all
  select format('the output of a run is not that of its last steps: %s', r.run_id)
  from pgflow.runs r
  where r.status = 'completed' and r.output is distinct from (
    select jsonb_object_agg(s.step_slug, s.output) from pgflow.step_states s
    where s.run_id = r.run_id and s.status = 'completed'
      and not exists (select from pgflow.deps d where d.flow_slug = s.flow_slug and d.dep_slug = s.step_slug))
  union all
  select format('an event was sent twice: %s', e) from load.sent_events e group by e having count(*) > 1
  union all
  select format('an event was not sent: %s', e) from (table load.expected_events except table load.sent_events) e
  union all
  select format('an event was sent of what did not happen: %s', e)
  from (select * from load.sent_events where run_id in (select run_id from pgflow.runs) except table load.expected_events) e
  union all
  select format('a message is both live and archived: %s', live)
  from load.messages('q_') live join load.messages('a_') archived using (queue_name, message_id)
$$;

-- Messages of ended tasks that are not archived.
create function load.unarchived() returns setof text language sql as $$
  select format('%s %s', t.queue_name, t.message_id)
  from pgflow.step_tasks t
  left join load.messages('a_') archived using (queue_name, message_id)
  where t.status not in ('queued', 'started') and archived.message_id is null
$$;

-- Runs that have not ended although none of their tasks is permanently stalled.
create function load.unfinished() returns setof uuid language sql as $$
  select run_id from pgflow.runs r
  where status = 'started'
    and not exists (select from pgflow.step_tasks t where t.run_id = r.run_id and t.permanently_stalled_at is not null)
$$;

-- Queues that would give a message an id that another has or had.
create function load.queues_that_repeat_ids() returns setof text language plpgsql as $$
declare queue text; next_id bigint; highest bigint;
begin
  for queue in select distinct t.queue_name from pgflow.step_tasks t loop
    execute format('select nextval(pg_get_serial_sequence(%1$L, ''msg_id'')),
                           (select max(msg_id) from (select msg_id from pgmq.%2$I union all select msg_id from pgmq.%3$I) m)',
                   format('pgmq.%I', 'q_' || queue), 'q_' || queue, 'a_' || queue)
    into next_id, highest;
    if next_id <= highest then return next queue; end if;
  end loop;
end $$;
