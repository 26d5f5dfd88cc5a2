// The JavaScript and Python on the pages is code that is run: by the tests of tests/clients, by `make demo`, or by
// workers.test.mjs, which also writes the blocks that a page gives a file's name. A block that is only a pattern says
// so: <!-- not run: REASON -->.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parts, read, userPages } from './markdown.mjs'

const sources = [
  'docs/examples/worker/worker.mjs',
  'docs/examples/wordcount/worker.mjs',
  'docs/examples/wordcount/handlers.mjs',
  'docs/examples/python/worker.py',
  'tests/clients/released_client.test.mjs',
]

const unindented = (text) => text.trim().replace(/\n\s+/g, '\n')
const code = sources.map(read).map(unindented)

for (const path of userPages()) {
  const found = parts(read(path))
  const blocks = found.filter(({ language }, index) =>
    ['js', 'python'].includes(language) && !['file', 'not run'].includes(found[index - 1].name))
  if (blocks.length > 0) {
    test(`every block of code in ${path} is in a file that is run`, () => {
      for (const { line, text } of blocks) {
        assert.ok(code.some((source) => source.includes(unindented(text))), `${path}:${line}:\n${text}`)
      }
    })
  }
}
