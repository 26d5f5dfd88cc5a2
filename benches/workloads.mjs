// What is measured: the flows, and how a worker works them off. A worker reads messages, claims them and reports each,
// every call in a transaction of its own.

export const WORKER = "00000000-0000-0000-0000-000000000001";

/** An array of this many elements, each of about that many bytes, as SQL. */
export const array = (elements, bytes) =>
  `(select jsonb_agg(rpad(i::text, ${bytes}, 'x')) from generate_series(1, ${elements}) i)`;

/** Flows by their steps: `[slug, dependencies, type]`; the output of each task, as SQL. */
export const workloads = {
  chain: {
    steps: [["a"], ["b", ["a"]], ["c", ["b"]]],
    tasks: 3,
    input: `'{}'::jsonb`,
    output: `'[1, 2, 3]'`,
  },
  diamond: {
    steps: [["a"], ["b", ["a"]], ["c", ["a"]], ["d", ["b", "c"]]],
    tasks: 4,
    input: `'{}'::jsonb`,
    output: `'[1, 2, 3]'`,
  },
  map: map(1000, 30),
};

/** A map over an array, and a single step that follows it. */
export function map(elements, bytes) {
  return {
    steps: [["m", [], "map"], ["end", ["m"]]],
    tasks: elements + 1,
    input: array(elements, bytes),
    output: `'12345'`,
  };
}

/** The flow's definition, through calls that every version of pgflow has. */
export function definition(slug, { steps }) {
  const calls = steps.map(
    ([step, deps = [], type = "single"]) =>
      `select pgflow.add_step('${slug}', '${step}', array[${deps.map((dep) => `'${dep}'`)}]::text[], step_type => '${type}');`,
  );
  return [`select pgflow.create_flow('${slug}', timeout => 600);`, ...calls].join("\n");
}

export const startScript = (slug, { input }) => `select run_id from pgflow.start_flow('${slug}', ${input});\n`;

/** Starts, on average, as many runs as `claim` tasks make: whoever repeats it and works leaves the queue as long as it is. */
export const feedScript = (slug, { tasks, input }, claim) =>
  `\\set starts (${claim} + random(0, ${tasks - 1})) / ${tasks}\n\\if :starts > 0\n${startMany(slug, { input }, ":starts")}\\endif\n`;

/** Starts several runs in one transaction. */
export const startMany = (slug, { input }, runs) =>
  `select count(*) from generate_series(1, ${runs}::integer) i, pgflow.start_flow('${slug}', case when i > 0 then ${input} end);\n`;

export const read = (slug, claim) =>
  `with messages as (select * from pgmq.read('${slug}', 600, ${claim})) ` +
  `select coalesce(array_agg(msg_id), '{}') as ids, count(*) as found from messages \\gset\n`;

const claimTasks = (slug) =>
  `with claimed as (select * from pgflow.start_tasks('${slug}', :ids::bigint[], '${WORKER}')) ` +
  `select coalesce(array_agg(run_id), '{}') as runs, coalesce(array_agg(step_slug), '{}') as steps, ` +
  `coalesce(array_agg(task_index), '{}') as indexes, count(*) as tasks from claimed \\gset\n`;

const reports = (claim, report) =>
  Array.from({ length: claim }, (_, at) => `\\if :tasks > ${at}\n${report(at + 1)};\n\\endif\n`).join("");

/** Reads, claims and completes up to `claim` tasks, one by one. A handler, or a worker without messages, takes `pause` ms. */
export function workScript(slug, { output }, claim = 10, pause = 0) {
  const report = (at) =>
    `select from pgflow.complete_task((:runs::uuid[])[${at}], (:steps::text[])[${at}], (:indexes::integer[])[${at}], ${output})`;
  const wait = pause > 0 ? `\\sleep ${pause} ms\n` : "";
  return `${read(slug, claim)}\\if :found > 0\n${claimTasks(slug)}${wait}${reports(claim, report)}\\else\n${wait}\\endif\n`;
}

/** As `workScript`, with one call for all of them. */
export function batchScript(slug, { output }, claim) {
  const report =
    `select count(*) from pgflow.complete_tasks(:runs::uuid[], :steps::text[], :indexes::integer[], ` +
    `array_fill(${output}::jsonb, array[:tasks::integer]));\n`;
  return `${read(slug, claim)}\\if :found > 0\n${claimTasks(slug)}${report}\\endif\n`;
}
