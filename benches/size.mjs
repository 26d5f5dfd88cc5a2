// What tasks leave on disk, and what pruning gives back.

import { readFileSync } from "node:fs";
import { createDatabase, define } from "./engines.mjs";
import { table } from "./report.mjs";
import { number, pgbench, sql } from "./server.mjs";
import { batchScript, startScript, workloads } from "./workloads.mjs";

const pruning = readFileSync(new URL("../sql/optional/prune_data_older_than.sql", import.meta.url), "utf8");
const RELATIONS = ["pgflow.runs", "pgflow.step_states", "pgflow.step_tasks", "pgmq.a_size", "pgmq.q_size"];

export function size({ short }) {
  const tasks = short ? 3000 : 30_000;
  return { "size.md": `${bytes(tasks)}\n${pruned(tasks, short ? 2 : 5)}` };
}

/** Starts and completes runs with about this many tasks; returns the exact number. */
function work(database, shape, tasks) {
  const runs = Math.round(tasks / shape.tasks);
  pgbench(database, startScript("size", shape), { transactions: runs });
  pgbench(database, batchScript("size", shape, 100), { transactions: Math.ceil((runs * shape.tasks) / 100) + 2 });
  const unfinished = number(database, "select count(*) from pgflow.runs where status <> 'completed'");
  if (unfinished > 0) throw new Error(`${unfinished} runs did not complete`);
  return runs * shape.tasks;
}

const sizes = (database, relations = RELATIONS) =>
  sql(database, relations.map((name) => `select pg_total_relation_size('${name}');`).join("\n")).map(Number);
const sum = (numbers) => numbers.reduce((a, b) => a + b);

function prepare(database, shape) {
  process.stderr.write(`-- size: ${database}\n`);
  createDatabase(database);
  define(database, "size", shape);
}

function bytes(tasks) {
  const columns = ["chain", "map"].flatMap((name) => {
    const database = `size_${name}`;
    prepare(database, workloads[name]);
    const empty = sizes(database);
    const count = work(database, workloads[name], tasks);
    const left = sizes(database);
    sql(database, "vacuum full");
    const least = sizes(database);
    const perTask = (found) => found.map((size, at) => Math.round(Math.max(0, size - empty[at]) / count));
    return [perTask(left), perTask(least)];
  });
  const rows = RELATIONS.map((name, at) => [`\`${name.replace("_size", "_QUEUE")}\``, ...columns.map((column) => column[at])]);
  rows.push(["together", ...columns.map(sum)]);
  return (
    `### Bytes per task\n\nTables with their indexes after ${tasks} tasks without any vacuum, and after \`VACUUM FULL\`.\n\n` +
    table(["relation", "chain of 3", "vacuumed", "map of 1,000", "vacuumed"], rows)
  );
}

/** Round after round of the same work; what is older than a round is pruned, and the files are used again. */
function pruned(tasks, rounds) {
  const database = "size_pruned";
  prepare(database, workloads.chain);
  // A worker who is never too old: pruning deletes the others.
  sql(database, `${pruning}; update pgflow.workers set last_heartbeat_at = 'infinity'`);
  let [since] = sql(database, "select clock_timestamp()");
  const rows = Array.from({ length: rounds }, (_, at) => {
    const count = work(database, workloads.chain, tasks);
    const grown = sum(sizes(database));
    const begin = process.hrtime.bigint();
    sql(database, `select pgflow.prune_data_older_than(clock_timestamp() - '${since}')`);
    const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
    [since] = sql(database, "select clock_timestamp()");
    const left = number(database, "select count(*) from pgflow.step_tasks");
    if (left !== count) throw new Error(`${left} tasks are left after pruning, not the ${count} of the last round`);
    sql(database, "vacuum");
    return [at + 1, Math.round(grown / 1e6), seconds, Math.round(sum(sizes(database)) / 1e6)];
  });
  return (
    `### Pruning\n\nChains, ${tasks} tasks in each round, then \`prune_data_older_than\` for the rounds before it, and \`VACUUM\`. ` +
    "Megabytes of pgflow's tables and the queue's.\n\n" +
    table(["round", "after the work", "seconds to prune", "after VACUUM"], rows)
  );
}
