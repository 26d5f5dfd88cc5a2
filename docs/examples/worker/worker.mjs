// A worker for one flow: reads messages from the flow's queue, claims their tasks, runs the handlers and reports.
// Copy this file. It needs nothing but the connection pool you give it, which the npm package postgres makes.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

/** Starts a worker and returns it:
 *
 *    id        its worker_id, a new one each time
 *    stop()    takes no more tasks, finishes and reports those in hand; returns `stopped`
 *    stopped   a promise that is kept when the worker has stopped, be it by stop() or because somebody has set its
 *              deprecated_at
 *
 *  `handlers` has a function (task, sql) for each step, by the step's slug. What it returns, any value that JSON can
 *  hold, is the task's output; what it throws fails the attempt. It can be called again for the same task. */
export function startWorker({
  sql, // postgres({ max: concurrency + 2 }): a connection for each task, one that polls and one for the heartbeat
  flow,
  queue = flow.toLowerCase(), // the queue that is polled; a flow's own is called like the flow, in lower case
  handlers,
  name = 'worker', // shown in pgflow.workers.function_name
  concurrency = 2, // tasks that run side by side
  pollSeconds = 2, // how long a read waits for messages, at least 1; stop() may take as long
  hiddenSeconds = 2, // how long a message that was read stays hidden from other workers, unless it is claimed
  heartbeatSeconds = 5,
  reportSeconds = 60, // how long a report is repeated while the database is away
  log = (text) => console.log(`${new Date().toISOString()} ${name}: ${text}`),
}) {
  const id = randomUUID()
  const running = new Set() // a promise for each task in hand
  let done = [] // results that wait while others are being sent
  let sending = false
  let registered = false
  let stopping = false

  const heart = setInterval(
    () => beat().catch((error) => log(`no heartbeat: ${reason(error)}`)),
    heartbeatSeconds * 1000,
  )
  const stopped = work()
  return {
    id,
    stopped,
    stop() {
      stopping = true
      return stopped
    },
  }

  async function work() {
    while (!stopping) {
      try {
        if (!registered) await beat()
        await take()
      } catch (error) {
        log(`cannot read or claim, trying again in a second: ${reason(error)}`)
        await sleep(1000)
      }
    }
    await Promise.all(running)
    clearInterval(heart)
    await sql`select pgflow.mark_worker_stopped(${id})`
      .catch((error) => log(`stopped without a word: ${reason(error)}`))
  }

  // Says that this worker is alive, which the first time makes it known, and learns whether it has to stop.
  async function beat() {
    const [{ deprecated }] = await sql`
      insert into pgflow.workers (worker_id, queue_name, function_name) values (${id}, ${queue}, ${name})
      on conflict (worker_id) do update set last_heartbeat_at = now()
      returning deprecated_at is not null as deprecated`
    registered = true
    if (deprecated) stopping = true
  }

  // An attempt's time runs from the claim, so no more is claimed than can be started at once.
  async function take() {
    if (running.size === concurrency) await Promise.race(running)
    if (stopping) return
    const messages = await read(concurrency - running.size)
    if (stopping || messages.length === 0) return // the messages become visible again
    for (const task of await claim(messages)) {
      const end = execute(task).finally(() => running.delete(end))
      running.add(end)
    }
  }

  // Message ids are 64-bit integers, too large for a JavaScript number: they stay strings from here to the claim.
  async function read(count) {
    const messages = await sql`
      select msg_id::text from pgmq.read_with_poll(${queue}, ${hiddenSeconds}, ${count}, ${pollSeconds})`
    return messages.map((message) => message.msg_id)
  }

  // Only what start_tasks returns may be worked on. Messages that it passes over are left alone: they may belong to
  // a task that another worker has, or be none of ours.
  function claim(messages) {
    return sql`select * from pgflow.start_tasks(${flow}, ${messages}::bigint[], ${id}, ${queue})`
  }

  async function execute(task) {
    try {
      const output = await handle(task)
      await report(task, 'completed', () => complete(task, output))
    } catch (error) {
      // The handler threw, or its output cannot be stored.
      await report(task, `failed: ${reason(error)}`, () => fail(task, error))
        .catch((refused) => log(`${label(task)} cannot be reported: ${reason(refused)}`))
    }
  }

  async function handle(task) {
    if (!Object.hasOwn(handlers, task.step_slug)) throw new Error(`no handler for step "${task.step_slug}"`)
    return JSON.stringify(await handlers[task.step_slug](task, sql)) ?? 'null'
  }

  // Tasks that are done while a report is under way are reported together, in one call, by the next.
  async function complete(task, json) {
    const result = { task, json }
    result.sent = new Promise((resolve, reject) => Object.assign(result, { resolve, reject }))
    done.push(result)
    if (!sending) sendDone()
    return result.sent
  }

  async function sendDone() {
    sending = true
    while (done.length > 0) {
      const results = done
      done = []
      try {
        await completeAll(results)
        for (const { resolve } of results) resolve()
      } catch (error) {
        if (results.length === 1 || mayPass(error)) for (const { reject } of results) reject(error)
        else await Promise.all(results.map((one) => completeAll([one]).then(one.resolve, one.reject))) // one spoils all
      }
    }
    sending = false // at once, with nothing awaited since the list was seen empty
  }

  // JSON text goes as text: as jsonb, postgres would encode it a second time.
  function completeAll(results) {
    const of = (field) => results.map(({ task }) => task[field])
    return sql`
      select from pgflow.complete_tasks(${of('run_id')}::uuid[], ${of('step_slug')}::text[], ${of('task_index')}::integer[],
                                        ${results.map(({ json }) => json)}::text[]::jsonb[])`
  }

  function fail({ run_id, step_slug, task_index }, error) {
    const message = reason(error).replaceAll('\0', '') // which no PostgreSQL text can hold
    return sql`select from pgflow.fail_task(${run_id}, ${step_slug}, ${task_index}, ${message})`
  }

  // Repeats a report while the database is away: it may have restarted, or another server takes over. When a report
  // went through and only its answer was lost, the second one changes nothing. What still has no answer when the time
  // is up is left to pgflow.requeue_stalled_tasks().
  async function report(task, outcome, send) {
    const end = Date.now() + reportSeconds * 1000
    for (;;) {
      try {
        await send()
        return log(`${label(task)} ${outcome}`)
      } catch (error) {
        if (!mayPass(error)) throw error
        if (Date.now() > end) return log(`${label(task)} ${outcome}; not reported: ${reason(error)}`)
        log(`cannot report ${label(task)}, trying again in a second: ${reason(error)}`)
        await sleep(1000)
      }
    }
  }
}

// Whether an error may be gone at the next try: there was no answer, or its SQLSTATE says connection, deadlock,
// resources, ended by an administrator, system, read-only server, or lock not to be had.
const mayPass = (error) => error?.name !== 'PostgresError' || /^(08|40|53|57|58|25006|55P03)/.test(error.code)

const label = ({ step_slug, task_index }) => `${step_slug} ${task_index}`

const reason = (error) => String(error?.message || error?.code || error)
