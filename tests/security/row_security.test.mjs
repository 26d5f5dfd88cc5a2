// Row security on pgflow's tables: an error for whoever it applies to, no effect on others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineFlow, freshDatabase, load } from '../clients/database.mjs'
import { work } from '../clients/worker.mjs'
import { TABLELESS, TABLES, callsOfAll, code, failure } from './attempts.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)
await load(sql, 'tests/fixtures/cron.sql', 'tests/fixtures/net.sql', 'tests/fixtures/vault.sql', 'sql/optional/prune_data_older_than.sql')
await defineFlow(sql, 'orders', [{ slug: 'list' }, { slug: 'each', deps: ['list'], type: 'map' }])
await sql.unsafe(`
  create role rls_worker login; create role rls_bypass login bypassrls; create role rls_owner login; create role rls_member login;
  create role rls_reader login;
  grant rls_owner to rls_member;
  grant usage on schema pgflow, pgmq to rls_worker, rls_bypass, rls_owner;
  grant all on all tables in schema pgflow, pgmq to rls_worker, rls_bypass, rls_owner;
  grant execute on all functions in schema pgflow to rls_worker, rls_owner;
  grant usage on schema pgflow to rls_reader; grant select on pgflow.runs to rls_reader`)
const worker = connect({ username: 'rls_worker' })
const calls = await callsOfAll(sql)
const CLAIM = `select from pgflow.start_tasks('orders', array(select msg_id from pgmq.q_orders), null)`

const everywhere = (what) => sql.unsafe(TABLES.map((table) => `alter table pgflow.${table} ${what}`).join('; '))

async function within(on, check, off = 'disable row level security') {
  await everywhere(on)
  try {
    await check()
  } finally {
    await everywhere(off)
  }
}

async function startRun() {
  const [{ run_id: run }] = await sql`select run_id from pgflow.start_flow('orders', '{}')`
  return run
}

async function finishes(connection) {
  const run = await startRun()
  await work(connection, 'orders', run, { list: () => [1, 2], each: (n) => n })
  const [{ status }] = await sql`select status from pgflow.runs where run_id = ${run}`
  assert.equal(status, 'completed')
}

test('row security on any table is an error for a worker that it applies to', async () => {
  await startRun()
  for (const table of TABLES) {
    await sql.unsafe(`alter table pgflow.${table} enable row level security`)
    const error = await failure(worker, CLAIM)
    assert.equal(error?.code, '42501', table)
    assert.equal(error.message, `row security of table "${table}" applies to role "rls_worker"`)
    assert.match(error.hint, /alter role "rls_worker" bypassrls;/)
    await sql.unsafe(`alter table pgflow.${table} disable row level security`)
  }
  assert.equal(await code(worker, CLAIM), 'answered')
  // Definer functions run as their owner, and set_vt_batch uses PGMQ's tables only.
  const [{ definers }] = await sql`
    select array_agg(proname::text) as definers from pg_proc where pronamespace = 'pgflow'::regnamespace and prosecdef`
  await within('enable row level security', async () => {
    for (const [name, call] of calls) {
      if ([...TABLELESS, ...definers, 'set_vt_batch', 'prune_data_older_than'].includes(name)) continue
      const error = await failure(worker, call)
      assert.match(error?.message ?? 'answered', /^row security of table/, name)
    }
  })
})

test('a policy that hides nothing is an error all the same', async () => {
  await sql.unsafe(TABLES.map((table) => `create policy all_rows on pgflow.${table} using (true) with check (true)`).join('; '))
  await within('enable row level security', async () => {
    assert.equal(await code(worker, CLAIM), '42501')
    for (const setting of ['on', 'off']) {
      assert.equal(await code(worker, `set row_security = ${setting}; ${CLAIM}`), '42501')
    }
  })
  await worker`reset row_security`
})

test('superusers, owners and roles with BYPASSRLS work on', async () => {
  await within('enable row level security', async () => {
    await finishes(sql)
    await finishes(connect({ username: 'rls_bypass' }))
    await everywhere('owner to rls_owner')
    await finishes(connect({ username: 'rls_owner' }))
    await finishes(connect({ username: 'rls_member' }))
  })
})

test('forced row security is an error for an owner that is no superuser', async () => {
  const owner = connect({ username: 'rls_owner' })
  await within('enable row level security, force row level security', async () => {
    const error = await failure(owner, CLAIM)
    assert.equal(error?.message, 'row security of table "flows" applies to role "rls_owner"')
    await finishes(sql)
    await sql`alter function pgflow.start_flow_with_states owner to rls_owner`
    assert.equal(await code(worker, `select pgflow.start_flow_with_states('orders', '{}')`), '42501')
    await sql`alter function pgflow.start_flow_with_states owner to postgres`
  }, 'disable row level security, no force row level security')
})

test('readers get what policies show them while runs go on', async () => {
  const reader = connect({ username: 'rls_reader' })
  await sql`create policy mine on pgflow.runs for select to rls_reader using (input ->> 'of' = current_user)`
  await sql`drop policy all_rows on pgflow.runs`
  await within('enable row level security', async () => {
    for (const of of ['rls_reader', 'someone']) {
      await reader`select pgflow.start_flow_with_states('orders', jsonb_build_object('of', ${of}::text))`
    }
    const seen = await reader`select distinct input ->> 'of' as of from pgflow.runs`
    assert.deepEqual(seen.map((row) => row.of), ['rls_reader'])
    await finishes(sql)
  })
})

test('pruning under row security is an error', async () => {
  const prune = `select pgflow.prune_data_older_than(interval '1 day')`
  await within('enable row level security', async () => {
    assert.equal(await code(worker, prune), '42501')
    assert.equal(await code(sql, prune), 'answered')
  })
})

test("on a queue's table row security fails sending and claiming", async () => {
  await startRun()
  await sql`alter table pgmq.q_orders enable row level security`
  const [{ ids }] = await sql`select array_agg(msg_id)::text as ids from pgmq.q_orders`
  assert.equal(await code(worker, `select pgflow.start_flow('orders', '{}')`), '42501')
  assert.equal(await code(worker, `select from pgflow.start_tasks('orders', '${ids}', null)`), '55000')
  assert.deepEqual([...(await worker`select from pgmq.read('orders', 0, 10)`)], [])
  await sql`alter table pgmq.q_orders disable row level security`
  assert.equal(await code(worker, `select from pgflow.start_tasks('orders', '${ids}', null)`), 'answered')
})
