// The ways in which clients call start_tasks: three or four arguments, by name or by position.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { defineFlow, freshDatabase, register } from './database.mjs'

const { sql } = await freshDatabase(import.meta.url)
await defineFlow(sql, 'MyFlow', [{ slug: 'a' }])
const worker = await register(sql, 'myflow')

let ids
beforeEach(async () => {
  await sql`select from pgflow.start_flow('MyFlow', '[]')`
  ids = (await sql`select msg_id from pgmq.read('myflow', 30, 1)`).map((message) => message.msg_id)
})

const claimed = (tasks) => tasks.map((task) => [task.step_slug, task.msg_id])
const expected = () => [['a', ids[0]]]

test('three named arguments', async () => {
  const tasks = await sql`
    select * from pgflow.start_tasks(flow_slug => 'MyFlow', msg_ids => ${ids}::bigint[], worker_id => ${worker}::uuid)`
  assert.deepEqual(claimed(tasks), expected())
})

test('four named arguments', async () => {
  const tasks = await sql`
    select * from pgflow.start_tasks(flow_slug => 'MyFlow', msg_ids => ${ids}::bigint[], worker_id => ${worker}::uuid,
                                     queue_name => 'myflow')`
  assert.deepEqual(claimed(tasks), expected())
})

test('three positional arguments without a cast', async () => {
  const tasks = await sql`select * from pgflow.start_tasks('MyFlow', ${ids}, ${worker})`
  assert.deepEqual(claimed(tasks), expected())
})

test('four positional arguments, the queue in another spelling', async () => {
  const tasks = await sql`select * from pgflow.start_tasks('MyFlow', ${ids}, ${worker}, 'MYFLOW')`
  assert.deepEqual(claimed(tasks), expected())
})

test('a NULL queue_name means the default queue', async () => {
  const tasks = await sql`select * from pgflow.start_tasks('MyFlow', ${ids}, ${worker}, ${null})`
  assert.deepEqual(claimed(tasks), expected())
})

test('a task arrives with the columns of step_task_record', async () => {
  const [task] = await sql`select * from pgflow.start_tasks('MyFlow', ${ids}, ${worker})`
  assert.deepEqual(Object.keys(task), [
    'flow_slug', 'run_id', 'step_slug', 'input', 'msg_id', 'task_index', 'flow_input',
  ])
  assert.deepEqual([task.flow_slug, task.input, task.flow_input], ['MyFlow', {}, []])
})

test('no message ids, no tasks', async () => {
  assert.equal((await sql`select * from pgflow.start_tasks('MyFlow', ${[]}::bigint[], ${worker})`).length, 0)
  assert.equal((await sql`select * from pgflow.start_tasks('MyFlow', ${null}::bigint[], ${worker})`).length, 0)
})

test('a worker that is not registered claims nothing', async () => {
  const stranger = '00000000-0000-0000-0000-00000000dead'
  await assert.rejects(sql`select * from pgflow.start_tasks('MyFlow', ${ids}, ${stranger})`, { code: '23503' })
  const [task] = await sql`select status, attempts_count from pgflow.step_tasks where message_id = ${ids[0]}`
  assert.deepEqual({ ...task }, { status: 'queued', attempts_count: 0 })
})
