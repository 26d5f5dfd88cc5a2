// The runner itself: it accepts a page that is right, and notices each way to be wrong.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { brokenLinks, hiddenSql, project, read } from './markdown.mjs'
import { faultsOf, planOf } from './page.mjs'

const fixture = (name) => `tests/docs/fixtures/${name}.md`

test('a page that is right has no fault', async () => {
  assert.deepEqual(await faultsOf(fixture('right')), [])
})

test('a block that is not run is counted, with its reason', () => {
  assert.deepEqual(planOf(fixture('right')).skipped, [`${fixture('right')}:34: there is no such function`])
})

const wrong = {
  wrong_output: [/:2: select 2 as one;/],
  missing_line: [/:2: .* is shown as/s],
  wrong_whole_seconds: [/00:00:05/],
  wrong_written_uuid: [/000000000001/],
  hidden_error: [/does not show\nERROR: .*no_such_table/],
  hidden_warning: [/does not show\nWARNING: .*look here/],
  error_that_is_none: [/is shown as\nERROR: /],
  result_not_shown: [/shows nothing, and gives/],
  failing_setup: [/no_such_table/],
  psql_ends: [/psql ended before/, /psql ended before: select 1/],
}
for (const [name, faults] of Object.entries(wrong)) {
  test(`${name.replaceAll('_', ' ')} is a fault`, async () => {
    const found = await faultsOf(fixture(name))
    assert.equal(found.length, faults.length, found.join('\n'))
    found.forEach((fault, index) => assert.match(fault, faults[index]))
  })
}

test('what `show` writes is what the page gives, and the rest stays', () => {
  const page = '.build/docs-show/page.md'
  const block = (shown, other) => `1. In a list:\n\n   \`\`\`sql\n   select 2 as two;\n${shown}\n   select 3 as three;\n${other}   \`\`\`\n`
  const right = '   --  three\n   -- -------\n   --      3\n'
  mkdirSync(join(project, '.build/docs-show'), { recursive: true })
  writeFileSync(join(project, page), block('   -- ?\n', right))
  const { status, stderr } = spawnSync('node', [join(project, 'tests/docs/show.mjs'), page], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.equal(read(page), block('   --  two\n   -- -----\n   --    2\n', right))
})

test('a statement without an end is an error', () => {
  assert.throws(() => planOf(fixture('without_end')), /line 2: the statement does not end/)
})

test('a setup file that is not there is an error', () => {
  assert.throws(() => planOf(fixture('without_setup')), /no such file: tests\/docs\/fixtures\/no_such_file\.sql/)
})

test('a reason not to run, with no block after it, is an error', () => {
  assert.throws(() => planOf(fixture('nothing_not_run')), /nothing follows/)
})

test('a block of SQL under another name is found', () => {
  const page = fixture('hidden_sql')
  assert.deepEqual(hiddenSql(page), [`${page}:1: a block of SQL that is not called sql`])
  assert.throws(() => hiddenSql(fixture('odd_block')), /line 1: a block begins with three backticks and one word/)
})

test('links that lead nowhere are found, and no others', () => {
  const found = brokenLinks(fixture('links')).map((text) => text.slice(fixture('links').length))
  assert.deepEqual(found, [
    ':8: nowhere.md: no such file',
    ':8: nowhere.svg: no such file',
    ':8: #nowhere: no such heading',
    ':8: right.md#nowhere: no such heading',
    ':9: ../../../../nowhere.md: leaves the project',
  ])
})
