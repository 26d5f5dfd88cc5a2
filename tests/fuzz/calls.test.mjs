// Calls every function of schema pgflow with hostile and valid arguments: errors or results, never a crash.
//
// PGFLOW_FUZZ_SEED and PGFLOW_FUZZ_CALLS say which calls and how many. A new function is called by itself; a new type
// of argument needs values in values.mjs.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { brokenInvariants, defineFlow, freshDatabase } from '../clients/database.mjs'
import { work } from '../clients/worker.mjs'
import { definitions, move, starts, workers } from './moves.mjs'
import { POOLS, Values } from './values.mjs'

const seed = Number(process.env.PGFLOW_FUZZ_SEED ?? 1)
const calls = Number(process.env.PGFLOW_FUZZ_CALLS ?? 1000)
const { sql, connect } = await freshDatabase(import.meta.url)
const fixture = (name) => readFile(new URL(`../fixtures/${name}`, import.meta.url), 'utf8')
for (const name of ['realtime.sql', 'cron.sql', 'net.sql', 'vault.sql']) await sql.unsafe(await fixture(name))
await sql.unsafe(`
  alter database ${(await sql`select current_database() as name`)[0].name} set statement_timeout = '30s';
  create role fuzz_worker login; grant usage on schema pgflow, pgmq to fuzz_worker;
  grant select, insert, update on all tables in schema pgflow to fuzz_worker`)
/** One call in five is made by a role that may do a part of it. */
const [owner, worker] = [connect(), connect({ username: 'fuzz_worker' })]
const [{ started_at: serverStart }] = await sql`select pg_postmaster_start_time()::text as started_at`

const functions = await sql`
  select proname as name, coalesce(proargnames[1:pronargs], '{}') as names, pronargs - pronargdefaults as required,
         array(select format_type(t, null) from unnest(proargtypes) with ordinality as a (t, n) order by n) as types
  from pg_proc where pronamespace = 'pgflow'::regnamespace and prorettype <> 'trigger'::regtype
  order by proname, pronargs`

/** Functions that do only part of a move: their runs need not keep the rules. */
const isInternal = (name) => /^(_|cascade_|start_ready_steps|maybe_complete_run)/.test(name)

function drawCall(values) {
  const { name, names, required, types } = values.one(functions)
  const given = required + values.upTo(types.length - required)
  const named = values.chance(0.5)
  const args = types.slice(0, given).map((type, at) => {
    const value = values.of(type, names[at], isInternal(name))
    return named ? `${names[at]} => ${value}` : value
  })
  const call = `pgflow.${name}(${args.join(', ')})`
  const statement = values.one([
    `select * from ${call}`,
    `select ${call}`,
    `select f from generate_series(1, 2), ${call} as f limit 3`,
    `do $fuzz$ begin perform ${call}; exception when others then raise; end $fuzz$`,
  ])
  return { name, statement }
}

const REFUSALS = /^(0A|22|23|25|42|54|55)/
/** What PGMQ raises without a code of its own. */
const PGMQ_REFUSALS = /^queue name (contains invalid characters|is too long)/
const isRefusal = ({ code, message }) => REFUSALS.test(code) || (code === 'P0001' && PGMQ_REFUSALS.test(message))

async function outcome(statement, caller = owner) {
  try {
    await caller.unsafe(statement)
    return 'answered'
  } catch (error) {
    if (isRefusal(error)) return error.code
    const seen = `${error.code}: ${error.message}\nseed ${seed}, the statement was:\n${statement};`
    throw new Error(seen, { cause: error })
  }
}

async function prepare(n) {
  for (const statement of [...definitions(), ...starts(n)]) await outcome(statement)
}

const counts = new Map(functions.map(({ name }) => [name, new Map()]))

test('every call is answered or refused with an error of its own', async () => {
  for (const statement of workers(POOLS.worker)) await sql.unsafe(statement)
  const values = new Values(seed)
  for (let n = 0; n < calls; n += 1) {
    if (n % 50 === 0) {
      await prepare((values.oldest += 4))
      const secret = values.one(['super-secret-jwt-token-with-at-least-32-characters-long', 'another'])
      await owner`select set_config('app.settings.jwt_secret', ${secret}, false)`
    }
    for (let m = 0; m < 2; m += 1) await outcome(move(values))
    const { name, statement } = drawCall(values)
    const seen = await outcome(statement, values.chance(0.2) ? worker : owner)
    counts.get(name).set(seen, (counts.get(name).get(seen) ?? 0) + 1)
  }
  console.log(`seed ${seed}: ${calls} calls of ${functions.length} functions`)
  for (const [name, seen] of counts) console.log(`  ${name}: ${[...seen].sort().map((pair) => pair.join(' ')).join(', ')}`)
})

test('calls reach the inside of every function', () => {
  const neverAnswered = [...counts].filter(([, seen]) => !seen.has('answered')).map(([name]) => name)
  assert.deepEqual(neverAnswered, [])
})

test('the same seed draws the same calls', () => {
  const drawn = [seed, seed, seed + 1].map((of) => {
    const values = new Values(of)
    return Array.from({ length: 50 }, () => drawCall(values).statement).join('\n')
  })
  assert.equal(drawn[0], drawn[1])
  assert.notEqual(drawn[0], drawn[2])
})

test('no backend ended with a signal, and the server was never restarted', async () => {
  const log = await readFile(`${process.env.PGHOST}/log`, 'utf8')
  assert.deepEqual(log.match(/^.*(terminated by signal|PANIC|exited with exit code [^01]|reinitializ).*$/gm), null)
  const [{ started_at: now }] = await sql`select pg_postmaster_start_time()::text as started_at`
  assert.equal(now, serverStart)
})

test('runs that only public functions touched keep every rule', async () => {
  const broken = await brokenInvariants(sql)
  assert.deepEqual(broken.filter((line) => !line.includes(`-${POOLS.internal}`)), [])
})

test('a flow still runs to its end', async () => {
  await defineFlow(sql, 'sane', [{ slug: 'list' }, { slug: 'each', deps: ['list'], type: 'map' }])
  const [{ run_id: run }] = await sql`select run_id from pgflow.start_flow('sane', '{}')`
  await work(sql, 'sane', run, { list: () => [1, 2, 3], each: (n) => n * 10 })
  const [{ status, output }] = await sql`select status, output from pgflow.runs where run_id = ${run}`
  assert.deepEqual([status, output], ['completed', { each: [10, 20, 30] }])
})
