// Workers that start together bring the same flow.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from './database.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)

const step = (slug, dependencies) => ({
  slug,
  stepType: 'single',
  dependencies,
  whenUnmet: 'skip',
  whenExhausted: 'fail',
  requiredInputPattern: { defined: false },
  forbiddenInputPattern: { defined: false },
})
const shape = { steps: [step('a', []), step('b', ['a']), step('c', ['a', 'b'])] }

test('of ten sessions that compile one flow at once, one compiles it and nine verify it', async () => {
  const sessions = Array.from({ length: 10 }, () => connect())
  await Promise.all(sessions.map((session) => session`select 1`)) // connected before the race begins
  const answers = await Promise.all(
    sessions.map((session) => session`select pgflow.ensure_flow_compiled('MyFlow', ${sql.json(shape)}) as answer`),
  )
  const statuses = answers.map(([{ answer }]) => answer.status).sort()
  assert.deepEqual(statuses, ['compiled', ...Array(9).fill('verified')])
  const [{ steps }] = await sql`select count(*)::integer as steps from pgflow.steps where flow_slug = 'MyFlow'`
  assert.equal(steps, 3)
})
