-- What a pgflow 0.16.0 holds in production: all statuses, work in all stages. Its functions are no help here, they do
-- nothing: rows are written as 0.16.0 leaves them. :bulk is the number of finished runs of 1,000 tasks each.

-- Two flows whose queues count the same message ids, and one whose queue was created in mixed case.
select pgmq.create(queue) from unnest('{alpha, beta, MyFlow, live, stalled, ended, empty, bulk}'::text[]) as queue;

insert into pgflow.flows (flow_slug, opt_base_delay, opt_max_attempts, opt_timeout) values
  ('alpha', 0, 3, 60), ('beta', 0, 3, 60), ('MyFlow', 0, 3, 60), ('live', 0, 3, 60), ('stalled', 0, 3, 5),
  ('ended', 0, 1, 60), ('empty', 0, 3, 60), ('bulk', 0, 3, 60);
insert into pgflow.steps (flow_slug, step_slug, step_type, step_index, deps_count) values
  ('alpha', 'only', 'single', 0, 0), ('beta', 'only', 'single', 0, 0),
  ('MyFlow', 'first', 'single', 0, 0), ('MyFlow', 'second', 'single', 1, 1),
  ('live', 'each', 'map', 0, 0), ('live', 'left', 'single', 1, 1), ('live', 'right', 'single', 2, 1),
  ('live', 'join', 'single', 3, 2),
  ('stalled', 'only', 'single', 0, 0),
  ('ended', 'a', 'map', 0, 0), ('ended', 'b', 'map', 1, 0), ('ended', 'never', 'single', 2, 2),
  ('bulk', 'each', 'map', 0, 0);
update pgflow.steps set opt_max_attempts = 1, opt_base_delay = 2, opt_timeout = 7, opt_start_delay = 0,
  required_input_pattern = '{"n": 12345678901234567890.10}', forbidden_input_pattern = '{}', when_unmet = 'skip-cascade',
  when_exhausted = 'skip'
where (flow_slug, step_slug) = ('ended', 'never');
insert into pgflow.deps (flow_slug, dep_slug, step_slug) values
  ('MyFlow', 'first', 'second'), ('live', 'each', 'left'), ('live', 'each', 'right'), ('live', 'left', 'join'),
  ('live', 'right', 'join'), ('ended', 'a', 'never'), ('ended', 'b', 'never');

insert into pgflow.workers (worker_id, queue_name, function_name, deprecated_at, stopped_at) values
  ('00000000-0000-0000-0000-00000000000a', 'MyFlow', 'running', null, null),
  ('00000000-0000-0000-0000-00000000000b', 'live', 'stopped', '2030-01-02', '2030-01-03');
insert into pgflow.worker_functions (function_name, enabled, debounce, last_invoked_at, start_mode) values
  ('running', true, '7 s', '2030-01-01', 'http'), ('stopped', false, '6 s', null, 'process');

create function pg_temp.id(n integer) returns uuid language sql as $$
  select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid
$$;
-- The message of a task, in the queue as it is listed.
create function pg_temp.send(flow text, run integer, step text, task integer) returns bigint language sql as $$
  select m from pgmq.send(flow, jsonb_build_object(
    'flow_slug', flow, 'run_id', pg_temp.id(run), 'step_slug', step, 'task_index', task)) as m
$$;

insert into pgflow.runs (run_id, flow_slug, status, input, output, remaining_steps, started_at, completed_at, failed_at)
values
  (pg_temp.id(1), 'alpha', 'started', '{"who": "alpha"}', null, 1, now() - interval '1 hour', null, null),
  (pg_temp.id(2), 'beta', 'started', '{"who": "beta"}', null, 1, now() - interval '1 hour', null, null),
  (pg_temp.id(3), 'MyFlow', 'started', '{"huge": 1e400, "zero": 1.10}', null, 2, now() - interval '1 hour', null, null),
  (pg_temp.id(4), 'live', 'started', '[10, 20, 30, 40]', null, 4, now() - interval '1 hour', null, null),
  (pg_temp.id(5), 'stalled', 'started', '{"was": "stalled"}', null, 1, now() - interval '1 hour', null, null),
  (pg_temp.id(6), 'stalled', 'started', '{"was": "given up"}', null, 1, now() - interval '1 hour', null, null),
  (pg_temp.id(7), 'ended', 'failed', '[1]', null, 2, now() - interval '2 days', null, now() - interval '1 day'),
  (pg_temp.id(8), 'ended', 'completed', '[]', '{"never": {"ü": 1.10}}', 0, now() - interval '2 days',
   now() - interval '1 day', null),
  (pg_temp.id(9), 'empty', 'completed', '{}', null, 0, now() - interval '2 days', now() - interval '1 day', null);

insert into pgflow.step_states (
  flow_slug, run_id, step_slug, status, initial_tasks, remaining_tasks, remaining_deps, created_at, started_at,
  completed_at, failed_at, skipped_at, skip_reason, error_message, output)
select flow, pg_temp.id(run), step, status, initial, remaining, deps, now() - interval '1 hour',
  case when started then now() - interval '1 hour' end,
  case status when 'completed' then now() end, case status when 'failed' then now() end,
  case status when 'skipped' then now() end, reason, error, output::jsonb
from (values
  ('alpha',   1, 'only',   'started',   1,    1,    0, true,  null, null, null),
  ('beta',    2, 'only',   'started',   1,    1,    0, true,  null, null, null),
  ('MyFlow',  3, 'first',  'started',   1,    1,    0, true,  null, null, null),
  ('MyFlow',  3, 'second', 'created',   1,    null, 1, false, null, null, null),
  ('live',    4, 'each',   'started',   4,    3,    0, true,  null, null, null),
  ('live',    4, 'left',   'created',   1,    null, 1, false, null, null, null),
  ('live',    4, 'right',  'created',   1,    null, 1, false, null, null, null),
  ('live',    4, 'join',   'created',   1,    null, 2, false, null, null, null),
  ('stalled', 5, 'only',   'started',   1,    1,    0, true,  null, null, null),
  ('stalled', 6, 'only',   'started',   1,    1,    0, true,  null, null, null),
  ('ended',   7, 'a',      'failed',    4,    3,    0, true,  null, 'it broke', null),
  ('ended',   7, 'b',      'skipped',   2,    null, 0, true,  'handler_failed', 'used up', null),
  ('ended',   7, 'never',  'created',   1,    null, 1, false, null, null, null),
  ('ended',   8, 'a',      'completed', 0,    0,    0, true,  null, null, '[]'),
  ('ended',   8, 'b',      'skipped',   null, null, 0, false, 'condition_unmet', null, null),
  ('ended',   8, 'never',  'completed', 1,    0,    0, true,  null, null, '{"ü": 1.10}')
) as s (flow, run, step, status, initial, remaining, deps, started, reason, error, output);

-- A message is live while its task is unfinished; those of the ended runs were sent and archived, or never sent.
insert into pgflow.step_tasks (
  flow_slug, run_id, step_slug, task_index, status, message_id, attempts_count, queued_at, started_at, completed_at,
  failed_at, error_message, output, last_worker_id, requeued_count, last_requeued_at, permanently_stalled_at)
select flow, pg_temp.id(run), step, task, status, case when sent then pg_temp.send(flow, run, step, task) end, attempts,
  now() - interval '1 hour',
  case when attempts > 0 and status <> 'queued' then now() - interval '1 hour' * least(age, 1) end,
  case status when 'completed' then now() end, case status when 'failed' then now() end, error, output::jsonb,
  case when attempts > 0 then '00000000-0000-0000-0000-00000000000a'::uuid end, requeued,
  case when requeued > 0 then now() - interval '30 minutes' end, case when requeued = 3 then now() end
from (values
  ('alpha',   1, 'only',  0, 'queued',    true,  0, 0, 0, null, null),
  ('beta',    2, 'only',  0, 'queued',    true,  0, 0, 0, null, null),
  ('MyFlow',  3, 'first', 0, 'queued',    true,  2, 0, 0, 'failed twice', null),
  ('live',    4, 'each',  0, 'completed', true,  1, 0, 0, null, '10'),
  ('live',    4, 'each',  1, 'started',   true,  1, 0, 0, null, null),
  ('live',    4, 'each',  2, 'queued',    true,  1, 0, 0, 'not yet', null),
  ('live',    4, 'each',  3, 'queued',    true,  0, 0, 0, null, null),
  ('stalled', 5, 'only',  0, 'started',   true,  1, 1, 1, null, null),
  ('stalled', 6, 'only',  0, 'started',   true,  1, 1, 3, null, null),
  ('ended',   7, 'a',     0, 'completed', true,  1, 1, 0, null, '[1.10, "", null]'),
  ('ended',   7, 'a',     1, 'failed',    true,  1, 1, 0, 'it broke', '{"kept": true}'),
  ('ended',   7, 'a',     2, 'cancelled', null,  0, 0, 0, null, null),
  ('ended',   7, 'a',     3, 'cancelled', true,  1, 1, 0, null, null),
  ('ended',   7, 'b',     0, 'failed',    true,  1, 1, 0, 'used up', null),
  ('ended',   7, 'b',     1, 'skipped',   false, 0, 0, 0, null, null),
  ('ended',   8, 'never', 0, 'completed', true,  1, 1, 0, null, '{"ü": 1.10}')
) as t (flow, run, step, task, status, sent, attempts, age, requeued, error, output);

select from pgflow.step_tasks t, pgmq.archive(t.flow_slug, t.message_id)
where t.status not in ('queued', 'started') or t.permanently_stalled_at is not null;
select from pgmq.set_vt('stalled', 1, 3600) as one, pgmq.set_vt('live', 2, 3600) as other;

-- A long past.
insert into pgflow.runs (run_id, flow_slug, status, input, output, remaining_steps, completed_at)
select pg_temp.id(1000 + n), 'bulk', 'completed', '[]', '{}', 0, now() from generate_series(1, :bulk) n;
insert into pgflow.step_states (flow_slug, run_id, step_slug, status, initial_tasks, remaining_tasks, started_at, completed_at, output)
select 'bulk', pg_temp.id(1000 + n), 'each', 'completed', 1000, 0, now(), now(), '[]' from generate_series(1, :bulk) n;
insert into pgflow.step_tasks (
  flow_slug, run_id, step_slug, task_index, status, message_id, attempts_count, started_at, completed_at, output, last_worker_id)
select 'bulk', pg_temp.id(1000 + ((m - 1) / 1000)::integer + 1), 'each', (m - 1) % 1000, 'completed', m, 1, now(), now(),
  to_jsonb(m), '00000000-0000-0000-0000-00000000000a'
from pgmq.send_batch('bulk', array_fill('{}'::jsonb, array[1000 * :bulk])) m;
select count(*) from pgmq.archive('bulk', array(select msg_id from pgmq.q_bulk));
