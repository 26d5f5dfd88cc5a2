// What calls leave behind in their backend: nothing that grows. Measured in bytes, after a warm-up that makes every plan:
// the process's private memory, and PostgreSQL's own count of its memory contexts.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { freshDatabase } from '../clients/database.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)
const MB = 1024 * 1024

/** A connection, and how many bytes its backend has grown since `settle` was called on it. */
async function backend() {
  const connection = connect({ fetch_types: false })
  const [{ pid }] = await connection`select pg_backend_pid() as pid`
  const measure = async () => {
    const [{ contexts }] = await connection`select sum(used_bytes)::float8 as contexts from pg_backend_memory_contexts`
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    return { private: Number(status.match(/^RssAnon:\s+(\d+) kB$/m)[1]) * 1024, contexts }
  }
  let before
  return {
    run: (statement) => connection.unsafe(statement),
    settle: async () => { before = await measure() },
    growsLessThan: async (limits) => {
      const after = await measure()
      for (const kind of ['private', 'contexts']) {
        const grown = after[kind] - before[kind]
        assert.ok(grown < limits[kind], `${kind} memory grew by ${(grown / MB).toFixed(1)} MB`)
      }
    },
  }
}

const run = (n) => `00000000-0000-0000-0000-${String(n).padStart(12, '0')}`
await sql`select from pgflow.create_flow('big', max_attempts => 1000, base_delay => 0)`
await sql`select from pgflow.add_step('big', 'one', required_input_pattern => '{"a": []}', when_unmet => 'skip')`
await sql`select from pgflow.add_step('big', 'two', '{one}')`

const claim = `select from pgflow.start_tasks('big', array(select msg_id from pgmq.q_big), null)`
const HUGE = `jsonb_build_object('a', jsonb_build_array(repeat('x', 40 * 1024 * 1024)))`

/** Passes a value as input, output, and error message; through a condition, and on to the next step. */
const through = (n, value) => [
  `select from pgflow.start_flow('big', ${value}, '${run(n)}')`,
  claim,
  `select from pgflow.fail_task('${run(n)}', 'one', 0, (${value})::text)`,
  claim,
  `select from pgflow.complete_task('${run(n)}', 'one', 0, ${value})`,
  claim,
  `select from pgflow.complete_tasks('{${run(n)}}', '{two}', '{0}', array[(${value})::jsonb])`,
  `select from pgflow.get_run_with_states('${run(n)}')`,
]

test('values of 40 MB leave nothing in the backend', { timeout: 300000 }, async () => {
  const { run, settle, growsLessThan } = await backend()
  const pass = async (n, value) => { for (const statement of through(n, value)) await run(statement) }
  await pass(1, `'{"a": [1]}'`)
  await pass(2, HUGE)
  await settle()
  for (const n of [3, 4]) await pass(n, HUGE)
  // Each value comes along eight times in a pass: what stays of one would be 40 MB.
  await growsLessThan({ private: 20 * MB, contexts: MB })
  assert.equal((await sql`select count(*)::int as n from pgflow.runs where status = 'completed'`)[0].n, 4)
})

const many = (element, count = 100000) => `(select array_agg(${element}) from generate_series(1, ${count}) i)`

test('arrays of 100,000 elements leave nothing in the backend', { timeout: 300000 }, async () => {
  const { run: call, settle, growsLessThan } = await backend()
  const calls = [
    `set client_min_messages = error`,
    `select from pgflow.start_tasks('big', ${many('i + 1000000')}, null)`,
    `select from pgflow.set_vt_batch('big', ${many('i + 1000000')}, ${many('i::int')})`,
    `select from pgflow.complete_tasks(${many(`'${run(99)}'::uuid`)}, ${many(`'one'::text`)}, ${many('i::int')}, ${many(`'{}'::jsonb`)})`,
    `do $$ begin perform pgflow.add_step('big', 'wide', ${many(`'s' || i`)}); exception when foreign_key_violation then null; end $$`,
    `do $$ begin perform pgflow._create_flow_from_shape('wide',
       (select jsonb_build_object('steps', jsonb_agg(jsonb_build_object('slug', '-'))) from generate_series(1, 100000)));
       exception when invalid_parameter_value then null; end $$`,
  ]
  // One after the other, since what one frees another would fill. 100,000 ids are 0.8 MB, the least that can stay of a call.
  for (const statement of calls) {
    const times = async (count) => { for (let n = 0; n < count; n += 1) await call(statement) }
    await times(3)
    await settle()
    await times(6)
    await growsLessThan({ private: 2 * MB, contexts: MB })
  }
})

// Each fails in another place: in a constraint, in pgflow, in PGMQ, in a statement's preparation. Long texts that are new in
// each call, so that what is kept of one shows after hundreds. Of a queue's name the first 63 characters make a table's
// name, and stay the same: PostgreSQL remembers each name of a table that does not exist.
const FAILING = [
  `pgflow.create_flow(repeat('-', 1000) || n)`,
  `pgflow.create_flow(null)`,
  `pgflow.add_step('nowhere' || n, repeat('x', 1000))`,
  `pgflow.start_flow(repeat('x', 1000) || n, '{}')`,
  `pgflow.start_flow('big', null)`,
  `pgflow.set_vt_batch(repeat('x', 20000) || n, '{1}', '{1}')`,
  `pgflow.set_vt_batch('"' || repeat('y', 1000) || n, '{1}', '{1}')`,
  `pgflow.set_vt_batch(repeat(';', 1000) || n, '{1}', '{1}')`,
  `pgflow.start_tasks('big', '{999}', gen_random_uuid(), repeat('z', 1000) || n) limit 0; perform 1/0`,
  `pgflow.complete_tasks('{null}', '{}', '{}', '{}')`,
  `pgflow.cascade_resolve_conditions(gen_random_uuid())`,
  `pgflow.ensure_flow_compiled('f' || n, jsonb_build_array(repeat('x', 1000)))`,
  `pgflow.track_worker_function(repeat('x', 1000) || n, 'none')`,
  `pgflow.setup_requeue_stalled_tasks_cron(repeat('x', 1000))`,
]

test('a backend that fails 10,000 calls does not grow', { timeout: 300000 }, async () => {
  const { run: call, settle, growsLessThan } = await backend()
  await call(`set client_min_messages = error`)
  const fail = async (from, count, calls = FAILING) => {
    for (const failing of calls) {
      await call(`do $$
        declare failures int := 0;
        begin
          for n in ${from} .. ${from + count - 1} loop
            begin
              perform ${failing.startsWith('pgflow.start_tasks') ? failing.replace('pgflow', 'from pgflow') : failing};
            exception when others then failures := failures + 1;
            end;
          end loop;
          assert failures = ${count}, format('%s of ${count} calls failed: %s', failures, ${`$f$${failing}$f$`});
        end $$`)
    }
  }
  await fail(1, 100)
  await settle()
  const each = Math.ceil(10000 / FAILING.length)
  await fail(1000, each)
  await growsLessThan({ private: 2 * MB, contexts: 0.5 * MB })
  // A statement that is prepared and then refused.
  await sql.unsafe('create role memory_worker; grant usage on schema pgflow, pgmq to memory_worker')
  await call('set role memory_worker')
  await fail(1, 1000, [`pgflow.set_vt_batch('big', '{1}', '{1}')`])
  await call('reset role')
  // Once more without a subtransaction around each: the whole transaction ends.
  for (let n = 0; n < 1000; n += 1) {
    await assert.rejects(call(`select ${FAILING[5].replace('|| n', `|| ${50000 + n}`)}`))
  }
  await growsLessThan({ private: 2 * MB, contexts: 0.5 * MB })
})

test('a backend that works through many queues does not grow', { timeout: 300000 }, async () => {
  const { run: call, settle, growsLessThan } = await backend()
  const visit = (from, to) => call(`do $$ begin
    for n in ${from} .. ${to} loop
      perform pgmq.create('many_' || n);
      perform pgflow.set_vt_batch('many_' || n, '{1}', '{1}');
      perform pgmq.drop_queue('many_' || n);
    end loop; end $$`)
  for (const n of [1, 101, 201]) await visit(n, n + 99)
  await settle()
  for (const n of [301, 401, 501, 601]) await visit(n, n + 99)
  await growsLessThan({ private: 4 * MB, contexts: MB })
})
