// A worker: reads messages from the flow's queue, claims their tasks, runs the handlers and reports.
//
//   node worker.mjs NAME
//
// It connects as PGHOST, PGPORT, PGDATABASE, PGUSER and PGPASSWORD say. Run as many as you like, on any number of
// machines. SIGTERM stops it once the tasks at hand are done. When it is killed at any other point, nothing is lost:
// a message that was read but not claimed becomes visible again, and a claimed task that nobody reports on is given
// back to the queue by pgflow.requeue_stalled_tasks().
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import * as handlers from './handlers.mjs'

const flow = 'wordcount'
const queue = flow.toLowerCase() // each flow has a queue of this name
const atOnce = 2 // tasks that this worker runs side by side
const pollSeconds = 2 // how long a read waits for messages before it comes back without any
const hiddenSeconds = 2 // how long a message that was read stays hidden from other workers, unless it is claimed
const heartbeatSeconds = 5

const name = process.argv[2] ?? 'worker'
const id = randomUUID() // a new one for each process
const log = (text) => console.log(`${new Date().toISOString()} ${name}: ${text}`)

const sql = postgres({
  max: atOnce + 1, // a connection for each task, and one for the heartbeat
  onnotice: (notice) => log(`${notice.severity}: ${notice.message}`), // such as a message that belongs to no task
})

let stopping = false
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => (stopping = true))

await sql`insert into pgflow.workers (worker_id, queue_name, function_name) values (${id}, ${queue}, ${name})`
const heart = setInterval(beat, heartbeatSeconds * 1000)

while (!stopping) {
  try {
    const messages = await read()
    const tasks = await claim(messages)
    await Promise.all(tasks.map(execute))
  } catch (error) {
    log(`cannot read or claim, trying again in a second: ${error.message}`)
    await sleep(1000)
  }
}

clearInterval(heart)
await sql`select pgflow.mark_worker_stopped(${id})`.catch((error) => log(`stopped without a word: ${error.message}`))
await sql.end()

// Message ids are 64-bit integers, too large for a JavaScript number: they stay strings from here to the claim.
async function read() {
  const messages = await sql`
    select msg_id::text from pgmq.read_with_poll(${queue}, ${hiddenSeconds}, ${atOnce}, ${pollSeconds})`
  return messages.map((message) => message.msg_id)
}

// Only what start_tasks returns may be worked on. Messages that it passes over are left alone: they may belong to
// a task that another worker has, or be none of ours.
async function claim(messages) {
  if (messages.length === 0) return []
  return sql`select * from pgflow.start_tasks(${flow}, ${messages}::bigint[], ${id}, ${queue})`
}

async function execute(task) {
  const label = `${task.step_slug} ${task.task_index}`
  try {
    const handler = handlers[task.step_slug]
    if (!handler) throw new Error(`no handler for step "${task.step_slug}"`)
    await complete(task, await handler(task, sql))
    log(`${label} completed`)
  } catch (error) {
    // The handler threw, or its output cannot be stored. If complete_task went through and only its answer was lost,
    // the task has ended and fail_task changes nothing.
    log(`${label} failed: ${error?.message ?? error}`)
    await fail(task, error).catch((lost) => log(`${label} could not be reported: ${lost.message}`))
  }
}

// sql.json passes the value as it is; a text that JSON.stringify made would be encoded a second time.
function complete({ run_id, step_slug, task_index }, output) {
  return sql`select pgflow.complete_task(${run_id}, ${step_slug}, ${task_index}, ${sql.json(output ?? null)})`
}

function fail({ run_id, step_slug, task_index }, error) {
  const message = String(error?.message ?? error).replaceAll('\0', '') // which no PostgreSQL text can hold
  return sql`select pgflow.fail_task(${run_id}, ${step_slug}, ${task_index}, ${message})`
}

// Says that this worker is alive, and learns whether it has been asked to stop.
async function beat() {
  try {
    const [row] = await sql`
      update pgflow.workers set last_heartbeat_at = now() where worker_id = ${id}
      returning deprecated_at is not null as deprecated`
    if (row?.deprecated) stopping = true
  } catch (error) {
    log(`no heartbeat: ${error.message}`)
  }
}
