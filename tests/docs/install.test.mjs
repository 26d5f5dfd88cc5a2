// `make install`: what it copies into a PostgreSQL that is not this project's.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { project } from './markdown.mjs'

const folder = join(project, '.build', 'docs-install')
const library = join(folder, 'lib')
const extensions = join(folder, 'share', 'extension')

// A pg_config that gives these folders.
function target(version) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(library, { recursive: true })
  mkdirSync(extensions, { recursive: true })
  const pgConfig = join(folder, 'pg_config')
  writeFileSync(pgConfig, `#!/bin/sh
case $1 in
  --version) echo "PostgreSQL ${version}" ;;
  --pkglibdir) echo "${library}" ;;
  --sharedir) echo "${folder}/share" ;;
esac
`)
  chmodSync(pgConfig, 0o755)
  return pgConfig
}

function install(pgConfig) {
  const script = join(project, 'tests/harness/install_into.sh')
  const { status, stdout, stderr } = spawnSync(script, [pgConfig], { encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

const built = (option) => spawnSync(process.env.PG_CONFIG, [option], { encoding: 'utf8' }).stdout.trim()

test('the library, all scripts and PGMQ are copied', () => {
  const { status, output } = install(target('15.20 (Debian 15.20-0+deb12u1)'))
  assert.equal(status, 0, output)
  assert.deepEqual(readFileSync(join(library, 'pgflow.so')), readFileSync(join(built('--pkglibdir'), 'pgflow.so')))
  const names = readdirSync(join(built('--sharedir'), 'extension'))
    .filter((name) => /^(pgflow|pgmq)(--.*\.sql|\.control)$/.test(name))
  assert.deepEqual(readdirSync(extensions).sort(), names.sort())
})

test('a PGMQ that is there stays as it is', () => {
  const pgConfig = target('15.20')
  writeFileSync(join(extensions, 'pgmq.control'), "default_version = '1.5.1'\n")
  const { status, output } = install(pgConfig)
  assert.equal(status, 0, output)
  assert.match(output, /PGMQ is there: 1\.5\.1/)
  assert.deepEqual(readdirSync(extensions).filter((name) => name.startsWith('pgmq')), ['pgmq.control'])
})

test('another major version is refused, and nothing is copied', () => {
  const { status, output } = install(target('17.6'))
  assert.equal(status, 1)
  assert.match(output, /belongs to PostgreSQL 17\.6; pgflow is built for PostgreSQL 15/)
  assert.deepEqual([...readdirSync(library), ...readdirSync(extensions)], [])
})
