// Whoever gets an error of the engine finds in docs/operations.md what to do.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { read } from './markdown.mjs'

// The texts in src/error.rs, with ... for what differs from case to case.
const texts = [...read('src/error.rs').matchAll(/#\[error\("(.*)"\)\]/g)]
  .map(([, text]) => text.replaceAll('\\"', '"').replace(/\{[^}]*\}/g, '…'))

// The messages in the table's second column, as patterns.
const rows = [...read('docs/operations.md').matchAll(/^\| [0-9A-Z]{5} \| `(.*?)` \|/gm)]
  .map(([, message]) => new RegExp(`^${message.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')}$`))

test('every error of the engine is in the table of errors', () => {
  assert.ok(texts.length > 10 && rows.length > 10)
  assert.deepEqual(texts.filter((text) => !rows.some((row) => row.test(text))), [])
})
