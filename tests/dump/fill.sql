-- Rows in every table and in every status, live and archived messages, and what a user may have granted.
create extension pgflow cascade;

create role dump_client;
grant usage on schema pgflow to dump_client;
grant execute on function pgflow.start_flow_with_states to dump_client;
grant select on pgflow.flows to dump_client;

insert into pgflow.workers (worker_id, queue_name, function_name, last_heartbeat_at, deprecated_at, stopped_at) values
  ('00000000-0000-0000-0000-00000000000a', 'live', 'running', '2030-01-01', null, null),
  ('00000000-0000-0000-0000-00000000000b', 'ended', 'stopped', '2030-01-01', '2030-01-02', '2030-01-03');
insert into pgflow.worker_functions (function_name, enabled, debounce, last_invoked_at, start_mode)
values ('running', true, '7 s', '2030-01-01', 'http'), ('stopped', false, '6 s', null, 'process');

-- Claims every visible message of a flow's queue.
create function pg_temp.claim(flow text) returns void language sql as $$
  select count(*) from pgflow.start_tasks(
    flow, (select array_agg(msg_id) from pgmq.read(lower(flow), 0, 1000)), '00000000-0000-0000-0000-00000000000a')
$$;

-- A completed run of single and map steps, with values that must not change on the way.
select from pgflow.create_flow('Ended', max_attempts => 1, base_delay => 0, timeout => 7);
select from pgflow.add_step('Ended', 'list');
select from pgflow.add_step('Ended', 'each', array['list'], step_type => 'map', timeout => 9);
select from pgflow.start_flow('Ended', '{"number": 12345678901234567890.123456789, "huge": 1e400, "zero": 1.10}',
                              '00000000-0000-0000-0000-000000000001');
select pg_temp.claim('Ended');
select from pgflow.complete_task('00000000-0000-0000-0000-000000000001', 'list', 0, '[1.10, "", null]');
select pg_temp.claim('Ended');
select o.i from (values (0, '{"ü": "\\"}'::jsonb), (1, null), (2, '3')) as o (i, output),
  pgflow.complete_task('00000000-0000-0000-0000-000000000001', 'each', o.i, o.output);

-- A failed run: failed, completed and cancelled tasks, a step that never started.
select from pgflow.create_flow('failed', max_attempts => 1, base_delay => 0);
select from pgflow.add_step('failed', 'a');
select from pgflow.add_step('failed', 'b');
select from pgflow.add_step('failed', 'c');
select from pgflow.add_step('failed', 'never', array['a', 'b']);
select from pgflow.start_flow('failed', '{}', '00000000-0000-0000-0000-000000000002');
select pg_temp.claim('failed');
select from pgflow.complete_task('00000000-0000-0000-0000-000000000002', 'a', 0, '"a"');
select from pgflow.fail_task('00000000-0000-0000-0000-000000000002', 'b', 0, 'it broke');

-- Skipped steps for each reason, with skipped tasks; conditions and modes in the definition.
select from pgflow.create_flow('skipped', max_attempts => 1, base_delay => 0);
select from pgflow.add_step('skipped', 'unmet', required_input_pattern => '{"x": 1}', when_unmet => 'skip');
select from pgflow.add_step('skipped', 'met', forbidden_input_pattern => '{"x": 1}', when_unmet => 'fail');
select from pgflow.add_step('skipped', 'exhausted', array['met'], step_type => 'map', when_exhausted => 'skip-cascade');
select from pgflow.add_step('skipped', 'downstream', array['exhausted']);
select from pgflow.start_flow('skipped', '{"x": 2}', '00000000-0000-0000-0000-000000000003');
select pg_temp.claim('skipped');
select from pgflow.complete_task('00000000-0000-0000-0000-000000000003', 'met', 0, '[1, 2, 3]');
select pg_temp.claim('skipped');
select from pgflow.fail_task('00000000-0000-0000-0000-000000000003', 'exhausted', 1, 'used up');

-- A run in the middle of its work, with message ids beyond 2^53: a map with a completed, a started, a waiting and a
-- retried task, and steps that wait for it.
select from pgflow.create_flow('live', base_delay => 0);
select from pgflow.add_step('live', 'each', step_type => 'map');
select from pgflow.add_step('live', 'left', array['each']);
select from pgflow.add_step('live', 'right', array['each']);
select from pgflow.add_step('live', 'join', array['left', 'right']);
alter table pgmq.q_live alter column msg_id restart with 9007199254740993;
select from pgflow.start_flow('live', '[10, 20, 30, 40]', '00000000-0000-0000-0000-000000000004');
select count(*) from pgflow.start_tasks(
  'live', '{9007199254740993, 9007199254740994, 9007199254740995}', '00000000-0000-0000-0000-00000000000a');
select from pgflow.complete_task('00000000-0000-0000-0000-000000000004', 'each', 0, '10');
select from pgflow.fail_task('00000000-0000-0000-0000-000000000004', 'each', 2, 'not yet');

-- A task that recovery has given up.
select from pgflow.create_flow('stalled');
select from pgflow.add_step('stalled', 'a', start_delay => 0, max_attempts => 2, base_delay => 1);
select from pgflow.start_flow('stalled', '{}', '00000000-0000-0000-0000-000000000005');
select pg_temp.claim('stalled');
update pgflow.step_tasks
set requeued_count = 3, last_requeued_at = clock_timestamp(), permanently_stalled_at = clock_timestamp()
where flow_slug = 'stalled';
select pgmq.archive('stalled', 1);

-- A flow without steps and without runs, and a message that no task knows.
select from pgflow.create_flow('empty');
select pgmq.send('live', '{"stray": true}');
