// Crashes: under load, sessions are ended, killed, and the whole server is brought down. What was answered must be
// there after recovery, nothing twice, and everything can be worked off.
import { setTimeout as sleep } from 'node:timers/promises'
import { check, summary } from './checks.mjs'
import { connect, prepare, settle } from './database.mjs'
import { Load } from './load.mjs'
import { bringDown, isAway, logOf, start } from './server.mjs'

const FAULT_EVERY = 3
const seconds = Number(process.argv[2])
const folder = process.env.PGHOST
const sql = await prepare('crashes')
const load = new Load({ connect: () => connect('crashes'), isAway })

const sessions = (other) => other`
  select pid from pg_stat_activity
  where datname = 'crashes' and backend_type = 'client backend' and pid <> pg_backend_pid() order by random()`

const faults = {
  async 'three sessions ended'() {
    const other = connect('postgres')
    for (const { pid } of (await sessions(other)).slice(0, 3)) await other`select pg_terminate_backend(${pid})`
    await other.end()
  },
  async 'a session killed'() {
    const other = connect('postgres')
    const [{ pid }] = await sessions(other)
    process.kill(pid, 'SIGKILL') // the server ends all other sessions and recovers
    await other.end({ timeout: 0 })
  },
  async 'the server stopped at once'() {
    await bringDown(folder, 'SIGQUIT')
    await start(folder)
  },
  async 'the server killed'() {
    await bringDown(folder, 'SIGKILL')
    await start(folder)
  },
}

/** How often the server has recovered. */
async function recoveries() {
  return (await logOf(folder)).match(/redo done|redo is not required/g)?.length ?? 0
}

let crashes = 0
const injected = {}
for (let round = 0; round < seconds / FAULT_EVERY; round += 1) {
  await sleep(FAULT_EVERY * 1000)
  const fault = Object.keys(faults)[round % Object.keys(faults).length]
  const before = await recoveries()
  await faults[fault]()
  injected[fault] = (injected[fault] ?? 0) + 1
  if (fault === 'three sessions ended') continue
  crashes += 1
  while (await recoveries() === before) await sleep(50)
}
await sleep(1000)
await load.stop()
console.log(`-- 8 connections: ${JSON.stringify(load.counts)}`)
console.log(`-- faults: ${JSON.stringify(injected)}`)

console.log(`-- recovered ${await recoveries()} times`)
check('the server recovered as often as it crashed', crashes, await recoveries())
check('callers met no other error than the crashes', [], load.errors)
await settle(sql, load)
summary()
process.exit()
