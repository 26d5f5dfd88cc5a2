// Two calls at once on a shared flow must end as if one had come after the other: for random flows and calls, rows,
// messages, events and answers are compared with both orders. (That one call after the other does what the rules say
// is what tests/model shows.)
//
//   pairs.mjs NUMBER [SEED]     plays so many cases, from this seed on
import { setTimeout as sleep } from 'node:timers/promises'
import { check, summary } from './checks.mjs'
import { brokenInvariants } from '../clients/database.mjs'
import { connect, prepare } from './database.mjs'
import { draw } from './pair_case.mjs'
import { Copy } from './pair_play.mjs'

const number = Number(process.argv[2])
const firstSeed = Number(process.argv[3] ?? 1)
// Each case has queues of its own, so nearly every statement is a new one: none is kept.
const sql = await prepare('pairs', { prepare: false })
const [one, two] = [connect('pairs', { prepare: false }), connect('pairs', { prepare: false })]
const [{ pid }] = await two`select pg_backend_pid() as pid`
const waited = { hold: 0, race: 0, undo: 0 }
const played = { hold: 0, race: 0, undo: 0 }

/** Plays the case on a fresh copy of the flow, with `meet` for what the pair does. */
async function play(name, { steps, before }, meet) {
  const copy = new Copy(name, steps)
  await copy.define(sql)
  for (const operation of before) await copy.carryOut(sql, operation)
  const answers = await meet(copy)
  const end = JSON.stringify([answers, await copy.state(sql)])
  const broken = await brokenInvariants(sql)
  await copy.remove(sql)
  return { end, broken }
}

const ways = {
  /** The first call is made and not committed before the second has ended or waits. */
  async hold(copy, [first, second]) {
    await one`begin`
    const a = await copy.carryOut(one, first)
    const b = copy.carryOut(two, second)
    if (await waits(b)) waited.hold += 1
    await one`commit`
    return [a, await b]
  },
  async race(copy, [first, second]) {
    return Promise.all([copy.carryOut(one, first), copy.carryOut(two, second)])
  },
  /** As in hold, but the first call's transaction is rolled back: only the second may be seen. */
  async undo(copy, [first, second]) {
    await one`begin`
    await copy.carryOut(one, first)
    const b = copy.carryOut(two, second)
    if (await waits(b)) waited.undo += 1
    await one`rollback`
    return [null, await b]
  },
}

async function waits(call) {
  let ended = false
  call.then(() => (ended = true))
  for (;;) {
    await sleep(1)
    if (ended) return false
    const [session] = await sql`select wait_event_type from pg_stat_activity where pid = ${pid}`
    if (session.wait_event_type === 'Lock') return true
  }
}

async function orders(name, drawn) {
  const [first, second] = drawn.pair
  const inTurn = async (copy, calls) => {
    const answers = new Map()
    for (const call of calls) answers.set(call, await copy.carryOut(sql, call))
    return [answers.get(first) ?? null, answers.get(second)]
  }
  if (drawn.way === 'undo') return [await play(`${name}_b`, drawn, (copy) => inTurn(copy, [second]))]
  return [
    await play(`${name}_b`, drawn, (copy) => inTurn(copy, [first, second])),
    await play(`${name}_c`, drawn, (copy) => inTurn(copy, [second, first])),
  ]
}

const wrong = []
for (let seed = firstSeed; seed < firstSeed + number; seed += 1) {
  const drawn = draw(seed)
  const name = `pair_${seed}`
  const met = await play(`${name}_a`, drawn, (copy) => ways[drawn.way](copy, drawn.pair))
  const serial = await orders(name, drawn)
  played[drawn.way] += 1
  if (!serial.some(({ end }) => end === met.end) || met.broken.length > 0) {
    wrong.push(`seed ${seed}`)
    console.log(`-- seed ${seed}: ${JSON.stringify(drawn)}`)
    console.log(`   together  ${met.end} ${met.broken}`)
    for (const { end } of serial) console.log(`   in turn   ${end}`)
  }
  await sql`truncate realtime.sent`
}
console.log(`-- played ${JSON.stringify(played)}; the second call waited for the first in ${JSON.stringify(waited)}`)
check('two calls at once end as if one had come after the other', [], wrong)
summary()
process.exit()
