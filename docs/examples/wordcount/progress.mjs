// Follows a run until it has ended, and draws it:
//
//   node progress.mjs RUN_ID SECONDS PICTURE
//
// A terminal shows the drawing as it changes; elsewhere each change is a line, and the drawing comes at the end.
// PICTURE is a file for the same picture as a Mermaid graph. Fails if the run does not complete within SECONDS.
import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { drawing, mermaid, tasks } from './picture.mjs'

const [run, limit, file] = process.argv.slice(2)
const lookSeconds = 0.1
const recoverySeconds = 5
const { isTTY, rows, columns } = process.stdout
const live = isTTY && rows >= 24 && columns >= 80

const sql = postgres({ max: 1 })
let steps, status, elapsed
let recovered = 0
let shown = []
do {
  await sleep(lookSeconds * 1000)
  ;[{ status, elapsed }] = await sql`
    select status, extract(epoch from clock_timestamp() - started_at)::float8 as elapsed
    from pgflow.runs where run_id = ${run}`
  steps = await readSteps()
  if (live) redraw()
  else printChanges()
  // Gives the tasks of killed workers back to the queue. On a server of your own, pg_cron calls this.
  if (elapsed - recovered > recoverySeconds) {
    await sql`select pgflow.requeue_stalled_tasks()`
    recovered = elapsed
  }
} while (status === 'started' && elapsed < limit)
await sql.end()

if (!live) console.log(`\n${drawing(steps, isTTY).join('\n')}`)
await writeFile(file, mermaid(steps))
if (status !== 'completed') {
  console.error(status === 'started' ? `the run has not ended after ${limit} seconds` : `the run ${status}`)
  for (const { slug, error } of steps) if (error) console.error(`${slug}: ${error}`)
  process.exitCode = 1
}

function readSteps() {
  return sql`
    select state.step_slug as slug, state.status, state.error_message as error, state.initial_tasks as total,
      task.done, task.retries,
      array(
        select dep_slug from pgflow.deps
        where deps.flow_slug = state.flow_slug and deps.step_slug = state.step_slug
        order by dep_slug
      ) as deps,
      extract(epoch from
        coalesce(state.completed_at, state.failed_at, state.skipped_at, clock_timestamp()) - state.started_at
      )::float8 as seconds
    from pgflow.step_states as state
    join pgflow.steps as step using (flow_slug, step_slug)
    cross join lateral (
      -- A queued task waits for its next attempt, every other has had its latest one.
      select count(*) filter (where status = 'completed')::int as done,
        coalesce(sum(greatest(0, attempts_count - (status <> 'queued')::int)), 0)::int as retries
      from pgflow.step_tasks
      where run_id = state.run_id and step_slug = state.step_slug
    ) as task
    where state.run_id = ${run}
    order by step.step_index`
}

// Draws over the drawing before.
function redraw() {
  const back = shown.length ? `\x1b[${shown.length}A` : ''
  shown = drawing(steps, true)
  process.stdout.write(back + shown.map((line) => `${line}\x1b[K\n`).join(''))
}

function printChanges() {
  const lines = steps.map((step) => `${step.slug.padEnd(14)} ${step.status.padEnd(10)} ${tasks(step)}`)
  lines.forEach((line, i) => {
    if (line !== shown[i]) console.log(`${elapsed.toFixed(1).padStart(5)} s  ${line}`.trimEnd())
  })
  shown = lines
}
