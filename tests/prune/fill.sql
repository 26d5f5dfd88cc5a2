-- Runs that ended 40 days ago and today, in several queues; the cutoff of the test is 30 days.
create extension pgflow cascade;
select from pgmq.create('Mixed');
insert into pgflow.flows (flow_slug, opt_max_attempts, opt_base_delay, opt_timeout) values ('Mixed', 1, 0, 60);
select from pgflow.add_step('Mixed', 'each', step_type => 'map');
select from pgflow.create_flow('routed', max_attempts => 1, base_delay => 0);
select from pgflow.add_step('routed', 'here');
select from pgflow.add_step('routed', 'elsewhere');
select pgmq.create('other');
update pgflow.steps set queue_name = 'other' where step_slug = 'elsewhere';
select from pgflow.create_flow('broken', max_attempts => 1, base_delay => 0);
select from pgflow.add_step('broken', 'fails');
select from pgflow.add_step('broken', 'waits', start_delay => 3600);
select from pgflow.add_step('broken', 'never', '{fails, waits}');
select from pgflow.create_flow('empty');
select from pgflow.create_flow('gone');

insert into pgflow.workers (worker_id, queue_name, function_name, last_heartbeat_at) values
  ('00000000-0000-0000-0000-00000000000a', 'all', 'old', now() - interval '40 days'),
  ('00000000-0000-0000-0000-00000000000b', 'all', 'young', now());

create function pg_temp.work(flow text, queue text, worker text) returns void language sql as $$
  select from pgflow.start_tasks(flow, array(select msg_id from pgmq.read(queue, 0, 100)),
                                 ('00000000-0000-0000-0000-00000000000' || worker)::uuid, queue) t,
    pgflow.complete_task(t.run_id, t.step_slug, t.task_index, '1')
$$;
create function pg_temp.run(n integer, flow text, input jsonb default '{}') returns void language sql as $$
  select from pgflow.start_flow(flow, input, ('00000000-0000-0000-0000-00000000000' || n)::uuid)
$$;

-- 1 to 3 ended long ago, 4 today; 5 started long ago and goes on.
select pg_temp.run(1, 'Mixed', '[1, 2]');
select pg_temp.work('Mixed', 'mixed', 'a');
select pg_temp.run(2, 'routed');
select pg_temp.work('routed', 'routed', 'a');
select pg_temp.work('routed', 'other', 'a');
select pg_temp.run(3, 'broken');
select from pgflow.start_tasks('broken', '{1}', '00000000-0000-0000-0000-00000000000a');
select from pgflow.fail_task('00000000-0000-0000-0000-000000000003', 'fails', 0, 'it broke');
select pg_temp.run(4, 'routed');
select pg_temp.work('routed', 'routed', 'a');
select pg_temp.work('routed', 'other', 'b');
select pg_temp.run(5, 'Mixed', '[3, 4]');
select from pgflow.start_tasks('Mixed', '{3}', '00000000-0000-0000-0000-00000000000a');
-- A flow whose archive somebody dropped, and one that never ran but has an old message in its archive.
drop table pgmq.a_gone;
select from pgmq.send('empty', '{}') as id, pgmq.archive('empty', id);
-- The message of an ended task that came back to the queue, as an operator may do; one of nobody's.
select from pgmq.send('routed', '{"stray": true}');
insert into pgmq.q_other (msg_id, vt, message) overriding system value values (1, now(), '{"back": true}');

update pgflow.step_tasks set queued_at = queued_at - interval '40 days', started_at = started_at - interval '40 days',
  completed_at = completed_at - interval '40 days', failed_at = failed_at - interval '40 days'
where right(run_id::text, 1) in ('1', '2', '3', '5');
update pgflow.step_states set created_at = created_at - interval '40 days', started_at = started_at - interval '40 days',
  completed_at = completed_at - interval '40 days', failed_at = failed_at - interval '40 days'
where right(run_id::text, 1) in ('1', '2', '3', '5');
update pgflow.runs set started_at = started_at - interval '40 days', completed_at = completed_at - interval '40 days',
  failed_at = failed_at - interval '40 days'
where right(run_id::text, 1) in ('1', '2', '3', '5');
update pgmq.a_mixed set archived_at = archived_at - interval '40 days';
update pgmq.a_broken set archived_at = archived_at - interval '40 days' where msg_id = 1;
update pgmq.a_routed set archived_at = archived_at - interval '40 days' where msg_id = 1;
update pgmq.a_other set archived_at = archived_at - interval '40 days' where msg_id = 1;
update pgmq.a_empty set archived_at = archived_at - interval '40 days';
