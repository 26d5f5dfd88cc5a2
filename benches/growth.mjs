// Cost per task as work grows: wider maps, and tables full of finished tasks.

import { NATIVE, PLPGSQL, define } from "./engines.mjs";
import { plot, ratio, table } from "./report.mjs";
import { number, pgbench, settle, sql } from "./server.mjs";
import { array, batchScript, map, startScript, workScript } from "./workloads.mjs";

const SETTINGS = "-c synchronous_commit=off";
/** PL/pgSQL grows quadratically: wider maps are sampled, and only so far. */
const PLPGSQL_WIDEST = 10_000;
const SAMPLE = 600;

export function growth({ short }) {
  const widths = short ? [100, 1000] : [100, 1000, 10_000, 100_000];
  const rows = [];
  const lines = new Map();
  for (const [bytes, widest] of [[30, 100_000], [1000, 10_000]]) {
    for (const claim of [10, 100]) {
      for (const engine of [NATIVE, PLPGSQL]) {
        const first = { cost: NaN };
        for (const width of widths.filter((width) => width <= (engine === NATIVE ? widest : Math.min(widest, PLPGSQL_WIDEST)))) {
          process.stderr.write(`-- growth: ${engine}, ${width} elements of ${bytes} bytes, claims of ${claim}\n`);
          const cost = costOfMap(engine, width, bytes, claim);
          if (Number.isNaN(first.cost)) first.cost = cost;
          rows.push([engine, bytes, claim, width, cost, ratio(cost, first.cost)]);
          if (bytes === 30) {
            const label = `${engine}, claims of ${claim}`;
            lines.set(label, [...(lines.get(label) ?? []), [width, cost]]);
          }
        }
      }
    }
  }
  const maps =
    "### Maps of growing width\n\nMilliseconds per task for start, read, claim and complete, one client, synchronous_commit off. " +
    `Of PL/pgSQL's maps wider than ${SAMPLE} the first ${SAMPLE} tasks are measured.\n\n` +
    table(["engine", "bytes per element", "claims of", "elements", "ms per task", "against 100 elements"], rows);
  return { "growth.md": `${maps}\n${finishedTasks(short)}`, "growth.svg": plot(lines) };
}

let serial = 0;

/** Small maps are repeated until there is something to measure. */
function costOfMap(engine, width, bytes, claim) {
  const workload = map(width, bytes);
  const slug = define(engine, `width_${(serial += 1)}`, workload);
  const runs = Math.max(1, 2000 / width);
  const isSampled = engine === PLPGSQL && width > SAMPLE;
  settle(engine);
  const started = pgbench(engine, startScript(slug, workload), { transactions: runs, settings: SETTINGS });
  settle(engine);
  const tasks = runs * workload.tasks;
  const transactions = isSampled ? Math.ceil(SAMPLE / claim) : Math.ceil(tasks / claim) + 1;
  const worked = pgbench(engine, workScript(slug, workload, claim), { transactions, settings: SETTINGS });
  sql(engine, `delete from pgflow.step_tasks where flow_slug = '${slug}'; select pgmq.drop_queue('${slug}')`);
  return (started.seconds * 1000) / tasks + (worked.seconds * 1000) / (isSampled ? transactions * claim : tasks);
}

/** Claim and completion with empty tables and with many finished tasks in them. */
function finishedTasks(short) {
  const count = short ? 10_000 : 1_000_000;
  const workload = map(1000, 30);
  const rows = [];
  const costs = [0, count].map((finished) => {
    if (finished > 0) {
      process.stderr.write(`-- growth: ${finished} finished tasks\n`);
      fill(define(NATIVE, `finished_${(serial += 1)}`, workload), finished);
    }
    const [claim, complete] = claimAndComplete(workload, short ? 1 : 5);
    rows.push([finished, claim, complete]);
    return claim + complete;
  });
  return (
    `### Finished tasks in the tables\n\nMilliseconds per task, claims of ten, pgflow native: ${ratio(costs[1], costs[0])} with them.\n\n` +
    table(["finished tasks", "claim", "complete"], rows)
  );
}

function claimAndComplete(workload, runs) {
  const slug = define(NATIVE, `finished_${(serial += 1)}`, workload);
  pgbench(NATIVE, startScript(slug, workload), { transactions: runs, settings: SETTINGS });
  settle(NATIVE);
  const { commands } = pgbench(NATIVE, workScript(slug, workload), { transactions: runs * 100, settings: SETTINGS });
  const of = (pattern) => {
    const found = commands.filter(({ text }) => pattern.test(text));
    return found.reduce((total, { milliseconds }) => total + milliseconds, 0) / found.length;
  };
  return [of(/^with claimed/) / 10, of(/complete_task/)];
}

/** Completed runs of maps of 1,000, with their archived messages. */
function fill(slug, tasks) {
  sql(
    NATIVE,
    `create temp table r as select gen_random_uuid() as run_id from generate_series(1, ${tasks / 1000});
     insert into pgflow.runs (run_id, flow_slug, status, input, output, remaining_steps, completed_at)
       select run_id, '${slug}', 'completed', ${array(1000, 30)}, '{}', 0, now() from r;
     insert into pgflow.step_states (flow_slug, run_id, step_slug, status, remaining_tasks, initial_tasks, started_at, completed_at)
       select '${slug}', run_id, step, 'completed', 0, 1000, now(), now() from r, (values ('m'), ('end')) as s (step);
     insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, message_id, queue_name, status, attempts_count,
                                    output, started_at, completed_at)
       select '${slug}', run_id, 'm', i, row_number() over (), '${slug}', 'completed', 1, '12345', now(), now()
       from r, generate_series(0, 999) i;`,
  );
  const found = number(NATIVE, `select count(*) from pgflow.step_tasks where flow_slug = '${slug}'`);
  if (found !== tasks) throw new Error(`${found} finished tasks, not ${tasks}`);
}
