// Throughput: clients start runs and work them off for some seconds, so that the queue stays as long as it is.

import { cpus } from "node:os";
import { NATIVE, define } from "./engines.mjs";
import { load, number, settle, sql } from "./server.mjs";
import { feedScript, startMany, workScript, workloads } from "./workloads.mjs";

let serial = 0;

/**
 * Tasks that clients complete per second, in a flow of its own: how many (`tasks`), how busy the machine was, in per cent
 * (`busy`), and the bytes of WAL per task (`wal`). Of several rounds it is the best, since other work on the machine can
 * only take away. `work` makes a worker's round out of slug, workload and claim; `change` is done to the new flow, `during`
 * (of the slug) while the clients work; everything else is for `load`.
 */
export async function throughput({ rounds = 1, ...what }) {
  let best = { tasks: 0 };
  for (let round = 1; round <= rounds; round += 1) {
    const found = await measure(what);
    if (found.tasks > best.tasks) best = found;
  }
  return best;
}

async function measure({ database = NATIVE, workload = "chain", claim = 10, work = workScript, change = () => {}, during, ...how }) {
  const shape = workloads[workload];
  const slug = define(database, `steady_${(serial += 1)}`, shape);
  process.stderr.write(`-- ${database} ${slug}: ${workload}, claims of ${claim}, ${JSON.stringify(how)}\n`);
  change(slug);
  sql(database, startMany(slug, shape, Math.ceil((how.clients * claim) / shape.tasks)));
  settle(database);
  const before = { ...processors(), wal: written() };
  const [{ seconds }, seen] = await Promise.all([
    load(database, feedScript(slug, shape, claim) + work(slug, shape, claim), how),
    during?.(slug),
  ]);
  const after = { ...processors(), wal: written() };
  const completed = completedTasks(database, slug);
  const archived = number(database, `select count(*) from pgmq.a_${slug}`);
  if (completed === 0 || completed !== archived) throw new Error(`${slug}: ${completed} tasks completed, ${archived} archived`);
  sql(database, `select pgflow.delete_flow_and_data('${slug}')`);
  return {
    tasks: Math.round(completed / seconds),
    busy: Math.round(100 * (1 - (after.idle - before.idle) / (after.all - before.all))),
    wal: Math.round((after.wal - before.wal) / completed),
    seen,
  };
}

export const completedTasks = (database, slug) =>
  number(database, `select count(*) from pgflow.step_tasks where flow_slug = '${slug}' and status = 'completed'`);

function processors() {
  const times = cpus().map(({ times }) => times);
  const sum = (pick) => times.reduce((total, time) => total + pick(time), 0);
  return { idle: sum(({ idle }) => idle), all: sum((time) => Object.values(time).reduce((a, b) => a + b)) };
}

const written = () => number("postgres", "select pg_current_wal_insert_lsn() - '0/0'");
