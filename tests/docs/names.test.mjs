// The walk through the code finds everything that it names.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { userPages } from './markdown.mjs'
import { unknownFiles, unknownNames, unknownTargets } from './names.mjs'

const pages = [...userPages(), 'tests/README.md']
const names = (faults) => faults.map((fault) => fault.split(': ').at(-1))

test('every file, function and module that docs/lifecycle.md names is there', () => {
  assert.deepEqual(unknownNames('docs/lifecycle.md'), [])
})

test('names that the code does not have are found, and no others', () => {
  assert.deepEqual(names(unknownNames('tests/docs/fixtures/names.md')), [
    'src/nowhere.rs', 'engine::nowhere', 'engine::advance::nowhere', 'RunUpdate::nowhere', 'no_such_function',
  ])
})

test('every file that a page names by its path is there', () => {
  assert.deepEqual(pages.flatMap(unknownFiles), [])
  assert.deepEqual(names(unknownFiles('tests/docs/fixtures/names.md')), ['src/nowhere.rs'])
})

test('every target of make that a page names is there', () => {
  assert.deepEqual(pages.flatMap(unknownTargets), [])
  assert.deepEqual(names(unknownTargets('tests/docs/fixtures/names.md')), ['nothing', 'something'])
})
