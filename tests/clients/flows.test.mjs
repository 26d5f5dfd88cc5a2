// Whole flows, driven to their end by several workers on connections of their own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brokenInvariants, defineFlow, freshDatabase } from './database.mjs'
import { work } from './worker.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)
const WORKERS = 4
const connections = Array.from({ length: WORKERS }, () => connect())

/** Runs a flow with WORKERS workers; returns the ended run, its tasks, and how many tasks each worker executed. */
async function run(flow, input, handlers) {
  const [{ run_id }] = await sql`select run_id from pgflow.start_flow(${flow}, ${sql.json(input)})`
  const executed = await Promise.all(connections.map((own) => work(own, flow, run_id, handlers)))
  const [ended] = await sql`select * from pgflow.runs where run_id = ${run_id}`
  const tasks = await sql`
    select step_slug, task_index, status, attempts_count, last_worker_id from pgflow.step_tasks
    where run_id = ${run_id} order by 1, 2`
  assert.deepEqual(await brokenInvariants(sql), [])
  const live = await sql.unsafe(`select msg_id from pgmq.q_${flow.toLowerCase()}`)
  assert.deepEqual([...live], [], 'no message is left')
  return { ended, tasks, executed: executed.reduce((sum, count) => sum + count, 0) }
}

const attempts = (tasks) => [...new Set(tasks.map((task) => `${task.status} ${task.attempts_count}`))]

test('a chain of three steps', async () => {
  await defineFlow(sql, 'Chain', [{ slug: 'a' }, { slug: 'b', deps: ['a'] }, { slug: 'c', deps: ['b'] }])
  const { ended, tasks } = await run('Chain', { start: 1 }, {
    a: (_, task) => task.flow_input.start + 1,
    b: ({ a }) => a * 10,
    c: ({ b }) => ({ b }),
  })
  assert.equal(ended.status, 'completed')
  assert.deepEqual(ended.output, { c: { b: 20 } })
  assert.equal(ended.remaining_steps, 0)
  assert.deepEqual(attempts(tasks), ['completed 1'])
})

test('a diamond', async () => {
  await defineFlow(sql, 'diamond', [
    { slug: 'top' },
    { slug: 'left', deps: ['top'] },
    { slug: 'right', deps: ['top'] },
    { slug: 'bottom', deps: ['left', 'right'] },
  ])
  const { ended, tasks } = await run('diamond', {}, {
    top: () => 'top',
    left: ({ top }) => `${top} left`,
    right: ({ top }) => `${top} right`,
    bottom: (input) => input,
  })
  assert.deepEqual(ended.output, { bottom: { left: 'top left', right: 'top right' } })
  assert.equal(tasks.length, 4)
  assert.deepEqual(attempts(tasks), ['completed 1'])
})

test('a map of 1000 tasks, each executed once, shared by the workers', async () => {
  await defineFlow(sql, 'wide', [
    { slug: 'list' },
    { slug: 'square', deps: ['list'], type: 'map' },
    { slug: 'sum', deps: ['square'] },
  ])
  const { ended, tasks, executed } = await run('wide', {}, {
    list: () => Array.from({ length: 1000 }, (_, i) => i),
    square: (n) => n * n,
    sum: ({ square }) => square.reduce((sum, n) => sum + n, 0),
  })
  assert.deepEqual(ended.output, { sum: 332833500 })
  assert.equal(tasks.length, 1002)
  assert.equal(executed, 1002)
  assert.deepEqual(attempts(tasks), ['completed 1'])
  assert.equal(new Set(tasks.map((task) => task.last_worker_id)).size, WORKERS, 'every worker had a share')
  const [{ output }] = await sql`select output from pgflow.step_states where step_slug = 'square'`
  assert.deepEqual(output, Array.from({ length: 1000 }, (_, i) => i * i), 'outputs in the order of the input')
})

test('a map over large elements gives each task its own', async () => {
  await defineFlow(sql, 'large', [{ slug: 'each', type: 'map' }])
  const letters = ['a', 'b', 'c', 'd']
  const { ended } = await run('large', letters.map((letter) => letter.repeat(1_000_000)), {
    each: (text) => [text[0], text.length, new Set(text).size],
  })
  assert.deepEqual(ended.output, { each: letters.map((letter) => [letter, 1_000_000, 1]) })
})

test('a map over an empty array needs no worker for its own step', async () => {
  await defineFlow(sql, 'empty', [
    { slug: 'each', type: 'map' },
    { slug: 'again', deps: ['each'], type: 'map' },
    { slug: 'last', deps: ['again'] },
  ])
  const { ended, tasks } = await run('empty', [], { last: (input) => input })
  assert.deepEqual(ended.output, { last: { again: [] } })
  assert.deepEqual(tasks.map((task) => task.step_slug), ['last'])
})

test('a flow of nothing but a map over an empty array is completed by its start', async () => {
  await defineFlow(sql, 'nothing', [{ slug: 'each', type: 'map' }])
  const [started] = await sql`select status, output from pgflow.start_flow('nothing', '[]')`
  assert.deepEqual({ ...started }, { status: 'completed', output: { each: [] } })
})

test('a handler that fails once is tried again', async () => {
  await defineFlow(sql, 'flaky', [{ slug: 'a' }])
  let calls = 0
  const { ended, tasks } = await run('flaky', {}, {
    a: () => {
      calls += 1
      if (calls === 1) throw new Error('not yet')
      return calls
    },
  })
  assert.deepEqual(ended.output, { a: 2 })
  assert.deepEqual(attempts(tasks), ['completed 2'])
})

test('a handler that always fails fails the run, and its siblings are cancelled or done', async () => {
  await defineFlow(sql, 'doomed', [{ slug: 'bad' }, { slug: 'each', type: 'map' }])
  const { ended, tasks } = await run('doomed', [1, 2, 3], {
    bad: () => {
      throw new Error('never')
    },
    each: (n) => n,
  })
  assert.equal(ended.status, 'failed')
  const [bad] = await sql`select status, error_message, attempts_count from pgflow.step_tasks where step_slug = 'bad'`
  assert.deepEqual({ ...bad }, { status: 'failed', error_message: 'never', attempts_count: 3 })
  for (const task of tasks) assert.match(task.status, /^(failed|completed|cancelled)$/)
})
