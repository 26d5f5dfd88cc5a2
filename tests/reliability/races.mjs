// Races: eight connections mix everything on the same runs. Nothing may deadlock, no rule may break at any moment, and
// when the load stops everything can be worked off.
import { setTimeout as sleep } from 'node:timers/promises'
import { Load, unlessGone } from './load.mjs'
import { drain } from './drain.mjs'
import { check, summary } from './checks.mjs'
import { brokenRules, connect, prepare, settle, visible } from './database.mjs'

const seconds = Number(process.argv[2])
const sql = await prepare('races')
const load = new Load({
  connections: Array.from({ length: 8 }, () => connect('races')),
  verbs: {
    work: 60, start: 12, intrude: 8, snatch: 8, recover: 4, poke: 3, look: 3, takeBack: 2, visit: 2, pass: 1, prune: 1,
  },
})

const broken = []
let looks = 0
for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(1000)) {
  try {
    broken.push(...await ofRunsThatAreThere(await brokenRules(sql)))
    looks += 1
  } catch (error) {
    unlessGone(error) // a queue was dropped while it was being looked at
  }
}
await load.stop()

// A queue that is dropped meanwhile is gone at once, its rows only from the next snapshot on.
async function ofRunsThatAreThere(lines) {
  const there = await Promise.all(lines.map((line) => sql`
    select from pgflow.runs where run_id = ${line.match(/[0-9a-f-]{36}/)?.[0] ?? null}`))
  return lines.filter((line, i) => there[i].length > 0 || !/[0-9a-f-]{36}/.test(line))
}

console.log(`-- ${seconds} s with 8 connections: ${JSON.stringify(load.counts)}`)
console.log(`-- rules looked at ${looks} times under load`)

check('no caller met an error', [], load.errors)
check('no rule was broken at any moment', [], broken)
await visible(sql)
const rounds = await drain(sql)
console.log(`-- drained in ${rounds} rounds`)
await settle(sql, load, { pruned: true })
const [{ deadlocks }] = await sql`select deadlocks::integer from pg_stat_database where datname = 'races'`
check('no deadlock', 0, deadlocks)
summary()
process.exit()
