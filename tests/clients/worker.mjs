// The smallest worker: read messages, claim their tasks, run handlers, report.
import { register } from './database.mjs'

/** Works on a flow until `run` has ended; `handlers` maps a step to a function of (input, task).
    Returns how many tasks it executed. */
export async function work(sql, flow, run, handlers) {
  const queue = flow.toLowerCase()
  const worker = await register(sql, queue)
  let executed = 0
  while (await isStarted(sql, run)) {
    const messages = await sql`
      select msg_id::text from pgmq.read_with_poll(${queue}, 2, 20, 1, 20)`
    if (messages.length === 0) continue
    const tasks = await sql`
      select * from pgflow.start_tasks(
        flow_slug => ${flow}, msg_ids => ${messages.map((m) => m.msg_id)}::bigint[], worker_id => ${worker},
        queue_name => ${queue})`
    for (const task of tasks) {
      await execute(sql, task, handlers[task.step_slug])
      executed += 1
    }
  }
  return executed
}

async function execute(sql, task, handler) {
  const { run_id, step_slug, task_index } = task
  let output
  try {
    output = await handler(task.input, task)
  } catch (error) {
    await sql`select from pgflow.fail_task(${run_id}, ${step_slug}, ${task_index}, ${error.message})`
    return
  }
  await sql`select from pgflow.complete_task(${run_id}, ${step_slug}, ${task_index}, ${sql.json(output)})`
}

async function isStarted(sql, run) {
  const [{ status }] = await sql`select status from pgflow.runs where run_id = ${run}`
  return status === 'started'
}
