// The workers that the pages show work off a flow and stop on SIGTERM.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parts, project, read } from './markdown.mjs'
import { query, withDatabase } from './psql.mjs'

const database = 'docs_workers'

const sql = (statements) => query(database, statements)

const withPgflow = (use) => withDatabase(database, () => {
  sql('create extension pgflow cascade')
  return use()
})

// What a worker leaves behind that worked off one run and was stopped.
const greeted = (greetings) => ({ status: 'completed', output: { join: greetings }, exit: 0, stopped: '1' })

// Starts a worker, waits until the run has ended, sends SIGTERM, and returns the run and how the worker ended.
async function workedOff(run, command, options) {
  const worker = spawn(command[0], command.slice(1), { ...options, env: { ...process.env, PGDATABASE: database } })
  let log = ''
  worker.stdout.on('data', (text) => (log += text))
  worker.stderr.on('data', (text) => (log += text))
  const ended = new Promise((resolve) => worker.on('exit', (code, signal) => resolve(code ?? signal)))
  const status = () => sql(`select status from pgflow.runs where run_id = '${run}'`)
  for (let tries = 0; status() === 'started' && worker.exitCode === null && tries < 150; tries += 1) await sleep(100)
  worker.kill('SIGTERM')
  const exit = await ended
  const row = JSON.parse(sql(`select to_jsonb(r) from pgflow.runs r where run_id = '${run}'`))
  const stopped = sql('select count(*) from pgflow.workers where stopped_at is not null')
  return { status: row.status, output: row.output, exit, stopped, log }
}

const failure = () => sql("select error_message from pgflow.step_states where status = 'failed'")

const start = (flow, input) => sql(`select run_id from pgflow.start_flow('${flow}', '${JSON.stringify(input)}')`)

// The block of a page that is a file: <!-- file: NAME --> stands before it.
function fileOf(path, name) {
  const found = parts(read(path))
  return found[found.findIndex((part) => part.name === 'file' && part.value === name) + 1].text
}

test('the worker of the quickstart works off its flow', () => withPgflow(async () => {
  const folder = join(project, '.build', 'docs-quickstart')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  writeFileSync(join(folder, 'work.mjs'), fileOf('docs/quickstart.md', 'work.mjs'))
  copyFileSync(join(project, 'docs/examples/worker/worker.mjs'), join(folder, 'worker.mjs'))
  symlinkSync(join(project, 'tests/clients/node_modules'), join(folder, 'node_modules'))
  sql(fileOf('docs/quickstart.md', 'flow.sql'))

  const run = start('greeting', { names: ['Ada', 'Grace'] })
  const { log, ...result } = await workedOff(run, ['node', 'work.mjs'], { cwd: folder })
  assert.deepEqual(result, greeted('Hello, Ada, Hello, Grace'), log)
}))

const python = '/usr/bin/python3' // Debian's own, which Debian's psycopg is for
const worker = [python, join(project, 'docs/examples/python/worker.py')]
const withPython = (rule, use) =>
  test(rule, { skip: !existsSync(python) && `there is no ${python}` }, () => withPgflow(async () => {
    sql(fileOf('docs/quickstart.md', 'flow.sql'))
    await use()
  }))

withPython('the worker in Python works off the same flow', async () => {
  const { log, ...result } = await workedOff(start('greeting', { names: ['Ada', 'Grace'] }), worker)
  assert.deepEqual(result, greeted('Hello, Ada, Hello, Grace'), log)
})

withPython('the worker in Python fails what a handler throws', async () => {
  sql('update pgflow.flows set opt_max_attempts = 1')
  const { status, exit, log } = await workedOff(start('greeting', { nobody: [] }), worker)
  assert.deepEqual([status, exit], ['failed', 0], log)
  assert.match(failure(), /KeyError\('names'\)/)
})

withPython('the worker in Python fails an output that cannot be stored', async () => {
  sql('update pgflow.flows set opt_max_attempts = 1')
  const program = [python, '-Bc', "import worker; worker.HANDLERS['split'] = lambda task: chr(0); worker.main()"]
  const run = start('greeting', { names: [] })
  const { status, exit, log } = await workedOff(run, program, { cwd: join(project, 'docs/examples/python') })
  assert.deepEqual([status, exit], ['failed', 0], log)
  assert.match(failure(), /\\u0000 cannot be converted/)
})

withPython('the worker in Python goes on after its connection was cut', async () => {
  sql("update pgflow.steps set opt_start_delay = 2 where step_slug = 'split'") // until then it polls
  const cut = () => sql(`select count(pg_terminate_backend(pid)) from pg_stat_activity
                          where query like '%read_with_poll%' and pid <> pg_backend_pid()`)
  const working = workedOff(start('greeting', { names: ['Ada'] }), worker)
  while (cut() === '0') await sleep(50)
  const { log, ...result } = await working
  assert.match(log, /trying again in a second/)
  assert.deepEqual(result, greeted('Hello, Ada'), log)
})
