// Failover: the primary is lost under load and its synchronous standby is promoted. What was answered must be there,
// message ids go on without meeting old ones, and everything can be worked off. On the standby reading calls work and
// writing calls fail at once.
import { rm, symlink } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { check, summary } from './checks.mjs'
import { connect, prepare, settle } from './database.mjs'
import { Load } from './load.mjs'
import { bringDown, isAway, standby, start } from './server.mjs'
import { failing, readingCalls, untried, writingCalls, RUN } from './standby_calls.mjs'

const seconds = Number(process.argv[2])
let [primary, spare] = process.argv.slice(3)
// Clients go where this link leads.
const link = process.env.PGHOST

async function lead(folder) {
  await rm(link, { force: true })
  await symlink(folder, link)
}

await lead(primary)
const sql = await prepare('failover')
await sql`select from pgflow.start_flow('load_chain', '{}', ${RUN})`
const load = new Load({ connect: () => connect('failover'), isAway })

/** Makes the spare server a standby of the primary, and the primary wait for it. */
async function follow() {
  await sql`alter system reset synchronous_standby_names` // or nothing would be answered until the standby is there
  await sql`select pg_reload_conf()`
  await standby(spare, primary)
  await start(spare)
  await sql`alter system set synchronous_standby_names = '*'`
  await sql`select pg_reload_conf()`
  await until(async () => (await sql`select sync_state from pg_stat_replication`)[0]?.sync_state === 'sync')
}

/** Loses the primary and promotes the standby. */
async function failOver() {
  await bringDown(primary, 'SIGKILL')
  const heir = connect('failover', { host: spare })
  await heir`select pg_promote()`
  await heir.end()
  ;[primary, spare] = [spare, primary]
  await lead(primary)
  await until(async () => !(await sql`select pg_is_in_recovery() as standby`)[0].standby)
}

async function until(holds) {
  for (;;) {
    const found = await holds().catch((error) => {
      if (!isAway(error)) throw error
    })
    if (found) return
    await sleep(50)
  }
}

for (let round = 1; round <= Math.max(2, seconds / 15); round += 1) {
  await follow()
  await sleep(3000)
  const reader = connect('failover', { host: spare })
  check(`standby ${round}: reading calls work`, [], await failing(reader, readingCalls, 'none'))
  check(`standby ${round}: writing calls fail at once, with 25006`, [], await failing(reader, writingCalls, '25006'))
  if (round === 1) check('every function is tried on a standby', [], await untried(reader))
  await reader.end()
  await failOver()
  check(`failover ${round}: no message id can come again`, [],
    (await sql`select queue from load.queues_that_repeat_ids() as queue`).map(({ queue }) => queue))
  await sleep(2000)
}
await load.stop()
console.log(`-- 8 connections: ${JSON.stringify(load.counts)}`)

check('callers met no other error than the failover', [], load.errors)
await settle(sql, load)
summary()
process.exit()
