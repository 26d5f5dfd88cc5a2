// The SQL of every page runs, and gives what the page shows.
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { hiddenSql, userPages } from './markdown.mjs'
import { dropRoles, faultsOf, planOf } from './page.mjs'

afterEach(dropRoles)

for (const path of userPages()) {
  const { steps, skipped } = planOf(path)
  for (const one of skipped) console.log(`-- not run: ${one}`)
  if (steps.length > 0) {
    test(`the SQL of ${path} runs and gives what is shown`, async () => {
      const faults = await faultsOf(path)
      assert.equal(faults.length, 0, `\n${faults.join('\n\n')}`)
    })
  }
}

test('every block of SQL says that it is one', () => {
  assert.deepEqual(userPages().flatMap(hiddenSql), [])
})
