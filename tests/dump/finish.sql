-- Finishes what was under way when the dump was taken: first the report of the worker that held a task, then the rest
-- as a new worker that reads, claims and completes with `{"did": input}`. Then a new run, from its start to its end.
set statement_timeout = '30 s';
insert into pgflow.workers (worker_id, queue_name, function_name)
values ('00000000-0000-0000-0000-00000000000c', 'live', 'after the restore');
select from pgflow.complete_task('00000000-0000-0000-0000-000000000004', 'each', 1, '20');

create function pg_temp.work(flow text) returns void language plpgsql as $$
declare
  ids bigint[];
  task record;
begin
  loop
    select array_agg(msg_id) into ids from pgmq.read(flow, 0, 100) where message ? 'task_index';
    exit when ids is null;
    for task in select * from pgflow.start_tasks(flow, ids, '00000000-0000-0000-0000-00000000000c') loop
      perform pgflow.complete_task(task.run_id, task.step_slug, task.task_index, jsonb_build_object('did', task.input));
    end loop;
  end loop;
end $$;

select pg_temp.work('live');
select from pgflow.start_flow('live', '[1]', '00000000-0000-0000-0000-000000000006');
select pg_temp.work('live');
