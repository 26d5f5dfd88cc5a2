// Links lead to files and headings that are there. Those that leave the project are not followed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brokenLinks, linkedFrom, pagesBelow } from './markdown.mjs'

test('every link of every Markdown file leads to a file, and to a heading where it names one', () => {
  const pages = pagesBelow('.').filter((path) => !/^(target|tests\/docs\/fixtures)\//.test(path))
  assert.ok(pages.includes('README.md') && pages.includes('tests/README.md'))
  assert.deepEqual(pages.flatMap(brokenLinks), [])
})

test('every page is in the index, docs/README.md, and every decision in docs/contributing.md', () => {
  const index = ['docs/README.md', ...linkedFrom('docs/README.md')]
  const decisions = linkedFrom('docs/contributing.md')
  const missing = pagesBelow('docs').filter((path) => !(path.startsWith('docs/adr/') ? decisions : index).includes(path))
  assert.deepEqual(missing, [])
})
