// PgBouncer in transaction mode: eight connections share four sessions, which change hands with every transaction. The
// whole load goes through, and none of it leaves anything behind in a session.
import { setTimeout as sleep } from 'node:timers/promises'
import { check, summary } from './checks.mjs'
import { connect, prepare, settle } from './database.mjs'
import { Load } from './load.mjs'

const SESSIONS = 4
const seconds = Number(process.argv[2])
const pooler = process.argv[3]
// Without prepared statements, which this PgBouncer does not carry from one session to another.
const pooled = () => connect('pooled', { host: pooler, port: 6432, prepare: false })

const sql = await prepare('pooled')
const untouched = await leftBehind(1)
const load = new Load({ connect: pooled, prunes: true })
await sleep(seconds * 1000)
await load.stop()
console.log(`-- 8 connections, ${SESSIONS} sessions: ${JSON.stringify(load.counts)}`)

check('no caller met an error', [], load.errors)
check('no advisory lock is left', [], [...await sql`select pid, objid from pg_locks where locktype = 'advisory'`])
check('no temporary object is left', [],
  (await sql`select relname from pg_class where relpersistence = 't'`).map(({ relname }) => relname))
const left = await leftBehind(SESSIONS)
check('every session was used', SESSIONS, left.length)
check('no setting, prepared statement, cursor or listener is left', left.map(() => untouched[0].state), left.map(({ state }) => state))
await settle(sql, load)
summary()
process.exit()

/** The state of so many sessions of the pool: as many transactions at once each hold another one. */
async function leftBehind(sessions) {
  const clients = Array.from({ length: sessions }, pooled)
  let release
  const allHold = new Promise((resolve) => (release = resolve))
  let holding = 0
  const states = await Promise.all(clients.map((client) => client.begin(async (transaction) => {
    const [row] = await transaction`
      select pg_backend_pid() as pid, jsonb_build_object(
        'settings', (select jsonb_object_agg(name, setting) from pg_settings where source = 'session'),
        'statements', (select count(*) from pg_prepared_statements),
        'cursors', (select count(*) from pg_cursors where is_holdable),
        'listens', (select count(*) from pg_listening_channels())) as state`
    if ((holding += 1) === sessions) release()
    await allHold
    return row
  })))
  for (const client of clients) await client.end()
  return states.filter(({ pid }, i) => states.findIndex((other) => other.pid === pid) === i)
}
