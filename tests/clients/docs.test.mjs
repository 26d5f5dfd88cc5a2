// The JavaScript in the documentation is code that is run: by the tests here, or by `make demo`.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'

const docs = ['docs/javascript.md', 'docs/examples/worker/README.md']
const sources = [
  'docs/examples/worker/worker.mjs',
  'docs/examples/wordcount/worker.mjs',
  'tests/clients/released_client.test.mjs',
]

const read = (path) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')
const unindented = (text) => text.trim().replace(/\n\s+/g, '\n')

const code = (await Promise.all(sources.map(read))).map(unindented)

for (const path of docs) {
  test(`every block of ${path} is in a file that is run`, async () => {
    const blocks = [...(await read(path)).matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) => unindented(block))
    assert.ok(blocks.length > 0)
    for (const block of blocks) assert.ok(code.some((text) => text.includes(block)), block)
  })
}
