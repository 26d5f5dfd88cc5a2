// Follows a run until it has ended, and draws it:
//
//   node progress.mjs RUN_ID SECONDS PICTURE
//
// A terminal shows the drawing as it changes; elsewhere each change is a line, and the drawing comes at the end.
// PICTURE is a Markdown file for the run as a Mermaid graph. Fails if the run does not complete within SECONDS.
import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { drawing, tasks } from './picture.mjs'

const [run, limit, file] = process.argv.slice(2)
const lookSeconds = 0.1
const recoverySeconds = 5
const { isTTY, rows, columns } = process.stdout
const live = isTTY && rows >= 26 && columns >= 80

const sql = postgres({ max: 1 })
let progress, steps
let recovered = 0
let shown = []
do {
  await sleep(lookSeconds * 1000)
  progress = await readRun()
  steps = await readSteps()
  if (live) redraw()
  else printChanges()
  // Gives the tasks of killed workers back to the queue. On a server of your own, pg_cron calls this.
  if (progress.seconds - recovered > recoverySeconds) {
    await sql`select pgflow.requeue_stalled_tasks()`
    recovered = progress.seconds
  }
} while (progress.status === 'started' && progress.seconds < limit)

if (!live) console.log(`\n${drawing(steps, isTTY).join('\n')}`)
const [{ graph }] = await sql`select pgflow.run_graph(${run}) as graph`
await writeFile(file, `\`\`\`mermaid\n${graph}\n\`\`\`\n`)
await sql.end()
if (progress.status !== 'completed') {
  console.error(progress.status === 'started' ? `the run has not ended after ${limit} seconds` : 'the run failed')
  for (const { slug, error } of steps) if (error) console.error(`${slug}: ${error}`)
  process.exitCode = 1
}

async function readRun() {
  const [line] = await sql`
    select status, completed_steps + skipped_steps as steps, total_steps, completed_tasks as tasks, total_tasks,
      extract(epoch from duration)::float8 as seconds
    from pgflow.run_progress where run_id = ${run}`
  return line
}

function readSteps() {
  return sql`
    select step_slug as slug, status, error_message as error, total_tasks as total, completed_tasks::int as done,
      retries_count::int as retries, extract(epoch from duration)::float8 as seconds,
      array(
        select dep_slug from pgflow.deps
        where deps.flow_slug = step.flow_slug and deps.step_slug = step.step_slug
        order by dep_slug
      ) as deps
    from pgflow.step_progress as step
    where run_id = ${run}
    order by step_index`
}

function summary() {
  const { status, steps, total_steps, tasks, total_tasks } = progress
  return `${status}, ${steps}/${total_steps} steps, ${tasks}/${total_tasks} tasks`
}

// Draws over the drawing before.
function redraw() {
  const back = shown.length ? `\x1b[${shown.length}A` : ''
  shown = [`the run: ${summary()}, ${progress.seconds.toFixed(1)} s`, '', ...drawing(steps, true)]
  process.stdout.write(back + shown.map((line) => `${line}\x1b[K\n`).join(''))
}

function printChanges() {
  const lines = steps.map((step) => `${step.slug.padEnd(14)} ${step.status.padEnd(10)} ${tasks(step)}`)
  lines.push(`${'the run'.padEnd(14)} ${summary()}`)
  lines.forEach((line, i) => {
    if (line !== shown[i]) console.log(`${progress.seconds.toFixed(1).padStart(5)} s  ${line}`.trimEnd())
  })
  shown = lines
}
