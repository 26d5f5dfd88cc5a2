// psql, on the server that PGHOST names.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { project } from './markdown.mjs'

/** Runs psql in the project's folder with `input`, and returns what it printed to both outputs. */
export function psql(database, options, input) {
  const env = { ...process.env, PGDATABASE: database, PGTZ: 'UTC', PGOPTIONS: '-c statement_timeout=30s' }
  const result = spawnSync('psql', ['--no-psqlrc', '--quiet', ...options], {
    cwd: project, env, input, encoding: 'utf8', maxBuffer: 2 ** 26,
  })
  if (result.error) throw result.error
  return result
}

/** What statements return, as text without headers. An error is thrown. */
export function query(database, sql) {
  const { stdout, stderr, status } =
    psql(database, ['--tuples-only', '--no-align', '--set', 'ON_ERROR_STOP=1'], `set client_min_messages = warning;\n${sql}`)
  assert.equal(status, 0, stderr)
  return stdout.trim()
}

/** Calls `use`, which may be asynchronous, with a database that is there as long as it takes. */
export async function withDatabase(database, use) {
  query('postgres', `create database ${database}`)
  try {
    return await use()
  } finally {
    query('postgres', `drop database ${database} with (force)`)
  }
}
