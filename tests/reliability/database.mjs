// The database that a load runs in, and what is asked of it afterwards. PGHOST, PGPORT and PGUSER lead to the server.
import { readFile } from 'node:fs/promises'
import postgres from '../clients/node_modules/postgres/src/index.js'
import { check } from './checks.mjs'
import { defineFlows } from './flows.mjs'

const source = (name) => readFile(new URL(name, import.meta.url), 'utf8')

export const connect = (database, options = {}) =>
  postgres({ database, max: 1, onnotice: () => {}, backoff: 0.05, ...options })

/** Creates a database with pgflow, the flows under load and the rules; returns a connection to it. */
export async function prepare(database, options = {}) {
  const server = connect('postgres')
  await server.unsafe(`create database ${database}`)
  await server.end()
  const sql = connect(database, options)
  await sql`create extension pgflow cascade`
  for (const file of ['realtime', 'invariants', 'terminal_rows']) await sql.unsafe(await source(`../fixtures/${file}.sql`))
  await sql.unsafe(await source('../../sql/optional/prune_data_older_than.sql'))
  await sql.unsafe(await source('verdict.sql'))
  await defineFlows(sql)
  return sql
}

/** Every rule of tests/fixtures/invariants.sql that the database breaks. */
export async function brokenRules(sql) {
  return (await sql`select broken from pgflow_invariants.broken() as broken`).map((row) => row.broken)
}

/** What must hold when a load has stopped and nothing has been worked off yet. */
export async function visible(sql) {
  check('no message is hidden for longer than its task needs', [], (await sql`select hidden from load.hidden() as hidden`).map((row) => row.hidden))
}

/** What must hold when everything has been worked off. Pruning deletes old archived messages. */
export async function settle(sql, load, { pruned = false } = {}) {
  const [{ runs, unfinished, stalled }] = await sql`
    select count(*)::integer as runs, (select count(*)::integer from load.unfinished()) as unfinished,
           (select count(distinct run_id)::integer from pgflow.step_tasks where permanently_stalled_at is not null) as stalled
    from pgflow.runs`
  console.log(`-- answered: ${load.ledger.runs} starts, ${load.ledger.tasks} ends of tasks`)
  console.log(`-- ${runs} runs are in the database, ${stalled} of them with a permanently stalled task`)
  check('every run has ended, save those with a permanently stalled task', 0, unfinished)
  check('no rule is broken', [], await brokenRules(sql))
  check('nothing was done twice, and nothing by half', [], (await sql`select wrong from load.wrong() as wrong`).map((row) => row.wrong))
  if (!pruned) check('the message of every ended task is archived', [], (await sql`select lost from load.unarchived() as lost`).map((row) => row.lost))
  check('every start that was answered is there', [], await load.ledger.lostRuns(sql))
  const [lost, doubled] = await load.ledger.lostTasks(sql)
  check('every report that was answered is there', [], lost)
  check('no task was handed out more often than it was attempted', [], doubled)
  check('no two callers were told different ends', [], load.ledger.contradictions)
}
