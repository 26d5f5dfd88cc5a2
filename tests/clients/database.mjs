// A fresh database per test file, on the server that PGHOST, PGPORT and PGUSER name.
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { after } from 'node:test'
import postgres from 'postgres'

/** Runs the SQL files at these paths, which begin in the project's folder. */
export async function load(sql, ...paths) {
  for (const path of paths) await sql.unsafe(await readFile(new URL(`../../${path}`, import.meta.url), 'utf8'))
}

/** Creates the database for a test file (`import.meta.url`) and returns how to open connections to it; both end
    with the file. int8 values arrive as strings, as they do in postgres.js when nobody asks for anything else. */
export async function freshDatabase(file) {
  const database = `client_${basename(file, '.test.mjs')}`
  const open = []
  await administer(`drop database if exists ${database} with (force)`, `create database ${database}`)
  after(async () => {
    await Promise.all(open.map((sql) => sql.end()))
    await administer(`drop database ${database} with (force)`)
  })
  const connect = (options = {}) => {
    const sql = postgres({ database, max: 1, onnotice: () => {}, ...options })
    open.push(sql)
    return sql
  }
  const sql = connect()
  await sql`create extension pgflow cascade`
  await load(sql, 'tests/fixtures/invariants.sql', 'tests/fixtures/terminal_rows.sql')
  return { sql, connect }
}

// On a connection for this alone: one that is kept does not outlive a restart of the server.
async function administer(...commands) {
  const sql = postgres({ database: 'postgres', max: 1, onnotice: () => {} })
  for (const command of commands) await sql.unsafe(command)
  await sql.end()
}

/** Defines a flow; each step is `{ slug, deps, type }`. */
export async function defineFlow(sql, flow, steps) {
  await sql`select from pgflow.create_flow(${flow}, base_delay => 0)`
  for (const { slug, deps = [], type = 'single' } of steps) {
    await sql`select from pgflow.add_step(${flow}, ${slug}, ${deps}, step_type => ${type})`
  }
}

/** Registers a worker; returns its id. */
export async function register(sql, queue) {
  const [{ worker_id }] = await sql`
    insert into pgflow.workers (worker_id, queue_name, function_name)
    values (gen_random_uuid(), ${queue}, 'client test') returning worker_id`
  return worker_id
}

/** Every rule of tests/fixtures/invariants.sql that the database breaks. */
export async function brokenInvariants(sql) {
  return (await sql`select broken from pgflow_invariants.broken() as broken`).map((row) => row.broken)
}
