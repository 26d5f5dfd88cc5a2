// The released packages @pgflow/core and @pgflow/dsl, as they are: a flow is compiled, and driven to its end.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { PgflowSqlClient } from '@pgflow/core'
import { Flow, compileFlow } from '@pgflow/dsl'
import { brokenInvariants, freshDatabase, register } from './database.mjs'

const notices = []
const { sql, connect } = await freshDatabase(import.meta.url)
const own = connect({ onnotice: (notice) => notices.push(notice.message) })
const client = new PgflowSqlClient(own)

const Orders = new Flow({ slug: 'Orders', maxAttempts: 2, baseDelay: 1, timeout: 10 })
  .array({ slug: 'items' }, (_, { stepTask }) => stepTask.flow_input.items)
  .map({ slug: 'price', array: 'items' }, (item) => ({ ...item, price: item.count * 2 }))
  .step({ slug: 'total', dependsOn: ['price'], timeout: 20 }, ({ price }) =>
    price.reduce((sum, item) => sum + item.price, 0))
  .step({ slug: 'receipt', dependsOn: ['items', 'total'], startDelay: 1 }, ({ items, total }) =>
    `${items.length} items: ${total}`)

await define(Orders)

async function define(flow) {
  for (const statement of compileFlow(flow)) await own.unsafe(statement)
}

/** Starts a run and works on it until it has ended. */
async function run(flow, input) {
  const queue = flow.slug.toLowerCase()
  const worker = await register(sql, queue)
  const { run_id } = await client.startFlow(flow.slug, input)
  let ended
  do {
    const messages = await client.readMessages(queue, 2, 10, 1, 50)
    const tasks = await client.startTasks(flow.slug, messages.map((message) => message.msg_id), worker)
    await Promise.all(tasks.map((task) => execute(flow, task)))
    ;[ended] = await sql`select * from pgflow.runs where run_id = ${run_id}`
  } while (ended.status === 'started')
  assert.deepEqual(await brokenInvariants(sql), [])
  assert.deepEqual([...(await sql`select msg_id from pgmq.${sql(`q_${queue}`)}`)], [], 'no message is left')
  return ended
}

async function execute(flow, task) {
  let output
  try {
    output = await flow.getStepDefinition(task.step_slug).handler(task.input, { stepTask: task })
  } catch (error) {
    return client.failTask(task, error)
  }
  return client.completeTask(task, output)
}

const tasksOf = ({ run_id }) => sql`
  select step_slug, task_index, status, attempts_count, error_message from pgflow.step_tasks
  where run_id = ${run_id} order by 1, 2`

test('the packages are the released ones', async () => {
  for (const name of ['core', 'dsl']) {
    const manifest = await readFile(new URL(`node_modules/@pgflow/${name}/package.json`, import.meta.url), 'utf8')
    assert.equal(JSON.parse(manifest).version, '0.8.1')
  }
})

test('a compiled flow is the flow that was written, also when it is compiled again', async () => {
  await define(Orders)
  const [flow] = await sql`
    select flow_slug, opt_max_attempts, opt_base_delay, opt_timeout from pgflow.flows where flow_slug = 'Orders'`
  assert.deepEqual({ ...flow }, { flow_slug: 'Orders', opt_max_attempts: 2, opt_base_delay: 1, opt_timeout: 10 })
  const steps = await sql`
    select step_slug, step_type, queue_name, opt_timeout, opt_start_delay,
      array(select dep_slug from pgflow.deps where deps.flow_slug = s.flow_slug and deps.step_slug = s.step_slug
            order by 1) as deps
    from pgflow.steps as s where flow_slug = 'Orders' order by step_index`
  const step = (step_slug, step_type, opt_timeout, opt_start_delay, ...deps) =>
    ({ step_slug, step_type, queue_name: 'orders', opt_timeout, opt_start_delay, deps })
  assert.deepEqual([...steps], [
    step('items', 'single', null, null),
    step('price', 'map', null, null, 'items'),
    step('total', 'single', 20, null, 'price'),
    step('receipt', 'single', null, 1, 'items', 'total'),
  ])
})

test('a flow of single and map steps completes', async () => {
  const ended = await run(Orders, { items: [{ count: 1 }, { count: 2 }, { count: 3 }] })
  assert.deepEqual([ended.status, ended.output], ['completed', { receipt: '3 items: 12' }])
  const tasks = await tasksOf(ended)
  assert.equal(tasks.length, 6)
  for (const task of tasks) assert.deepEqual([task.status, task.attempts_count], ['completed', 1])
})

test('a flow that starts with a map step completes, with and without elements', async () => {
  const Squares = new Flow({ slug: 'squares' }).map({ slug: 'square' }, (n) => n * n)
  await define(Squares)
  assert.deepEqual((await run(Squares, [1, 2, 3])).output, { square: [1, 4, 9] })
  assert.deepEqual((await run(Squares, [])).output, { square: [] })
})

test('a failed attempt is repeated', async () => {
  const failed = new Set()
  const Flaky = new Flow({ slug: 'flaky', baseDelay: 1 }).map({ slug: 'each' }, (n) => {
    if (n === 2 && !failed.has(n)) {
      failed.add(n)
      throw new Error('not yet')
    }
    return n
  })
  await define(Flaky)
  const ended = await run(Flaky, [1, 2, 3])
  assert.deepEqual(ended.output, { each: [1, 2, 3] })
  assert.deepEqual((await tasksOf(ended)).map((task) => [task.attempts_count, task.error_message]), [
    [1, null], [2, 'not yet'], [1, null],
  ])
})

test('a flow fails when attempts are used up; what is not an Error is reported too', async () => {
  for (const [slug, thrown, message] of [
    ['by_error', new Error('no stock'), 'no stock'],
    ['by_text', 'no stock', 'no stock'],
    ['by_object', { stock: 0 }, '{"stock":0}'],
  ]) {
    const Doomed = new Flow({ slug, maxAttempts: 1 })
      .step({ slug: 'bad' }, () => {
        throw thrown
      })
      .step({ slug: 'after', dependsOn: ['bad'] }, () => 'never')
    await define(Doomed)
    const ended = await run(Doomed, {})
    assert.equal(ended.status, 'failed')
    assert.deepEqual((await tasksOf(ended)).map((task) => ({ ...task })), [
      { step_slug: 'bad', task_index: 0, status: 'failed', attempts_count: 1, error_message: message },
    ])
  }
})

test('a run can be given its id', async () => {
  const id = randomUUID()
  const started = await client.startFlow('Orders', { items: [] }, id)
  assert.deepEqual([started.run_id, started.status, started.remaining_steps], [id, 'started', 4])
  await assert.rejects(client.startFlow('Orders', { items: [] }, id), { code: '23505' })
})

test('ids beyond 2^53 go through the client as the strings that the driver makes of them', async () => {
  const first = '9007199254740993'
  const Huge = new Flow({ slug: 'huge' }).map({ slug: 'each' }, (n, { stepTask }) => [n, stepTask.msg_id])
  await define(Huge)
  await sql.unsafe(`alter table pgmq.q_huge alter column msg_id restart with ${first}`)
  const ended = await run(Huge, ['a', 'b', 'c'])
  assert.deepEqual(ended.output, { each: [['a', first], ['b', '9007199254740994'], ['c', '9007199254740995']] })
  const archived = (await sql`select msg_id from pgmq.a_huge order by 1`).map((message) => message.msg_id)
  assert.deepEqual(archived, [first, '9007199254740994', '9007199254740995'])
})

test('limit: the client claims from the default queue only', async () => {
  const Routed = new Flow({ slug: 'routed' }).step({ slug: 'a' }, () => 1)
  await define(Routed)
  await sql`select from pgmq.create('elsewhere')`
  await sql`update pgflow.steps set queue_name = 'elsewhere' where flow_slug = 'routed'`
  await client.startFlow('routed', {})
  const worker = await register(sql, 'elsewhere')
  const [{ msg_id }] = await client.readMessages('elsewhere', 2, 1, 1, 50)
  notices.length = 0
  assert.deepEqual([...(await client.startTasks('routed', [msg_id], worker))], [])
  assert.equal(notices.length, 1)
  assert.match(notices[0], /"routed"/)
  const [task] = await sql`select status, attempts_count from pgflow.step_tasks where flow_slug = 'routed'`
  assert.deepEqual({ ...task }, { status: 'queued', attempts_count: 0 })
})

test('limit: the client reports 0, false and the empty text as null', async () => {
  const Falsy = new Flow({ slug: 'falsy' }).map({ slug: 'each' }, (value) => value)
  await define(Falsy)
  assert.deepEqual((await run(Falsy, [0, false, '', 1])).output, { each: [null, null, null, 1] })
})

test('limit: handlers find the run input in flow_input, not in input.run', async () => {
  const Old = new Flow({ slug: 'old' })
    .step({ slug: 'first' }, (input, { stepTask }) => ['run' in input, stepTask.flow_input])
    .step({ slug: 'second', dependsOn: ['first'] }, (input, { stepTask }) => [Object.keys(input), stepTask.flow_input])
  await define(Old)
  const ended = await run(Old, { for: 'all' })
  const [first] = await sql`
    select output from pgflow.step_states where run_id = ${ended.run_id} and step_slug = 'first'`
  assert.deepEqual(first.output, [false, { for: 'all' }])
  assert.deepEqual(ended.output, { second: [['first'], null] })
})
