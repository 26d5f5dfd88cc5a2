// A fleet of workers on their own connections, and through PgBouncer in transaction mode, which run.sh starts.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { NATIVE } from "./engines.mjs";
import { table } from "./report.mjs";
import { load, sql } from "./server.mjs";
import { completedTasks, throughput } from "./steady.mjs";
import { workScript } from "./workloads.mjs";

/** Milliseconds that a handler takes. */
const HANDLER = 250;

const direct = (protocol) => ({ protocol });
const pooled = (sessions) => ({ protocol: "extended", host: folder(sessions), port: "6432", sessions });
const folder = (sessions) => `${process.env.PGHOST}-pool-${sessions}`;

export async function pool({ short }) {
  const seconds = short ? 1 : 8;
  return {
    "pool.md": [
      await overhead(short ? { seconds } : { seconds: 3, rounds: 3 }),
      await fleet(short ? { counts: [20], warm: 1, span: 1 } : { counts: [200, 500], warm: 10, span: 8 }),
      await pollers(seconds),
    ].join("\n"),
  };
}

/** The same busy workers on their own connections and through the pooler. */
async function overhead(pace) {
  const rows = [];
  for (const [name, how] of [
    ["direct, prepared statements", direct("prepared")],
    ["direct, none prepared", direct("extended")],
    ["PgBouncer, 10 sessions", pooled(10)],
  ]) {
    rows.push([name, (await throughput({ clients: 10, ...pace, ...how })).tasks]);
  }
  return "### Ten busy workers\n\nChains, claims of ten, reports one by one.\n\n" + table(["connections", "tasks per second"], rows);
}

/** Sessions that are new need time to know pgflow: after `warm` seconds the tasks of `span` seconds are counted. */
async function fleet({ counts, warm, span }) {
  const rows = [];
  for (const clients of counts) {
    for (const [name, how] of [["direct", direct("prepared")], ["PgBouncer", pooled(10)], ["PgBouncer", pooled(20)]]) {
      // What the measurement before has left in the pools.
      sql(NATIVE, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()");
      const work = (slug, shape, claim) => workScript(slug, shape, claim, HANDLER);
      const { seen } = await throughput({
        clients, seconds: warm + span + 1, claim: 1, work, ...how,
        during: async (slug) => {
          await sleep(warm * 1000);
          const before = completedTasks(NATIVE, slug);
          await sleep(span * 1000);
          return { tasks: Math.round((completedTasks(NATIVE, slug) - before) / span), ...memory(how.sessions) };
        },
      });
      rows.push([clients, name, seen.tasks, seen.sessions, seen.server, seen.pooler]);
    }
  }
  return (
    `### A fleet\n\nWorkers that take one task at a time and ${HANDLER} ms for it. Memory is the sessions' own, without shared buffers, ` +
    "in MB.\n\n" + table(["workers", "connections", "tasks per second", "sessions", "memory", "PgBouncer's"], rows)
  );
}

/** The sessions that are there and their megabytes, and the pooler's. */
function memory(sessions) {
  const status = sql(
    NATIVE,
    `select pg_read_file('/proc/' || pid || '/status') from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
  ).join("\n");
  const pid = sessions && readFileSync(`${folder(sessions)}/pid`, "utf8").trim();
  return {
    sessions: status.match(/^VmPTE:/gm).length,
    server: megabytes(status),
    pooler: pid ? megabytes(readFileSync(`/proc/${pid}/status`, "utf8")) : NaN,
  };
}

/** A process's own memory and its page tables. */
const megabytes = (status) =>
  Math.round([...status.matchAll(/^(?:RssAnon|VmPTE):\s+(\d+)/gm)].reduce((sum, [, kilobytes]) => sum + Number(kilobytes), 0) / 1024);

/** Busy workers share a pool of ten with workers whose queue is empty. */
async function pollers(seconds) {
  sql(NATIVE, "select pgmq.create('empty')");
  const waiting = {
    "none": undefined,
    "pgmq.read, then a second of sleep in the client": "select from pgmq.read('empty', 30, 1);\n\\sleep 1 s\n",
    "pgmq.read_with_poll of 5 s": "select from pgmq.read_with_poll('empty', 30, 1, 5, 100);\n",
  };
  const rows = [];
  for (const [name, script] of Object.entries(waiting)) {
    const idle = script && load(NATIVE, script, { clients: 30, seconds: seconds + 3, ...pooled(10) });
    await sleep(1000);
    const { tasks } = await throughput({ clients: 8, seconds, ...pooled(10) });
    await idle;
    rows.push([name, tasks]);
  }
  sql(NATIVE, "select pgmq.drop_queue('empty')");
  return (
    "### Polling through a pool\n\nEight busy workers and thirty with an empty queue share ten sessions.\n\n" +
    table(["the thirty call", "tasks per second of the eight"], rows)
  );
}
