// Messages that a worker cannot claim reach it as warnings: one per kind and call, with queue and ids, without bodies.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineFlow, freshDatabase, register } from './database.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)
const BODY = 'a-secret-body'

test('unknown and foreign messages are named in one warning per kind, and the rest of the batch is claimed', async () => {
  await defineFlow(sql, 'ours', [{ slug: 'each', type: 'map' }])
  await defineFlow(sql, 'theirs', [{ slug: 'each', type: 'map' }])
  await sql`update pgflow.steps set queue_name = 'ours' where flow_slug = 'theirs'`
  await sql`select from pgflow.start_flow('ours', '[1, 2]')`
  await sql`select from pgflow.start_flow('theirs', ${sql.json([BODY, BODY])})`
  await sql`select pgmq.send_batch('ours', array[${sql.json({ BODY })}, ${sql.json({ BODY })}]::jsonb[])`
  const queueRows = () => sql`select msg_id, read_ct, vt, message from pgmq.q_ours order by 1`
  const before = await queueRows()
  const ids = before.map((message) => message.msg_id)
  assert.deepEqual(ids, ['1', '2', '3', '4', '5', '6'])

  const notices = []
  const listener = connect({ onnotice: (notice) => notices.push(notice) })
  const worker = await register(sql, 'ours')
  const tasks = await listener`
    select * from pgflow.start_tasks('ours', ${ids}::bigint[], ${worker}, 'OURS') order by task_index`

  assert.deepEqual(tasks.map((task) => [task.msg_id, task.input]), [['1', 1], ['2', 2]])
  assert.equal(notices.length, 2)
  const foreign = notices.find((notice) => notice.message.includes('flow'))
  const unknown = notices.find((notice) => notice !== foreign)
  for (const [notice, named] of [[unknown, ['5', '6']], [foreign, ['3', '4']]]) {
    assert.equal(notice.severity, 'WARNING')
    assert.match(notice.message, /"ours"/)
    assert.deepEqual(notice.message.match(/\d+/g), named)
    assert.ok(!JSON.stringify(notice).includes(BODY), 'the body is not in the warning')
    assert.ok(!JSON.stringify(notice).includes('BODY'), 'the body is not in the warning')
  }

  assert.deepEqual((await queueRows()).slice(2), before.slice(2), 'what was not claimed is untouched')
  const theirs = await sql`select distinct status, attempts_count from pgflow.step_tasks where flow_slug = 'theirs'`
  assert.deepEqual([...theirs], [{ status: 'queued', attempts_count: 0 }])
})

test('a batch without unknown messages warns of nothing, started and ended tasks included', async () => {
  await defineFlow(sql, 'quiet', [{ slug: 'each', type: 'map' }])
  const [{ run_id }] = await sql`select run_id from pgflow.start_flow('quiet', '[1, 2, 3]')`
  const notices = []
  const listener = connect({ onnotice: (notice) => notices.push(notice) })
  const worker = await register(sql, 'quiet')
  const claim = (ids) => listener`select * from pgflow.start_tasks('quiet', ${ids}::bigint[], ${worker})`
  assert.equal((await claim(['1', '2'])).length, 2)
  await sql`select from pgflow.complete_task(${run_id}, 'each', 0, '1')`
  assert.deepEqual((await claim(['1', '2', '3', '3'])).map((task) => task.msg_id), ['3'])
  assert.deepEqual(notices, [])
})
