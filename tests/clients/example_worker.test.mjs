// The example worker, docs/examples/worker/worker.mjs: what it promises to whoever copies it.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startWorker } from '../../docs/examples/worker/worker.mjs'
import { brokenInvariants, defineFlow, freshDatabase } from './database.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)

const start = async (flow, input = []) =>
  (await sql`select run_id from pgflow.start_flow(${flow}, ${sql.json(input)})`)[0].run_id

/** A worker of this process; `notices` and `lines` collect what it was told and what it logged. */
function begin(t, flow, handlers, options = {}) {
  const notices = []
  const lines = []
  const queries = []
  const pool = connect({
    max: (options.concurrency ?? 2) + 2,
    onnotice: (notice) => notices.push(notice.message),
    debug: (_, query) => queries.push(query),
  })
  const worker = startWorker({ sql: pool, flow, handlers, pollSeconds: 1, log: (line) => lines.push(line), ...options })
  t.after(worker.stop)
  return { ...worker, notices, lines, queries }
}

/** A worker in a process of its own. */
async function spawn(t, flow, concurrency) {
  const program = fork(new URL('example_program.mjs', import.meta.url), [flow, concurrency], {
    env: { ...process.env, PGDATABASE: (await sql`select current_database() as name`)[0].name },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  t.after(() => program.kill('SIGKILL'))
  return program
}

/** What the program says or does next. */
const next = (program, event) => once(program, event, { signal: AbortSignal.timeout(20_000) })
const said = async (program) => (await next(program, 'message'))[0]

/** Waits until `look` gives something true, and returns it. */
async function until(look, what) {
  for (let i = 0; i < 300; i += 1) {
    const found = await look()
    if (found) return found
    await sleep(50)
  }
  assert.fail(`in vain waited for ${what}`)
}

const ended = (run) =>
  until(async () => {
    const [row] = await sql`select * from pgflow.runs where run_id = ${run} and status <> 'started'`
    return row
  }, 'the end of the run')

const tasksOf = async (run) =>
  (await sql`
    select task_index, status, attempts_count as attempts, error_message as error
    from pgflow.step_tasks where run_id = ${run} order by step_slug, task_index`).map((task) => ({ ...task }))

const workerRow = async (id) => (await sql`select * from pgflow.workers where worker_id = ${id}`)[0]

test('tasks run side by side, as many as concurrency says and no more', async (t) => {
  await defineFlow(sql, 'Wide', [{ slug: 'list' }, { slug: 'each', deps: ['list'], type: 'map' }])
  let inHand = 0
  let most = 0
  const worker = begin(t, 'Wide', {
    list: ({ flow_input }) => flow_input.list,
    each: async ({ input }) => {
      inHand += 1
      most = Math.max(most, inHand)
      await sleep(100)
      inHand -= 1
      return input * 2
    },
  }, { concurrency: 3 })
  const run = await start('Wide', { list: [1, 2, 3, 4, 5, 6, 7, 8, 9] })
  assert.deepEqual((await ended(run)).output, { each: [2, 4, 6, 8, 10, 12, 14, 16, 18] })
  assert.equal(most, 3)
  for (const task of await tasksOf(run)) assert.deepEqual([task.status, task.attempts], ['completed', 1])
  const [{ overlapping }] = await sql`
    select count(*)::int as overlapping from pgflow.step_tasks as a join pgflow.step_tasks as b using (run_id)
    where run_id = ${run} and a.task_index < b.task_index
      and a.started_at < b.completed_at and b.started_at < a.completed_at`
  assert.ok(overlapping >= 3, `${overlapping} pairs of tasks overlap in the database`)
  await worker.stop()
  assert.deepEqual(await brokenInvariants(sql), [])
})

test('a long task does not hold up the others', async (t) => {
  await defineFlow(sql, 'uneven', [{ slug: 'each', type: 'map' }])
  let others = 0
  let release
  const allOthers = new Promise((resolve) => (release = resolve))
  t.after(() => release('late')) // or a failed test would wait for it
  begin(t, 'uneven', {
    each: async ({ input }) => {
      if (input === 'long') return allOthers
      others += 1
      if (others === 5) release('last')
      return input
    },
  })
  const run = await start('uneven', ['long', 1, 2, 3, 4, 5])
  assert.deepEqual((await ended(run)).output, { each: ['last', 1, 2, 3, 4, 5] })
})

test('what a handler throws fails the attempt, and the task is tried again', async (t) => {
  await defineFlow(sql, 'flaky', [{ slug: 'each', type: 'map' }])
  const failed = new Set()
  const first = [new Error('not yet'), 'a text', undefined, new Error('with \0 in it')]
  begin(t, 'flaky', {
    each: ({ task_index }) => {
      if (failed.has(task_index)) return 'done'
      failed.add(task_index)
      throw first[task_index]
    },
  })
  const run = await start('flaky', [0, 0, 0, 0])
  assert.equal((await ended(run)).status, 'completed')
  assert.deepEqual((await tasksOf(run)).map((task) => [task.attempts, task.error]), [
    [2, 'not yet'], [2, 'a text'], [2, 'undefined'], [2, 'with  in it'],
  ])
})

test('every value that JSON can hold is an output, a text is encoded once, and nothing is null', async (t) => {
  const values = [0, false, '', 'text', '"quoted"', [], {}, null, 1.5, { nested: ['ü', '\n'] }]
  await defineFlow(sql, 'values', [{ slug: 'each', type: 'map' }])
  begin(t, 'values', { each: ({ task_index }) => [...values, undefined][task_index] }, { concurrency: 4 })
  const run = await start('values', Array(values.length + 1).fill(0))
  assert.deepEqual((await ended(run)).output, { each: [...values, null] })
})

test('results that are there at the same time are reported in one call; one that cannot be stored spoils only its own', async (t) => {
  await defineFlow(sql, 'batches', [{ slug: 'each', type: 'map' }])
  const run = await start('batches', Array(10).fill(0))
  let release
  const all = new Promise((resolve) => (release = resolve))
  let waiting = 0
  const handler = async ({ task_index }) => {
    if ((waiting += 1) === 10) release()
    await all
    return task_index === 9 ? '\0' : task_index
  }
  const worker = begin(t, 'batches', { each: handler }, { concurrency: 10 })
  assert.equal((await ended(run)).status, 'failed')
  const tasks = await tasksOf(run)
  assert.deepEqual(tasks.map((task) => task.status), [...Array(9).fill('completed'), 'failed'])
  assert.match(tasks[9].error, /Unicode/)
  const calls = worker.queries.filter((query) => query.includes('complete_tasks'))
  // The first result alone, the others together in vain, each of them by itself, and two more attempts of the last.
  assert.equal(calls.length, 1 + 1 + 9 + 2)
})

test('outputs that cannot be stored and steps without a handler fail', async (t) => {
  const cases = [
    ['no_json', 'a', { a: () => 1n }, /BigInt/],
    ['no_jsonb', 'a', { a: () => 'with \0 in it' }, /Unicode/],
    ['no_handler', 'a', { b: () => 1 }, /^no handler for step "a"$/],
    ['no_own_handler', 'constructor', {}, /^no handler for step "constructor"$/], // which every object inherits
  ]
  const workers = await Promise.all(cases.map(async ([flow, slug, handlers, error]) => {
    await defineFlow(sql, flow, [{ slug }])
    const worker = begin(t, flow, handlers)
    const run = await start(flow)
    assert.equal((await ended(run)).status, 'failed')
    const [task] = await tasksOf(run)
    assert.deepEqual([task.status, task.attempts], ['failed', 3])
    assert.match(task.error, error)
    return worker
  }))
  await Promise.all(workers.map((worker) => worker.stop()))
})

test('the heartbeat moves', async (t) => {
  await defineFlow(sql, 'beating', [{ slug: 'a' }])
  const worker = begin(t, 'beating', {}, { heartbeatSeconds: 0.1, name: 'heart' })
  const row = await until(() => workerRow(worker.id), 'the worker to be known')
  assert.deepEqual([row.queue_name, row.function_name, row.stopped_at], ['beating', 'heart', null])
  await until(async () => (await workerRow(worker.id)).last_heartbeat_at > row.last_heartbeat_at, 'a heartbeat')
  await worker.stop()
  assert.ok((await workerRow(worker.id)).stopped_at)
})

test('a worker whose row was deleted makes itself known again', async (t) => {
  await defineFlow(sql, 'forgotten', [{ slug: 'a' }])
  const worker = begin(t, 'forgotten', { a: () => 1 }, { heartbeatSeconds: 0.1 })
  await until(() => workerRow(worker.id), 'the worker to be known')
  await sql`delete from pgflow.workers where worker_id = ${worker.id}`
  await until(() => workerRow(worker.id), 'the worker to be known again')
  assert.equal((await ended(await start('forgotten'))).status, 'completed')
})

test('a worker that was deprecated finishes its task, takes no other and stops', { timeout: 30_000 }, async (t) => {
  await defineFlow(sql, 'old', [{ slug: 'each', type: 'map' }])
  let begun
  let finish
  const inHand = new Promise((resolve) => (begun = resolve))
  t.after(() => finish?.('late')) // or a failed test would wait for it
  const worker = begin(t, 'old', {
    each: () => new Promise((resolve) => {
      begun()
      finish = resolve
    }),
  }, { concurrency: 1, heartbeatSeconds: 0.1 })
  const run = await start('old', [1, 2])
  await inHand
  await sql`update pgflow.workers set deprecated_at = now() where worker_id = ${worker.id}`
  const seen = (await workerRow(worker.id)).last_heartbeat_at
  await until(async () => (await workerRow(worker.id)).last_heartbeat_at > seen, 'the next heartbeat')
  finish('done')
  await worker.stopped
  assert.deepEqual((await tasksOf(run)).map((task) => [task.status, task.attempts]), [['completed', 1], ['queued', 0]])
  assert.ok((await workerRow(worker.id)).stopped_at)
})

test('SIGTERM: the task in hand is finished and reported, no other is claimed', async (t) => {
  await defineFlow(sql, 'ended', [{ slug: 'step', type: 'map' }])
  const first = await start('ended', [1])
  const program = await spawn(t, 'ended', 2)
  assert.deepEqual(await said(program), { begun: 0 })

  program.kill('SIGTERM')
  assert.equal(await said(program), 'stopping')
  // The worker has a free place, and a read that waits for messages. It may get this one, and must not claim it.
  const second = await start('ended', [2])
  await until(async () => (await sql`select from pgmq.q_ended where msg_id = 2 and read_ct = 1`).length, 'the read')
  program.send('finished')
  assert.deepEqual(await next(program, 'exit'), [0, null])

  assert.deepEqual((await ended(first)).output, { step: ['finished'] })
  assert.deepEqual(await tasksOf(second), [{ task_index: 0, status: 'queued', attempts: 0, error: null }])
  const [worker] = await sql`select * from pgflow.workers where queue_name = 'ended'`
  assert.ok(worker.stopped_at)
  begin(t, 'ended', { step: () => 'by another' })
  assert.deepEqual((await ended(second)).output, { step: ['by another'] })
  assert.equal((await tasksOf(second))[0].attempts, 1)
})

test('SIGTERM of an idle worker ends it', async (t) => {
  await defineFlow(sql, 'idle', [{ slug: 'step' }])
  const program = await spawn(t, 'idle', 1)
  await until(async () => (await sql`select from pgflow.workers where queue_name = 'idle'`).length, 'the worker')
  program.kill('SIGTERM')
  assert.deepEqual(await next(program, 'exit'), [0, null])
  assert.ok((await sql`select stopped_at from pgflow.workers where queue_name = 'idle'`)[0].stopped_at)
})

test('SIGKILL: the stalled task is given to another worker, which finishes', async (t) => {
  await defineFlow(sql, 'killed', [{ slug: 'step', type: 'map' }])
  const run = await start('killed', [1, 2])
  const program = await spawn(t, 'killed', 1)
  assert.deepEqual(await said(program), { begun: 0 })
  program.kill('SIGKILL')
  assert.deepEqual(await next(program, 'exit'), [null, 'SIGKILL'])
  assert.deepEqual((await tasksOf(run)).map((task) => [task.status, task.attempts]), [['started', 1], ['queued', 0]])

  const requeue = async () => (await sql`select pgflow.requeue_stalled_tasks() as requeued`)[0].requeued
  assert.equal(await requeue(), 0)
  const moved = await sql`
    update pgflow.step_tasks
    set queued_at = queued_at - interval '10 minutes', started_at = started_at - interval '10 minutes'
    where run_id = ${run} and status = 'started'`
  assert.equal(moved.count, 1)
  assert.equal(await requeue(), 1)

  begin(t, 'killed', { step: ({ input }) => input * 10 })
  assert.deepEqual((await ended(run)).output, { step: [10, 20] })
  assert.deepEqual((await tasksOf(run)).map((task) => task.attempts), [2, 1])
  assert.deepEqual(await brokenInvariants(sql), [])
})

test('unknown messages are left in the queue, and warned of once for each read', async (t) => {
  await defineFlow(sql, 'mixed', [{ slug: 'each', type: 'map' }])
  const [{ send: unknown }] = await sql`select send from pgmq.send('mixed', '{"to": "nobody"}')`
  const run = await start('mixed', [1, 2, 3])
  // Read again two seconds later; no read of one second is still waiting then.
  const worker = begin(t, 'mixed', { each: ({ input }) => input }, { hiddenSeconds: 2, pollSeconds: 1 })
  assert.equal((await ended(run)).status, 'completed')
  await until(() => worker.notices.length === 2, 'the second warning')
  await worker.stop()
  for (const notice of worker.notices) {
    assert.match(notice, /"mixed"/)
    assert.deepEqual(notice.match(/\d+/g), [unknown])
  }
  const left = await sql`select msg_id, read_ct, message from pgmq.q_mixed`
  assert.deepEqual([...left], [{ msg_id: unknown, read_ct: 2, message: { to: 'nobody' } }])
  assert.equal(worker.notices.length, 2)
})

test('ids beyond 2^53 are exact from the read to the archive', async (t) => {
  const first = 9007199254740993n
  await defineFlow(sql, 'huge', [{ slug: 'each', type: 'map' }])
  await sql.unsafe(`alter table pgmq.q_huge alter column msg_id restart with ${first}`)
  await sql`select from pgmq.send('huge', '{}')`
  const run = await start('huge', ['a', 'b', 'c'])
  const worker = begin(t, 'huge', { each: ({ input, msg_id }) => `${input} ${msg_id}` })
  const ids = [1n, 2n, 3n].map((n) => String(first + n))
  assert.deepEqual((await ended(run)).output, { each: [`a ${ids[0]}`, `b ${ids[1]}`, `c ${ids[2]}`] })
  await worker.stop()
  assert.deepEqual((await sql`select msg_id from pgmq.a_huge order by 1`).map((message) => message.msg_id), ids)
  assert.deepEqual(worker.notices[0].match(/\d+/g), [String(first)])
})

test('a task that is routed to another queue is worked on by a worker of that queue', async (t) => {
  await defineFlow(sql, 'routed', [{ slug: 'near' }, { slug: 'far', deps: ['near'] }])
  await sql`select from pgmq.create('faraway')`
  await sql`update pgflow.steps set queue_name = 'faraway' where step_slug = 'far'`
  begin(t, 'routed', { near: () => 'near' })
  begin(t, 'routed', { far: ({ input }) => `${input.near}, far` }, { queue: 'faraway' })
  assert.deepEqual((await ended(await start('routed'))).output, { far: 'near, far' })
})
