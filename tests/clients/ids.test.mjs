// Message ids are bigint: beyond 2^53 a JavaScript number cannot tell neighbours apart, a string can.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineFlow, freshDatabase, register } from './database.mjs'

const { sql } = await freshDatabase(import.meta.url)
const FIRST = '9007199254740993' // 2^53 + 1

/** A flow whose queue gives FIRST to its next message. */
async function flowWithHugeIds(flow, steps) {
  await defineFlow(sql, flow, steps)
  await sql.unsafe(`alter table pgmq.q_${flow} alter column msg_id restart with ${FIRST}`)
}

const readIds = async (queue) =>
  (await sql`select msg_id::text from pgmq.read(${queue}, 30, 10)`).map((message) => message.msg_id)

test('a JavaScript number would lose these ids', () => {
  assert.notEqual(String(Number(FIRST)), FIRST)
})

test('an id beyond 2^53 is the same decimal string in read, claim, task row, completion and archive', async () => {
  await flowWithHugeIds('huge', [{ slug: 'only' }])
  const [{ run_id }] = await sql`select run_id from pgflow.start_flow('huge', '[]')`
  assert.deepEqual(await readIds('huge'), [FIRST])

  const worker = await register(sql, 'huge')
  const claimed = await sql`select * from pgflow.start_tasks('huge', ${[FIRST]}::bigint[], ${worker})`
  assert.deepEqual(claimed.map((task) => [task.step_slug, task.msg_id]), [['only', FIRST]])

  const [stored] = await sql`select message_id, message_id::text as as_text from pgflow.step_tasks`
  assert.deepEqual({ ...stored }, { message_id: FIRST, as_text: FIRST })

  const [completed] = await sql`select * from pgflow.complete_task(${run_id}, 'only', 0, '1')`
  assert.equal(completed.status, 'completed')
  assert.equal(completed.message_id, FIRST)
  assert.deepEqual([...(await sql`select msg_id from pgmq.a_huge`)], [{ msg_id: FIRST }])
  assert.deepEqual([...(await sql`select msg_id from pgmq.q_huge`)], [])
})

test('neighbours beyond 2^53 are told apart', async () => {
  await flowWithHugeIds('neighbours', [{ slug: 'each', type: 'map' }])
  await sql`select from pgflow.start_flow('neighbours', '["a", "b", "c"]')`
  const ids = await readIds('neighbours')
  assert.deepEqual(ids, [FIRST, '9007199254740994', '9007199254740995'])

  const worker = await register(sql, 'neighbours')
  const claim = (wanted) => sql`
    select task_index, input, msg_id from pgflow.start_tasks('neighbours', ${wanted}::bigint[], ${worker})
    order by task_index`
  assert.deepEqual([...(await claim([ids[2]]))], [{ task_index: 2, input: 'c', msg_id: ids[2] }])
  assert.deepEqual([...(await claim(ids))], [
    { task_index: 0, input: 'a', msg_id: ids[0] },
    { task_index: 1, input: 'b', msg_id: ids[1] },
  ])
})

test('set_vt_batch takes and gives ids beyond 2^53', async () => {
  await flowWithHugeIds('moved', [{ slug: 'each', type: 'map' }])
  await sql`select from pgflow.start_flow('moved', '[1, 2]')`
  const rows = await sql`
    select msg_id, vt > clock_timestamp() + interval '1 hour' as later
    from pgflow.set_vt_batch('moved', ${['9007199254740994', FIRST]}::bigint[], ${[7200, 0]}::integer[]) order by 1`
  assert.deepEqual([...rows], [
    { msg_id: FIRST, later: false },
    { msg_id: '9007199254740994', later: true },
  ])
})
