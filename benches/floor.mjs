// The floor: the same PGMQ calls, events and row writes as bare prepared statements, without any decision. What a worker
// would pay who knew everything in advance. The rows end up as the engine leaves them, which the bench checks.
//
// A report's statements are sent in one pipeline, which is one transaction and one round trip, like a call. A claim and
// a start are one statement each, because what they return is needed.

import { WORKER, read } from "./workloads.mjs";

const message = (slug, step, index) =>
  `jsonb_build_object('flow_slug', '${slug}', 'run_id', run_id, 'step_slug', '${step}', 'task_index', ${index})`;

/** A text without colons side by side with letters, which pgbench takes for its variables. */
const literal = (text) => text.split(":").map((part) => `'${part}'`).join(" || ':' || ");

const stepEvent = (event, run, step) =>
  `realtime.send(jsonb_build_object('event_type', ${literal(`step:${event}`)}, 'run_id', ${run}, 'step_slug', '${step}', ` +
  `'status', '${event}', 'at', clock_timestamp()), ${literal(`step:${step}:${event}`)}, ` +
  `concat(${literal("pgflow:run:")}, ${run}), false)`;

const runEvent = (event, run) =>
  `realtime.send(jsonb_build_object('event_type', ${literal(`run:${event}`)}, 'run_id', ${run}, 'status', '${event}', ` +
  `'at', clock_timestamp()), ${literal(`run:${event}`)}, concat(${literal("pgflow:run:")}, ${run}), false)`;

/** A run with its states, its first step started, a message and a task for each of that step's tasks. */
export function startScript(slug, { steps, input }, elements) {
  const [first] = steps[0];
  const states = steps.map(
    ([step, deps = [], type = "single"], at) =>
      `('${step}', ${deps.length}, ${type === "map" ? elements : 1}, ${at === 0})`,
  );
  const tasks =
    elements === 1
      ? `select pgmq.send('${slug}', ${message(slug, first, 0)}), 0 from r`
      : `select id, (position - 1)::integer from r cross join lateral pgmq.send_batch('${slug}', ` +
        `(select array_agg(${message(slug, first, "i")} order by i) from generate_series(0, ${elements - 1}) i)) ` +
        `with ordinality as s (id, position)`;
  return (
    `with r as (insert into pgflow.runs (flow_slug, input, remaining_steps) values ('${slug}', ${input}, ${steps.length}) ` +
    `returning run_id), ` +
    `s as (insert into pgflow.step_states (flow_slug, run_id, step_slug, remaining_deps, initial_tasks, status, ` +
    `started_at, remaining_tasks) select '${slug}', run_id, step, deps, tasks, ` +
    `case when first then 'started' else 'created' end, case when first then clock_timestamp() end, ` +
    `case when first then tasks end from r, (values ${states.join(", ")}) as d (step, deps, tasks, first)), ` +
    `t as (insert into pgflow.step_tasks (flow_slug, run_id, step_slug, queue_name, message_id, task_index) ` +
    `select '${slug}', r.run_id, '${first}', '${slug}', m.id, m.i from r, lateral (${tasks}) as m (id, i)) ` +
    `select ${runEvent("started", "run_id")}, ${stepEvent("started", "run_id", first)} from r;\n`
  );
}

const claimTasks = (slug) =>
  `with claimed as (update pgmq.q_${slug} set vt = clock_timestamp() + interval '602 s' where msg_id = any(:ids::bigint[])), ` +
  `t as (update pgflow.step_tasks set status = 'started', attempts_count = attempts_count + 1, ` +
  `started_at = clock_timestamp(), last_worker_id = '${WORKER}' ` +
  `where queue_name = '${slug}' and message_id = any(:ids::bigint[]) and status = 'queued' ` +
  `returning run_id, task_index, message_id) ` +
  `select array_agg(run_id) as runs, array_agg(task_index) as indexes, array_agg(message_id) as messages, ` +
  `count(*) as tasks from t \\gset\n`;

/** Reads, claims and completes up to `claim` tasks of the step at this position in a chain. */
export function chainScript(slug, { steps, output }, position, claim = 10) {
  const [step] = steps[position];
  const next = steps[position + 1]?.[0];
  const remaining = steps.length - position - 1;
  return script(slug, claim, (at) => {
    const run = `(:runs::uuid[])[${at}]`;
    const common = [
      completeTask(step, run, "0", output),
      archive(slug, at),
    ];
    if (next === undefined) {
      return [
        ...common,
        `update pgflow.step_states set status = 'completed', remaining_tasks = 0, completed_at = clock_timestamp(), ` +
          `output = ${output} where run_id = ${run} and step_slug = '${step}'`,
        `update pgflow.runs set status = 'completed', remaining_steps = 0, completed_at = clock_timestamp(), ` +
          `output = jsonb_build_object('${step}', ${output}::jsonb) where run_id = ${run}`,
        `select ${stepEvent("completed", run, step)}, ${runEvent("completed", run)}`,
      ];
    }
    return [
      ...common,
      `update pgflow.step_states set status = case when step_slug = '${step}' then 'completed' else 'started' end, ` +
        `remaining_tasks = case when step_slug = '${step}' then 0 else 1 end, remaining_deps = 0, ` +
        `started_at = case when step_slug = '${step}' then started_at else clock_timestamp() end, ` +
        `completed_at = case when step_slug = '${step}' then clock_timestamp() end, ` +
        `output = case when step_slug = '${step}' then ${output}::jsonb end ` +
        `where run_id = ${run} and step_slug in ('${step}', '${next}')`,
      `select ${stepEvent("completed", run, step)}, ${stepEvent("started", run, next)}`,
      `insert into pgflow.step_tasks (flow_slug, run_id, step_slug, queue_name, message_id, task_index) ` +
        `select '${slug}', run_id, '${next}', '${slug}', pgmq.send('${slug}', ${message(slug, next, 0)}), 0 ` +
        `from (values (${run})) as r (run_id)`,
      `update pgflow.runs set remaining_steps = ${remaining} where run_id = ${run}`,
    ];
  });
}

/** Reads, claims and completes up to `claim` tasks of a map that do not end it. */
export const mapScript = (slug, { steps, output }, claim = 10) =>
  script(slug, claim, (at) => {
    const run = `(:runs::uuid[])[${at}]`;
    return [
      completeTask(steps[0][0], run, `(:indexes::integer[])[${at}]`, output),
      archive(slug, at),
      `update pgflow.step_states set remaining_tasks = remaining_tasks - 1 where run_id = ${run} and step_slug = '${steps[0][0]}'`,
    ];
  });

const completeTask = (step, run, index, output) =>
  `update pgflow.step_tasks set status = 'completed', output = ${output}, completed_at = clock_timestamp() ` +
  `where run_id = ${run} and step_slug = '${step}' and task_index = ${index}`;

const archive = (slug, at) => `select pgmq.archive('${slug}', (:messages::bigint[])[${at}])`;

function script(slug, claim, statements) {
  const reports = Array.from(
    { length: claim },
    (_, at) =>
      `\\if :tasks > ${at}\n\\startpipeline\n${statements(at + 1).map((text) => `${text};\n`).join("")}\\endpipeline\n\\endif\n`,
  );
  return `${read(slug, claim)}\\if :found > 0\n${claimTasks(slug)}${reports.join("")}\\endif\n`;
}
