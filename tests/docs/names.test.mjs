// The walk through the code finds everything that it names.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unknownNames } from './names.mjs'

test('every file, function and module that docs/lifecycle.md names is there', () => {
  assert.deepEqual(unknownNames('docs/lifecycle.md'), [])
})

test('names that the code does not have are found, and no others', () => {
  assert.deepEqual(unknownNames('tests/docs/fixtures/names.md').map((found) => found.split(': ').at(-1)), [
    'src/nowhere.rs', 'engine::nowhere', 'engine::advance::nowhere', 'RunUpdate::nowhere', 'no_such_function',
  ])
})
