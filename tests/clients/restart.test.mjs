// The example worker while the database is away: on a server of its own, which is stopped and started; run.sh drops it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startWorker } from '../../docs/examples/worker/worker.mjs'
import { brokenInvariants, defineFlow, freshDatabase } from './database.mjs'

const execute = promisify(execFile)
const server = async (command) => {
  const settings = command === 'start' ? ['fsync=off'] : []
  const { stdout } = await execute(script, [command, 'clients_restart', ...settings])
  return stdout.trim()
}
const script = fileURLToPath(new URL('../harness/server.sh', import.meta.url))

await server('drop')
await server('start')
Object.assign(process.env, { PGHOST: (await server('url')).split('host=')[1], PGPORT: '5432', PGUSER: 'postgres' })
const { sql, connect } = await freshDatabase(import.meta.url)

/** Runs `meanwhile` without a server. */
async function away(meanwhile) {
  await server('stop')
  try {
    return await meanwhile()
  } finally {
    await server('start')
  }
}

/** A worker for a flow of one step, whose handler waits until `finish` is called. */
function begin(t, flow, options = {}) {
  const lines = []
  const inHand = {}
  const begun = new Promise((resolve) => (inHand.begun = resolve))
  const result = new Promise((resolve) => (inHand.finish = resolve))
  const step = () => {
    inHand.begun()
    return result
  }
  const worker = startWorker({
    sql: connect({ max: 4 }), flow, handlers: { step }, pollSeconds: 1, heartbeatSeconds: 0.2,
    log: (line) => lines.push(line), ...options,
  })
  t.after(() => {
    inHand.finish('late') // or a failed test would wait for it
    return worker.stop()
  })
  const logged = (pattern) => until(() => lines.some((line) => pattern.test(line)), `${pattern} in the log`)
  return { ...worker, logged, begun, finish: inHand.finish }
}

async function until(look, what) {
  for (let i = 0; i < 300; i += 1) {
    const found = await look()
    if (found) return found
    await sleep(50)
  }
  assert.fail(`in vain waited for ${what}`)
}

const start = async (flow) => (await sql`select run_id from pgflow.start_flow(${flow}, '{}')`)[0].run_id

const ended = (run) =>
  until(async () => (await sql`select * from pgflow.runs where run_id = ${run} and status <> 'started'`)[0], 'the end')

const attempts = async (run) =>
  (await sql`select status, attempts_count from pgflow.step_tasks where run_id = ${run}`)
    .map((task) => `${task.status} ${task.attempts_count}`)

test('what is finished while the database is away is reported when it is back', { timeout: 30_000 }, async (t) => {
  await defineFlow(sql, 'patient', [{ slug: 'step' }])
  const worker = begin(t, 'patient')
  const run = await start('patient')
  await worker.begun
  await away(async () => {
    worker.finish('kept')
    await worker.logged(/^cannot report step 0/)
    await worker.logged(/^cannot read or claim/)
    await worker.logged(/^no heartbeat/)
  })
  assert.deepEqual((await ended(run)).output, { step: 'kept' })
  assert.deepEqual(await attempts(run), ['completed 1'])
  assert.equal((await ended(await start('patient'))).status, 'completed')
  assert.deepEqual(await brokenInvariants(sql), [])
})

test('a worker that is stopped while the database is away still reports', { timeout: 30_000 }, async (t) => {
  await defineFlow(sql, 'stopping', [{ slug: 'step' }])
  const worker = begin(t, 'stopping')
  const run = await start('stopping')
  await worker.begun
  await away(async () => {
    worker.stop()
    worker.finish('kept')
    await worker.logged(/^cannot report step 0/)
  })
  await worker.stopped
  assert.deepEqual((await ended(run)).output, { step: 'kept' })
  assert.deepEqual(await attempts(run), ['completed 1'])
})

test('a worker can be started before the database', { timeout: 30_000 }, async (t) => {
  await defineFlow(sql, 'early', [{ slug: 'step' }])
  const worker = await away(async () => {
    const early = begin(t, 'early')
    await early.logged(/^cannot read or claim/)
    return early
  })
  worker.finish('early')
  assert.deepEqual((await ended(await start('early'))).output, { step: 'early' })
})

test('a report that finds no database in its time leaves a stalled task', { timeout: 30_000 }, async (t) => {
  await defineFlow(sql, 'hasty', [{ slug: 'step' }])
  const worker = begin(t, 'hasty', { reportSeconds: 0 })
  const run = await start('hasty')
  await worker.begun
  await away(async () => {
    worker.finish('lost')
    await worker.logged(/^step 0 completed; not reported: /)
  })
  await worker.stop()
  assert.deepEqual(await attempts(run), ['started 1'])
  await sql`
    update pgflow.step_tasks
    set queued_at = queued_at - interval '10 minutes', started_at = started_at - interval '10 minutes'
    where run_id = ${run}`
  await sql`select from pgflow.requeue_stalled_tasks()`
  begin(t, 'hasty').finish('done again')
  assert.deepEqual((await ended(run)).output, { step: 'done again' })
  assert.deepEqual(await attempts(run), ['completed 2'])
})
