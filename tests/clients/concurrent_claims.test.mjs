// Connections that claim the same messages at the same time never share a task.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brokenInvariants, defineFlow, freshDatabase, register } from './database.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)
const TASKS = 200
const connections = [connect(), connect(), connect()]
await defineFlow(sql, 'f', [{ slug: 'each', type: 'map' }])
const workers = await Promise.all(connections.map(() => register(sql, 'f')))

/** Starts a run of TASKS tasks; returns its message ids. */
async function start() {
  const [{ run_id }] = await sql`select run_id from pgflow.start_flow('f', ${sql.json(Array(TASKS).fill(0))})`
  const rows = await sql`select message_id from pgflow.step_tasks where run_id = ${run_id} order by task_index`
  return rows.map((row) => row.message_id)
}

const shuffled = (ids) => ids.map((id) => [Math.random(), id]).sort((a, b) => a[0] - b[0]).map(([, id]) => id)

async function claimAll(batches) {
  const claimed = await Promise.all(batches.map((ids, i) => connections[i]`
    select msg_id from pgflow.start_tasks('f', ${ids}::bigint[], ${workers[i]})`))
  return claimed.map((rows) => rows.map((row) => row.msg_id))
}

async function assertEachClaimedOnce(ids, claimed) {
  const all = claimed.flat()
  assert.equal(new Set(all).size, all.length, 'no task is claimed twice')
  assert.deepEqual(new Set(all), new Set(ids), 'every task is claimed')
  const counts = await sql`
    select distinct status, attempts_count from pgflow.step_tasks where message_id = any(${ids}::bigint[])`
  assert.deepEqual([...counts], [{ status: 'started', attempts_count: 1 }])
  for (const [i, own] of claimed.entries()) {
    const [{ count }] = await sql`
      select count(*)::int from pgflow.step_tasks
      where message_id = any(${own}::bigint[]) and last_worker_id = ${workers[i]}`
    assert.equal(count, own.length, 'a task belongs to the worker that was given it')
  }
}

test('three connections claim the same batch, ten times over', async () => {
  for (let round = 0; round < 10; round += 1) {
    const ids = await start()
    await assertEachClaimedOnce(ids, await claimAll([ids, shuffled(ids), [...ids].reverse()]))
  }
})

test('three connections claim overlapping small batches until nothing is left', async () => {
  const ids = await start()
  const won = [[], [], []]
  for (let i = 0; i < TASKS; i += 10) {
    const near = ids.slice(Math.max(0, i - 5), i + 15)
    const claimed = await claimAll([near, shuffled(near), [...near].reverse()])
    claimed.forEach((own, w) => won[w].push(...own))
  }
  await assertEachClaimedOnce(ids, won)
  assert.deepEqual(await brokenInvariants(sql), [])
})
