// Input that is refused, each with an error of its own. tests/fuzz tries much more, without knowing what is right.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../clients/database.mjs'
import { code, failure } from './attempts.mjs'

const { sql, connect } = await freshDatabase(import.meta.url)

test('a database that is not in UTF8 is refused', async () => {
  for (const encoding of ['LATIN1', 'SQL_ASCII']) {
    const database = `input_${encoding.toLowerCase()}`
    await sql.unsafe(`create database ${database} encoding '${encoding}' locale 'C' template template0`)
    const other = connect({ database })
    const error = await failure(other, `create extension pgflow cascade`)
    assert.equal(error?.code, '0A000')
    assert.equal(error.message, 'pgflow needs a database with encoding "UTF8"')
    assert.match(error.detail, new RegExp(`"${database}" has encoding "${encoding}"`))
  }
})

const nested = (depth, inner = '1') => `(repeat('[', ${depth}) || '${inner}' || repeat(']', ${depth}))::jsonb`
const shape = (steps) => `jsonb_build_object('steps', ${steps})`
const step = (pattern) => shape(`jsonb_build_array(jsonb_build_object('slug', 'a', 'requiredInputPattern', ${pattern}))`)

test('deep JSON and shapes of any kind are refused with an error of their own', async () => {
  const compile = (text) => code(sql, `select pgflow.ensure_flow_compiled('odd', ${text})`)
  for (const text of [
    nested(5000), shape(nested(5000)), shape(`'[null]'::jsonb`), shape(`'[1]'::jsonb`), shape(`'{"slug": "a"}'::jsonb`), `'"steps"'`,
    step(`'[]'::jsonb`), step(`'{"defined": false, "value": 1}'::jsonb`), step(`'{"defined": "yes"}'::jsonb`), step(nested(5000)),
    shape(`'[{"slug": "a", "options": {"timeout": 1.5}}]'::jsonb`), shape(`'[{"slug": "a", "options": {"timeout": 3000000000}}]'::jsonb`),
    shape(`'[{"slug": "a", "dependencies": [1]}]'::jsonb`),
  ]) assert.equal(await compile(text), '22023', text)

  // Beyond what PostgreSQL's own stack takes, in a place where any JSON may stand.
  const limit = `set max_stack_depth = '200kB'`
  await sql.unsafe(`create table deep as select ${nested(5000)} as value`)
  await sql.unsafe(limit)
  const pattern = step(`jsonb_build_object('defined', true, 'value', jsonb_build_object('a', value))`)
  assert.equal(await code(sql, `select pgflow.ensure_flow_compiled('odd', ${pattern}) from deep`), '54001')
  await sql`reset max_stack_depth`
  assert.deepEqual([...(await sql`select flow_slug from pgflow.flows`)], [])
  assert.equal(await code(sql, `select pgflow.ensure_flow_compiled('odd', ${pattern}) from deep`), 'answered')
})

test('names with quotes and format characters are shown as they are', async () => {
  const name = `a"b'c%s%n`
  const error = await failure(sql, `select pgflow.create_flow('${name.replaceAll("'", "''")}')`)
  assert.equal(error?.code, '23514')
  assert.ok(error.detail.includes(name))
  const missing = await failure(sql, `select pgflow.set_vt_batch('%s%n "x"', '{1}', '{1}')`)
  assert.equal(missing?.code, '42P01')
  assert.ok(missing.message.includes('q_%s%n'), missing.message)
})
