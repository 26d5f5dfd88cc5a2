// What the first cycle of a new backend costs: plans and catalog look-ups are all made anew.

import { NATIVE, PLPGSQL, define } from "./engines.mjs";
import { median, ratio, table } from "./report.mjs";
import { sql } from "./server.mjs";
import { WORKER, workloads } from "./workloads.mjs";

const CALLS = ["start_flow", "read", "start_tasks", "complete_task"];

export function firstUse({ short }) {
  const engines = [NATIVE, PLPGSQL];
  for (const engine of engines) define(engine, "first_use", workloads.chain);
  const samples = new Map(engines.map((engine) => [engine, []]));
  process.stderr.write("-- first cycles of new backends\n");
  for (let round = 0; round < (short ? 2 : 21); round += 1) {
    for (const engine of round % 2 === 0 ? engines : [...engines].reverse()) samples.get(engine).push(firstCycle(engine));
  }
  const of = (engine, call) => median(samples.get(engine).map((sample) => sample[call]));
  const rows = [...CALLS, "sum"].map((call) => {
    const [ours, theirs] = engines.map((engine) => of(engine, call));
    return [call, ours, theirs, ratio(theirs, ours)];
  });
  return {
    "first_use.md":
      "### First use\n\nMilliseconds of each call in a backend that has done nothing before, medians.\n\n" +
      table(["call", "native", "PL/pgSQL", "PL/pgSQL ÷ native"], rows),
  };
}

/** Timed by the client, as a worker sees it. */
function firstCycle(engine) {
  const lines = sql(
    engine,
    `\\timing on
     select run_id from pgflow.start_flow('first_use', '{}');
     select array_agg(msg_id) as ids from pgmq.read('first_use', 60, 1) \\gset
     select run_id, task_index, step_slug from pgflow.start_tasks('first_use', :'ids', '${WORKER}') \\gset
     select status from pgflow.complete_task(:'run_id', :'step_slug', :task_index, '{"ok": true}');\n`,
  );
  const times = lines.filter((line) => line.startsWith("Time:")).map((line) => Number(line.match(/[\d.]+/)[0]));
  if (times.length !== CALLS.length) throw new Error(`${times.length} times, not ${CALLS.length}:\n${lines.join("\n")}`);
  const sample = Object.fromEntries(CALLS.map((call, at) => [call, times[at]]));
  return { ...sample, sum: times.reduce((total, time) => total + time, 0) };
}
