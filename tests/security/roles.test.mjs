// The roles of docs/security.md, with exactly the grants that it lists.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brokenInvariants, freshDatabase, load } from '../clients/database.mjs'
import { work } from '../clients/worker.mjs'
import { TABLELESS, TABLES, callsOfAll, code, documented, page } from './attempts.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)
for (const block of await documented()) await sql.unsafe(block)
await load(sql, 'tests/fixtures/cron.sql', 'tests/fixtures/net.sql', 'tests/fixtures/vault.sql')
await sql.unsafe(`create role roles_nobody login; create role roles_client login; grant usage on schema pgflow to roles_client`)

const [designer, producer, worker, keeper] =
  ['flow_designer', 'flow_producer', 'flow_worker', 'flow_keeper'].map((username) => connect({ username }))
const nobody = connect({ username: 'roles_nobody' })
const RUN = '00000000-0000-0000-0000-000000000001'
const calls = await callsOfAll(sql)

async function refusedBut(role, allowed) {
  const answered = []
  for (const [name, call] of calls) {
    const seen = await code(role, call)
    if (seen !== '42501') answered.push(name)
  }
  assert.deepEqual(answered, [...allowed].sort())
}

test('a designer defines, compiles and deletes flows', async () => {
  await designer`select from pgflow.create_flow('orders', base_delay => 0)`
  await designer`select from pgflow.add_step('orders', 'list')`
  await designer`select from pgflow.add_step('orders', 'each', '{list}', step_type => 'map')`
  await designer`select from pgflow.add_step('orders', 'sum', '{each}')`
  const shape = '{"steps": [{"slug": "a", "requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": false}}]}'
  const compile = () => designer`select pgflow.ensure_flow_compiled('gone', ${shape}::text::jsonb) ->> 'status' as status`
  assert.equal((await compile())[0].status, 'compiled')
  assert.equal((await compile())[0].status, 'verified')
  await sql`select from pgflow.start_flow('gone', '{}')`
  await designer`select pgflow.delete_flow_and_data('gone')`
  assert.deepEqual((await sql`select flow_slug from pgflow.flows`).map((row) => row.flow_slug), ['orders'])
})

test('a producer starts a run and reads it', async () => {
  await producer`select pgflow.start_flow_with_states('orders', '{"day": 1}', ${RUN})`
  const [{ run }] = await producer`select pgflow.get_run_with_states(${RUN}) as run`
  assert.deepEqual([run.run.status, run.steps.length], ['started', 3])
  await refusedBut(producer, [...TABLELESS, 'start_flow_with_states', 'get_run_with_states'])
})

test('a worker registers, beats, claims, completes, fails and stops', async () => {
  const id = '00000000-0000-0000-0000-00000000000a'
  await worker`select pgflow.track_worker_function('orders-worker', 'process')`
  await worker`insert into pgflow.workers (worker_id, queue_name, function_name) values (${id}, 'orders', 'orders-worker')`
  const [beat] = await worker`
    update pgflow.workers set last_heartbeat_at = now() where worker_id = ${id} returning deprecated_at is not null as is_deprecated`
  assert.equal(beat.is_deprecated, false)
  let attempts = 0
  const executed = await work(worker, 'orders', RUN, {
    list: () => [1, 2, 3],
    each: (n) => {
      if (n === 2 && (attempts += 1) === 1) throw new Error('once more')
      return n * 10
    },
    sum: ({ each }) => each.reduce((a, b) => a + b),
  })
  assert.equal(executed, 6)
  const [{ status, output }] = await sql`select status, output from pgflow.runs where run_id = ${RUN}`
  assert.deepEqual([status, output], ['completed', { sum: 60 }])
  await worker`select pgflow.mark_worker_stopped(${id})`
  assert.deepEqual(await brokenInvariants(sql), [])
})

test('a worker can read and complete what another works on', async () => {
  const [first, second] = ['00000000-0000-0000-0000-00000000000b', '00000000-0000-0000-0000-00000000000c']
  const run = '00000000-0000-0000-0000-000000000005'
  await sql`insert into pgflow.workers (worker_id, queue_name, function_name) select id, 'orders', 'w' from unnest(${[first, second]}::uuid[]) id`
  await producer`select pgflow.start_flow_with_states('orders', '{"secret": 1}', ${run})`
  await worker`select from pgflow.start_tasks('orders', array(select msg_id from pgmq.read('orders', 30, 10)), ${first})`
  const other = connect({ username: 'flow_worker' })
  assert.deepEqual((await other`select input from pgflow.runs where run_id = ${run}`)[0].input, { secret: 1 })
  const [{ status }] = await other`select status from pgflow.complete_task(${run}, 'list', 0, '[]')`
  assert.equal(status, 'completed')
})

test('a producer can read any run whose id it knows', async () => {
  const [{ run_id: run }] = await sql`select run_id from pgflow.start_flow('orders', '{"of": "someone else"}')`
  const [{ input }] = await producer`select pgflow.get_run_with_states(${run}) #> '{run,input}' as input`
  assert.deepEqual(input, { of: 'someone else' })
  await sql`select from pgflow.start_tasks('orders', array(select msg_id from pgmq.q_orders), null)`
  await sql`select from pgflow.complete_task(${run}, 'list', 0, '[]')`
})

test('a worker cannot define, start, delete or recover anything', async () => {
  await sql`select from pgflow.start_flow('orders', '{}', '00000000-0000-0000-0000-000000000002')`
  const refused = {}
  for (const call of [
    `pgflow.create_flow('mine')`, `pgflow.add_step('orders', 'more')`, `pgflow.delete_flow_and_data('orders')`,
    `pgflow._create_flow_from_shape('mine', '{}')`, `pgflow.ensure_flow_compiled('mine', '{"steps": []}')`,
    `pgflow.start_flow('orders', '{}')`, `pgflow.start_flow_with_states('orders', '{}')`,
    `pgflow.requeue_stalled_tasks()`, `pgflow.cleanup_ensure_workers_logs()`,
    `pgflow.setup_requeue_stalled_tasks_cron()`, `pgflow.setup_ensure_workers_cron()`,
  ]) refused[call] = await code(worker, `select ${call}`)
  assert.deepEqual(new Set(Object.values(refused)), new Set(['42501']), JSON.stringify(refused))
})

test('a worker owns nothing and changes no definition', async () => {
  const owned = await sql`
    select classid::regclass, objid from pg_shdepend where refobjid = 'flow_worker'::regrole and deptype = 'o'`
  assert.deepEqual([...owned], [])
  const tables = await sql`
    select format('%I.%I', relnamespace::regnamespace, relname) as name from pg_class
    where relnamespace in ('pgflow'::regnamespace, 'pgmq'::regnamespace) and relkind = 'r'`
  const statements = tables.flatMap(({ name }) => [
    `drop table ${name}`, `truncate ${name}`, `alter table ${name} add column c int`, `alter table ${name} disable row level security`,
    `create trigger t before insert on ${name} execute function suppress_redundant_updates_trigger()`,
    `create policy p on ${name} using (true)`, `create rule r as on insert to ${name} do nothing`,
  ])
  for (const schema of ['pgflow', 'pgmq']) {
    statements.push(
      `create table ${schema}.t ()`, `create type ${schema}.text as enum ()`, `drop schema ${schema} cascade`,
      `create function ${schema}.f() returns int language sql as 'select 1'`)
  }
  statements.push(
    `drop function pgflow.start_tasks`, `alter function pgflow.start_tasks security definer`,
    `alter function pgflow.start_tasks reset search_path`, `drop extension pgflow`, `alter extension pgflow update`,
    `create schema realtime`, `delete from pgflow.runs`, `delete from pgflow.step_tasks`, `insert into pgflow.flows values ('mine')`,
    `update pgflow.steps set queue_name = 'mine'`)
  const others = []
  for (const statement of statements) {
    const seen = await code(worker, statement)
    if (seen !== '42501') others.push([statement, seen])
  }
  assert.deepEqual(others, [])
})

test('a keeper recovers stalled tasks and can do nothing else', async () => {
  await sql`select from pgflow.start_tasks('orders', array(select msg_id from pgmq.q_orders), null)`
  await sql`update pgflow.step_tasks set queued_at = queued_at - interval '1 day', started_at = started_at - interval '1 day'
            where status = 'started'`
  const [{ stalled }] = await sql`select count(*)::int as stalled from pgflow.step_tasks where status = 'started'`
  const [{ requeued }] = await keeper`select pgflow.requeue_stalled_tasks() as requeued`
  assert.ok(stalled > 0)
  assert.equal(requeued, stalled)
  await refusedBut(keeper, [...TABLELESS, 'requeue_stalled_tasks', 'get_run_with_states'])
})

test('a role without USAGE is refused by every function and table', async () => {
  await refusedBut(nobody, [])
  for (const table of TABLES) assert.equal(await code(nobody, `select from pgflow.${table}`), '42501')
})

test('a role with USAGE alone can start and read runs, and touches no table otherwise', async () => {
  await sql`grant execute on function pgflow.start_flow_with_states to public`
  const client = connect({ username: 'roles_client' })
  const run = '00000000-0000-0000-0000-000000000003'
  await client`select pgflow.start_flow_with_states('orders', '{}', ${run})`
  const [{ status }] = await client`select pgflow.get_run_with_states(${run}) #>> '{run,status}' as status`
  assert.equal(status, 'started')
  await refusedBut(client, [...TABLELESS, 'start_flow_with_states', 'get_run_with_states'])
  for (const table of TABLES) {
    for (const statement of [`select from pgflow.${table}`, `delete from pgflow.${table}`, `insert into pgflow.${table} default values`]) {
      assert.equal(await code(client, statement), '42501', statement)
    }
  }
  await sql`revoke execute on function pgflow.start_flow_with_states from public`
})

test('the definer functions are those that docs/security.md lists', async () => {
  const section = (await page()).split('## SECURITY DEFINER functions')[1].split('\n## ')[0]
  const listed = [...section.matchAll(/^\| `(\w+)` \| (yes|no) \|/gm)].map(([, name, isPublic]) => `${name} ${isPublic}`)
  // The grants above took start_flow_with_states from PUBLIC: another database has them as installed.
  await sql`create database security_installed`
  const installed = connect({ database: 'security_installed' })
  await installed`create extension pgflow cascade`
  const found = await installed`
    select proname, has_function_privilege('roles_nobody', oid, 'execute') as public from pg_proc
    where pronamespace = 'pgflow'::regnamespace and prosecdef`
  assert.deepEqual(found.map((row) => `${row.proname} ${row.public ? 'yes' : 'no'}`).sort(), listed.sort())
})

test("a definer function can have an owner without a superuser's rights", async () => {
  await sql.unsafe(`
    create role roles_starter;
    grant usage, create on schema pgflow to roles_starter;
    alter function pgflow.start_flow_with_states owner to roles_starter;
    revoke create on schema pgflow from roles_starter;
    grant flow_worker to roles_starter;
    grant insert on pgflow.runs, pgflow.step_states to roles_starter`)
  const run = '00000000-0000-0000-0000-000000000004'
  await producer`select pgflow.start_flow_with_states('orders', '{}', ${run})`
  const [{ status }] = await producer`select pgflow.get_run_with_states(${run}) #>> '{run,status}' as status`
  assert.equal(status, 'started')
  await sql`alter function pgflow.start_flow_with_states owner to postgres`
})

test('a trigger runs with the rights of whoever calls', async () => {
  await sql.unsafe(`create role roles_trigger login; grant usage on schema pgflow to roles_trigger;
    grant trigger on pgflow.runs to roles_trigger; grant create on schema public to roles_trigger`)
  await connect({ username: 'roles_trigger' }).unsafe(`
    create table seen (role name); grant insert on seen to public;
    create function trap() returns trigger language plpgsql as
      $$ begin insert into public.seen values (current_user); return new; end $$;
    create trigger trap before insert on pgflow.runs for each row execute function trap()`)
  await producer`select pgflow.start_flow_with_states('orders', '{}')`
  assert.deepEqual((await sql`select role from public.seen`).map((row) => row.role), ['postgres'])
})

test('a worker decides through a keeper about messages of every queue', async () => {
  await sql`select from pgmq.create('payroll')`
  await sql`select from pgmq.send('payroll', '{}')`
  assert.equal(await code(worker, 'select from pgmq.q_payroll'), '42501')
  const run = '00000000-0000-0000-0000-0000000000ff'
  await sql`select from pgflow.start_flow('orders', '{}', ${run})`
  await sql`select from pgflow.start_tasks('orders', array(select message_id from pgflow.step_tasks where run_id = ${run}), null)`
  await sql`alter table pgflow.step_tasks disable trigger queue_never_changes` // the tests' own
  await worker`
    update pgflow.step_tasks
    set queue_name = 'payroll', message_id = 1, requeued_count = 3, queued_at = now() - interval '1 day',
        started_at = now() - interval '1 day'
    where run_id = ${run} and status = 'started'`
  await keeper`select pgflow.requeue_stalled_tasks()`
  assert.equal((await sql`select count(*)::int as archived from pgmq.a_payroll`)[0].archived, 1)
})
