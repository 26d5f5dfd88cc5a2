// Races: eight connections mix everything on the same runs. Nothing may deadlock, no rule may break at any moment, and
// when the load stops everything can be worked off.
import { setTimeout as sleep } from 'node:timers/promises'
import { Load, unlessGone } from './load.mjs'
import { check, summary } from './checks.mjs'
import { brokenInvariants } from '../clients/database.mjs'
import { connect, prepare, settle } from './database.mjs'

const seconds = Number(process.argv[2])
const sql = await prepare('races')
const load = new Load({ connect: () => connect('races'), prunes: true })

const broken = []
let looks = 0
for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(1000)) {
  try {
    broken.push(...await ofRunsThatAreThere(await brokenInvariants(sql)))
    looks += 1
  } catch (error) {
    unlessGone(error) // a queue was dropped while it was being looked at
  }
}
await load.stop()

// A queue that is dropped meanwhile is gone at once, its rows only from the next snapshot on.
async function ofRunsThatAreThere(lines) {
  const ids = lines.map((line) => line.match(/[0-9a-f-]{36}/)?.[0])
  const there = new Set((await sql`select run_id from pgflow.runs where run_id = any(${ids.filter(Boolean)}::uuid[])`)
    .map(({ run_id }) => run_id))
  return lines.filter((_, i) => ids[i] === undefined || there.has(ids[i]))
}

console.log(`-- ${seconds} s with 8 connections: ${JSON.stringify(load.counts)}`)
console.log(`-- rules looked at ${looks} times under load`)

check('no caller met an error', [], load.errors)
check('no rule was broken at any moment', [], broken)
await settle(sql, load)
const [{ deadlocks }] = await sql`select deadlocks::integer from pg_stat_database where datname = 'races'`
check('no deadlock', 0, deadlocks)
summary()
process.exit()
