// The reference has every function of the schema, with its exact signature, and no other.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { links, pagesBelow, parts, read } from './markdown.mjs'
import { query, withDatabase } from './psql.mjs'

const pages = pagesBelow('docs/reference')

// One spelling for both sides: lower case, single spaces, defaults without their types.
const plain = (signature) => signature.toLowerCase().replace(/::[a-z]+(\[\])?/g, '').replace(/\s+/g, ' ').replace('( ', '(').trim()

const functions = await withDatabase('docs_reference', () => query('docs_reference', `
  create extension pgflow cascade;
  select json_build_object('name', p.proname, 'definer', p.prosecdef, 'signature', concat(
    p.proname, '(', pg_get_function_arguments(p.oid), ') returns ', pg_get_function_result(p.oid)))
  from pg_proc p where p.pronamespace = 'pgflow'::regnamespace order by p.proname;
`).split('\n').map((line) => JSON.parse(line)))

// Each signature with the text of its section: all until the next heading, or the next signature.
const sections = pages.flatMap((path) => {
  const found = []
  for (const { kind, language, text } of parts(read(path))) {
    if (kind === 'heading') found.push({ text: '' })
    else if (language === 'text' && / returns /.test(text)) found.push({ signature: plain(text), text: '' })
    else if (kind === 'text' && found.length > 0) found.at(-1).text += text + ' '
  }
  return found.filter(({ signature }) => signature)
})

test('the reference has the signature of every function, and no other', () => {
  assert.ok(functions.length > 20)
  const written = sections.map(({ signature }) => signature)
  assert.deepEqual(written.sort(), functions.map(({ signature }) => plain(signature)).sort())
})

test('the reference says "security definer" where it is so, and nowhere else', () => {
  const named = sections
    .filter(({ text }) => /security definer/i.test(text))
    .map(({ signature }) => signature.split('(')[0])
  assert.deepEqual(named.sort(), functions.filter(({ definer }) => definer).map(({ name }) => name))
})

test('the list of all functions links to each that is public', () => {
  const linked = links(read('docs/reference.md'))
    .flatMap(({ target }) => target.match(/^reference\/\w+\.md#(\w+)$/)?.[1] ?? [])
  const everyone = functions.map(({ name }) => name).filter((name) => !name.startsWith('_'))
  assert.deepEqual(linked.sort(), everyone)
})

// The codes in a page's tables of errors, and those in its examples.
const listed = (markdown) => [...markdown.matchAll(/^\| ([0-9A-Z]{5}) \|/gm)].map(([, code]) => code)
const shown = (markdown) => [...markdown.matchAll(/^-- ERROR: {2}([0-9A-Z]{5}):/gm)].map(([, code]) => code)

for (const path of pages) {
  test(`every SQLSTATE that a function of ${path} may raise is raised by an example`, () => {
    const [top, ...sections] = read(path).split(/^## /m)
    for (const section of sections) {
      const missing = listed(section).filter((code) => !shown(top + section).includes(code))
      assert.deepEqual(missing, [], section.split('\n')[0])
    }
  })
}
