-- Finishes everything that was under way before the upgrade: recovery of the stalled task, the report of the worker that
-- held one, then a worker that reads, claims and completes with `{"did": input}`; and a new run of a mixed-case flow.
set statement_timeout = '60 s';
insert into pgflow.workers (worker_id, queue_name, function_name)
values ('00000000-0000-0000-0000-00000000000c', 'all', 'after the upgrade');
select command from cron.job \gexec
select from pgflow.complete_task('00000000-0000-0000-0000-000000000004', 'each', 1, '20');

create function pg_temp.work(flow text) returns void language plpgsql as $$
declare
  ids bigint[];
  task record;
begin
  loop
    select array_agg(msg_id) into ids from pgmq.read(flow, 0, 100);
    exit when ids is null;
    for task in select * from pgflow.start_tasks(flow, ids, '00000000-0000-0000-0000-00000000000c') loop
      perform pgflow.complete_task(task.run_id, task.step_slug, task.task_index, jsonb_build_object('did', task.input));
    end loop;
  end loop;
end $$;

select pg_temp.work(flow) from unnest('{alpha, beta, MyFlow, live, stalled}'::text[]) as flow;
select from pgflow.start_flow('MyFlow', '{"new": true}', '00000000-0000-0000-0000-00000000000f');
select pg_temp.work('MyFlow');
