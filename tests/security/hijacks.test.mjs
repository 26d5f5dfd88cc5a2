// Code of others in pgflow's way: search paths, temporary objects, schemas that pgflow calls into, PGMQ's own functions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brokenInvariants, freshDatabase, load } from '../clients/database.mjs'
import { code, documented, failure } from './attempts.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)
const FIXTURES = ['realtime', 'cron', 'net', 'vault'].map((name) => `tests/fixtures/${name}.sql`)
const [{ database }] = await sql`select current_database() as database`
const isSuperuser = async (role) => (await sql`select rolsuper from pg_roles where rolname = ${role}`)[0].rolsuper
const become = (role) => `begin execute 'alter role ${role} superuser'; return null; end`

/** Makes the objects that pgflow looks for, as `role`, with code that makes the role a superuser. */
const traps = (role) => ({
  realtime: {
    make: `create function realtime.send(jsonb, text, text, boolean) returns text language plpgsql as $$${become(role)}$$`,
    call: `select pgflow.start_flow_with_states('trapped', '{}')`,
  },
  cron: {
    make: `create table cron.job (jobname text, username text);
           create function cron.schedule(text, text, text) returns bigint language plpgsql as $$${become(role)}$$`,
    call: `select pgflow.setup_requeue_stalled_tasks_cron()`,
  },
  net: {
    make: `create function net.http_post(url text, body jsonb, headers jsonb) returns bigint language plpgsql as $$${become(role)}$$`,
    call: `set app.settings.jwt_secret = 'super-secret-jwt-token-with-at-least-32-characters-long'; select pgflow.ensure_workers()`,
  },
  vault: {
    make: `create function vault.trap() returns text language plpgsql as $$${become(role)}$$;
           create view vault.decrypted_secrets as select vault.trap() as name, 'x'::text as decrypted_secret`,
    call: `create schema net; create function net.http_post() returns int language sql as 'select 1';
           set app.settings.jwt_secret = ''; select pgflow.ensure_workers()`,
  },
})

test('a schema realtime, cron, net or vault of another role is refused', async () => {
  await sql.unsafe(`create role hijacks_mallory login; grant create on database ${database} to hijacks_mallory`)
  await sql`select from pgflow.create_flow('trapped')`
  await sql`select pgflow.track_worker_function('trapped')`
  const mallory = connect({ username: 'hijacks_mallory' })
  for (const [schema, { make, call }] of Object.entries(traps('hijacks_mallory'))) {
    await mallory.unsafe(`create schema ${schema}; ${make}`)
    const error = await failure(sql, call)
    assert.equal(error?.code, '42501', schema)
    assert.match(error.message, new RegExp(`^schema "${schema}" belongs to role "hijacks_mallory"`))
    await sql.unsafe(`drop schema ${schema} cascade`)
  }
  assert.equal(await isSuperuser('hijacks_mallory'), false)
  // A schema of that name without what pgflow looks for is nobody's business.
  await mallory.unsafe('create schema realtime; create table realtime.send ()')
  assert.equal(await code(sql, `select pgflow.start_flow_with_states('trapped', '{}')`), 'answered')
  await sql`drop schema realtime cascade`
  await sql`drop schema if exists net cascade`
})

test('a schema of a role with the same rights is used', async () => {
  await sql.unsafe(`
    create role hijacks_app login;
    grant create on database ${database} to hijacks_app;
    grant usage on schema pgflow to hijacks_app;
    grant select, insert, update on all tables in schema pgflow to hijacks_app`)
  const app = connect({ username: 'hijacks_app' })
  await app.unsafe(`
    create schema realtime;
    create table realtime.seen (event text);
    create function realtime.send(jsonb, text, text, boolean) returns void language sql as 'insert into realtime.seen values ($2)'`)
  await app`select from pgflow.start_flow('trapped', '{}')`
  assert.deepEqual((await app`select event from realtime.seen`).map((row) => row.event), ['run:started', 'run:completed'])
  assert.equal(await code(sql, `select from pgflow.start_flow('trapped', '{}')`), '42501')
  await sql`alter schema realtime owner to postgres`
  assert.equal(await code(sql, `select from pgflow.start_flow('trapped', '{}')`), 'answered')
  await sql`drop schema realtime cascade`
  await sql`select pgflow.delete_flow_and_data('trapped')`
})

/** Calls every function, most of them deep inside, on a connection with this search path. */
async function walkThrough(path) {
  const [r1, r2, r3] = [1, 2, 3].map((n) => `00000000-0000-0000-0000-00000000000${n}`)
  const victim = connect({ fetch_types: false })
  await victim.unsafe(`
    create domain pg_temp.text as pg_catalog.text check (hostile.steps_in(value));
    create domain pg_temp.jsonb as pg_catalog.jsonb check (hostile.steps_in(value));
    create temporary table flows (flow_slug pg_catalog.text); create temporary table step_tasks (run_id uuid);
    create temporary view pg_class as select * from hostile."row"();
    set search_path = ${path}`)
  const called = new Set()
  const call = (name, args = '') => {
    called.add(name)
    return victim.unsafe(`select * from pgflow.${name}(${args})`)
  }
  const ids = async () => `'{${(await sql`select msg_id from pgmq.q_path order by 1`).map((row) => row.msg_id)}}'`
  const isLocal = (secret) => victim.unsafe(`select pg_catalog.set_config('app.settings.jwt_secret', '${secret}', false)`)
  const shape = `'{"steps": [{"slug": "a", "stepType": "map", "requiredInputPattern": {"defined": true, "value": {"k": 1}}}]}'`

  await call('create_flow', `'path', '2', '0', '1'`)
  await call('add_step', `'path', 'a', when_exhausted => 'fail'`)
  await call('add_step', `'path', 'm', '{a}', step_type => 'map'`)
  await call('add_step', `'path', 'c', '{m}', required_input_pattern => '{"m": [9]}', when_unmet => 'skip-cascade'`)
  await call('add_step', `'path', 'd', '{c}'`)
  await isLocal('super-secret-jwt-token-with-at-least-32-characters-long')
  await call('is_local')
  await call('_create_flow_from_shape', `'shaped', '{"steps": [{"slug": "z"}]}'`)
  await call('ensure_flow_compiled', `'shaped', ${shape}`)
  await call('_get_flow_shape', `'shaped'`)
  await call('_compare_flow_shapes', `${shape}, '{}'`)

  await call('start_flow', `'path', '{"x": 1}', '${r1}'`)
  await call('start_flow_with_states', `'path', '{"x": 1}', '${r2}'`)
  await call('get_run_with_states', `'${r2}'`)
  await call('start_tasks', `'path', ${await ids()}, null, 'PATH'`)
  await call('fail_task', `'${r1}', 'a', '0', 'once more'`)
  await call('start_tasks', `'path', ${await ids()}, null`)
  await call('complete_task', `'${r1}', 'a', '0', '[1, 2]'`)
  for (let n = 0; n < 2; n += 1) {
    await call('fail_task', `'${r2}', 'a', '0', 'for good'`)
    await call('start_tasks', `'path', ${await ids()}, null`)
  }
  await call('complete_tasks', `'{${r1}, ${r1}}', '{m, m}', '{0, 1}', '{1, 2}'`)
  const ended = await sql`select run_id, status from pgflow.runs order by run_id`
  assert.deepEqual(ended.map((row) => row.status), ['completed', 'failed'])
  assert.deepEqual(await brokenInvariants(sql), [])

  await call('start_flow', `'path', '{}', '${r3}'`)
  await call('start_tasks', `'path', ${await ids()}, null`)
  await sql`update pgflow.step_tasks set queued_at = queued_at - interval '1 day', started_at = started_at - interval '1 day'
            where status = 'started'`
  await call('requeue_stalled_tasks')
  await call('set_vt_batch', `'path', ${await ids()}, '{5}'`)
  await call('_archive_task_message', `'${r3}', 'a', '0'`)
  await call('cascade_resolve_conditions', `'${r3}'`)
  await call('cascade_complete_taskless_steps', `'${r3}'`)
  await call('start_ready_steps', `'${r3}'`)
  await call('_cascade_force_skip_steps', `'${r3}', 'a', 'condition_unmet'`)
  await call('maybe_complete_run', `'${r3}'`)

  await call('is_valid_slug', `'path'`)
  await call('is_valid_queue_name', `'path'`)
  await call('calculate_retry_delay', `'1', '2'`)
  await call('poll_for_tasks', `'path', '1', '1'`)
  await call('track_worker_function', `'f'`)
  await call('mark_worker_stopped', `'${r1}'`)
  await call('ensure_workers')
  await isLocal('')
  await call('ensure_workers')
  await call('setup_ensure_workers_cron')
  await call('setup_requeue_stalled_tasks_cron')
  await call('cleanup_ensure_workers_logs')
  await call('queue_depth')
  await call('flow_graph', `'path'`)
  await call('run_graph', `'${r3}'`)
  await call('delete_flow_and_data', `'path'`)
  await call('delete_flow_and_data', `'shaped'`)
  return { victim, called: [...called].sort() }
}

test('a hostile search path is never used', async () => {
  await load(sql, ...FIXTURES, 'tests/security/hostile.sql')
  const functions = (await sql`select proname from pg_proc where pronamespace = 'pgflow'::regnamespace order by 1`)
  // Each path on a connection of its own, so that every plan is made with it.
  for (const path of ['hostile, pg_catalog', 'pg_temp, hostile, pg_catalog']) {
    const { victim, called } = await walkThrough(path)
    assert.deepEqual(called, functions.map((row) => row.proname))
    assert.deepEqual([...(await sql`select last_value, is_called from hostile.hits`)], [{ last_value: '1', is_called: false }], path)
    // The traps work: code that takes its names from the path steps into each kind.
    const seen = []
    for (const trapped of [`select lower('X')`, `select 1 = 1`, `select 'x'::text`, `select from steps`]) {
      await victim.unsafe(trapped)
      seen.push((await sql`select last_value from hostile.hits`)[0].last_value)
    }
    assert.deepEqual(seen, ['1', '2', '3', '4'], path)
    await sql`select setval('hostile.hits', 1, false)`
  }
  await sql`drop schema hostile, realtime cascade`
})

/** Has a role call a PGMQ function with a type of its own as `text`, then `call`; tells whether that made it a superuser. */
async function typeAttack(role, call) {
  const attacker = connect({ username: role, fetch_types: false })
  await attacker.unsafe(`
    create function pg_temp.rises(pg_catalog.text) returns boolean language plpgsql as $$
    begin
      if current_user = 'postgres' then alter role ${role} superuser; end if;
      return true;
    end $$;
    create domain pg_temp.text as pg_catalog.text check (pg_temp.rises(value));
    set search_path = pg_temp, pg_catalog`)
  for (const first of [
    `pgmq.send('none', '{}', null::jsonb, now())`, `pgmq.send_batch('none', '{}', null, now())`, `pgmq.archive('none', 1)`,
    `pgmq.format_table_name('none', 'q')`,
  ]) await failure(attacker, `select ${first}`)
  await attacker.unsafe(`alter domain pg_temp.text rename to harmless; reset search_path`)
  const outcome = await code(attacker, call)
  const rose = await isSuperuser(role)
  await sql.unsafe(`alter role ${role} nosuperuser`)
  return { outcome, rose }
}

const START = `select pgflow.start_flow_with_states('attacked', '{}')`

test('a caller with both rights and no pinned path is the hole that is left', async () => {
  await sql.unsafe(`
    create role hijacks_both login; grant usage on schema pgflow, pgmq to hijacks_both;
    select from pgflow.create_flow('attacked'); select from pgflow.add_step('attacked', 'a')`)
  assert.deepEqual(await typeAttack('hijacks_both', START), { outcome: 'answered', rose: true })
})

test('with the documented grants a type made by a worker never runs as the owner', async () => {
  const blocks = await documented()
  for (const block of blocks) await sql.unsafe(block.replace(/\bflow_(designer|producer|worker|keeper)\b/g, 'hijacks_$1'))
  assert.deepEqual(await typeAttack('hijacks_worker', START), { outcome: '42501', rose: false })
  // It can start runs as itself only.
  await sql.unsafe(`grant insert on pgflow.runs, pgflow.step_states to hijacks_worker;
    grant select, insert, update, delete on pgmq.q_attacked, pgmq.a_attacked to hijacks_worker`)
  assert.deepEqual(await typeAttack('hijacks_worker', `select from pgflow.start_flow('attacked', '{}')`),
    { outcome: 'answered', rose: false })
})

test("with PGMQ's search path pinned a caller's type is never used", async () => {
  await sql`grant execute on function pgflow.start_flow_with_states to public`
  assert.equal((await typeAttack('hijacks_both', START)).rose, true)
  await load(sql, 'sql/optional/pin_pgmq_search_path.sql')
  assert.deepEqual(await typeAttack('hijacks_both', START), { outcome: 'answered', rose: false })
})
