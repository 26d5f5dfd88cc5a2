// The database that a load runs in, and what is asked of it afterwards. PGHOST, PGPORT and PGUSER lead to the server.
import postgres from '../clients/node_modules/postgres/src/index.js'
import { brokenInvariants, load as run } from '../clients/database.mjs'
import { check } from './checks.mjs'
import { drain } from './drain.mjs'
import { defineFlows } from './flows.mjs'

export const connect = (database, options = {}) =>
  postgres({ database, max: 1, onnotice: () => {}, backoff: 0.05, ...options })

/** Creates a database with pgflow, the flows under load and the rules; returns a connection to it. */
export async function prepare(database, options = {}) {
  const server = connect('postgres')
  await server.unsafe(`create database ${database}`)
  await server.end()
  const sql = connect(database, options)
  await sql`create extension pgflow cascade`
  await run(sql, ...['realtime', 'invariants', 'terminal_rows'].map((name) => `tests/fixtures/${name}.sql`),
    'sql/optional/prune_data_older_than.sql', 'tests/reliability/verdict.sql')
  await defineFlows(sql)
  return sql
}

/** What must hold when a load has stopped, and then when all that it left has been worked off. */
export async function settle(sql, load) {
  const lines = async (set) => (await sql`select line from ${sql(`load.${set}`)}() as line`).map(({ line }) => line)
  check('no message is hidden for longer than its task needs', [], await lines('hidden'))
  console.log(`-- drained in ${await drain(sql)} rounds`)
  const [{ runs, unfinished, stalled }] = await sql`
    select count(*)::integer as runs, (select count(*)::integer from load.unfinished()) as unfinished,
           (select count(distinct run_id)::integer from pgflow.step_tasks where permanently_stalled_at is not null) as stalled
    from pgflow.runs`
  console.log(`-- answered: ${load.ledger.runs} starts, ${load.ledger.tasks} ends of tasks`)
  console.log(`-- ${runs} runs are in the database, ${stalled} of them with a permanently stalled task`)
  check('every run has ended, save those with a permanently stalled task', 0, unfinished)
  check('no rule is broken', [], await brokenInvariants(sql))
  check('nothing was done twice, and nothing by half', [], await lines('wrong'))
  // Pruning deletes old archived messages.
  if (!load.prunes) check('the message of every ended task is archived', [], await lines('unarchived'))
  check('every start that was answered is there', [], await load.ledger.lostRuns(sql))
  const [lost, doubled] = await load.ledger.lostTasks(sql)
  check('every report that was answered is there', [], lost)
  check('no task was handed out more often than it was attempted', [], doubled)
  check('no two callers were told different ends', [], load.ledger.contradictions)
}
