// Worker processes, the example worker unchanged, are killed and stopped in mid-task, and others take their place.
// SIGTERM loses nothing and costs no attempt; what SIGKILL leaves is requeued and finished.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { check, summary } from './checks.mjs'
import { brokenInvariants } from '../clients/database.mjs'
import { prepare } from './database.mjs'
import { inputOf } from './flows.mjs'

const PROCESSES = 4
const CONCURRENCY = 4 // tasks that a process has in hand
const EVERY = 500 // milliseconds between signals
const seconds = Number(process.argv[2])
const FLOW = 'load_wide'
const sql = await prepare('workers')
const wrong = []
const killed = []
const counts = { SIGTERM: 0, SIGKILL: 0, 'tasks in hand at SIGTERM': 0, 'tasks in hand at SIGKILL': 0 }

/** A worker process, and the tasks that its handlers have in hand. */
async function hire() {
  const program = fork(new URL('worker_program.mjs', import.meta.url), ['workers', FLOW, CONCURRENCY])
  const inHand = new Set()
  let begin
  const begun = new Promise((resolve) => (begin = resolve))
  const worker = { program, inHand, begun, exited: once(program, 'exit') }
  program.on('message', ({ worker: id, began, ended }) => {
    if (id) worker.id = id
    if (began) inHand.add(began)
    if (ended) inHand.delete(ended)
    begin()
  })
  await begun
  return worker
}

async function dismiss(worker, signal) {
  counts[signal] += 1
  const inHand = [...worker.inHand]
  counts[`tasks in hand at ${signal}`] += inHand.length
  worker.program.kill(signal)
  const [code] = await worker.exited
  if (signal === 'SIGKILL') {
    killed.push(worker.id)
    return recover(worker.id)
  }
  if (code !== 0) wrong.push(`exit ${code} after SIGTERM`)
  const left = await sql`
    select run_id, step_slug from pgflow.step_tasks where last_worker_id = ${worker.id} and status = 'started'`
  if (left.length > 0) wrong.push(`${left.length} tasks left by a worker that was stopped`)
}

/** Lets time pass for a dead worker's tasks, and requeues them; other workers' tasks are young. */
async function recover(worker) {
  await sql`
    update pgflow.step_tasks
    set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
    where last_worker_id = ${worker} and status = 'started'`
  await sql`select pgflow.requeue_stalled_tasks()`
}

const workers = await Promise.all(Array.from({ length: PROCESSES }, hire))
let starting = true
const producer = (async () => {
  while (starting) {
    const [{ waiting }] = await sql`select count(*)::integer as waiting from pgmq.${sql(`q_${FLOW}`)}`
    if (waiting < 300) await sql`select from pgflow.start_flow(${FLOW}, ${sql.json(inputOf(FLOW))})`
    await sleep(100)
  }
})()
for (let round = 0; round < (seconds * 1000) / EVERY; round += 1) {
  await sleep(EVERY)
  const at = round % PROCESSES
  await dismiss(workers[at], round % 2 === Math.floor(round / PROCESSES) % 2 ? 'SIGTERM' : 'SIGKILL')
  workers[at] = await hire()
}
starting = false
await producer
// A claim that was on its way when its worker was killed may have been made after recovery came for its tasks.
while ((await sql`select from pgflow.runs where status = 'started'`).length > 0) {
  for (const worker of killed) await recover(worker)
  await sleep(200)
}
await Promise.all(workers.map((worker) => dismiss(worker, 'SIGTERM')))

const [tasks] = await sql`
  select count(*)::integer as number, (sum(requeued_count))::integer as requeued,
         (count(*) filter (where attempts_count <> requeued_count + 1))::integer as odd,
         (count(*) filter (where status <> 'completed'))::integer as unfinished
  from pgflow.step_tasks`
console.log(`-- ${PROCESSES} processes of ${CONCURRENCY} tasks: ${JSON.stringify(counts)}`)
console.log(`-- ${tasks.number} tasks done, ${tasks.requeued} of them a second time`)
check('SIGTERM ends a worker with nothing left in hand', [], wrong)
check('a task costs one attempt, and one more for each worker that was killed with it', 0, tasks.odd)
check('no more is done again than killed workers could have in hand', true, tasks.requeued <= counts.SIGKILL * CONCURRENCY)
check('killed workers had tasks in hand', true, tasks.requeued > 0)
check('every task is completed', 0, tasks.unfinished)
check('no rule is broken', [], await brokenInvariants(sql))
check('nothing was done twice, and nothing by half', [], (await sql`select wrong from load.wrong() as wrong`).map((row) => row.wrong))
summary()
process.exit()
