// What one server carries: workers, batches, commits, and databases beside each other.

import { createDatabase } from "./engines.mjs";
import { table } from "./report.mjs";
import { sql } from "./server.mjs";
import { throughput } from "./steady.mjs";
import { batchScript, workScript } from "./workloads.mjs";

const ways = [
  { workload: "chain", claim: 10, work: workScript, reports: "one by one" },
  { workload: "chain", claim: 10, work: batchScript, reports: "together" },
  { workload: "chain", claim: 100, work: batchScript, reports: "together" },
  { workload: "map", claim: 100, work: batchScript, reports: "together" },
];

const pace = (short) => (short ? { seconds: 1, rounds: 1 } : { seconds: 2, rounds: 3 });

export async function workers({ short }) {
  const counts = short ? [2] : [1, 2, 8, 32];
  const rows = [];
  for (const commit of ["on", "off"]) {
    for (const { reports, ...way } of short ? ways.slice(3) : ways) {
      const found = [];
      for (const clients of counts) {
        found.push(await throughput({ ...way, clients, settings: `-c synchronous_commit=${commit}`, ...pace(short) }));
      }
      rows.push([commit, way.workload, way.claim, reports, ...found.map(({ tasks }) => tasks), `${found[0].busy} %`]);
    }
  }
  return {
    "workers.md":
      "### Workers and batches\n\nTasks per second, from the start of their run to their completion, by the number of workers.\n\n" +
      table(["synchronous_commit", "workload", "claims of", "reports", ...counts.map(String), `CPU with ${counts[0]}`], rows),
  };
}

export async function commits({ short }) {
  if (!short) await throughput({ clients: 8, seconds: 10 }); // a new server has yet to make its WAL files
  const rows = [];
  for (const delay of short ? [100] : [0, 100, 1000]) {
    const settings = `-c synchronous_commit=on -c commit_delay=${delay}`;
    const [few, many] = [
      await throughput({ clients: 8, settings, ...pace(short) }),
      await throughput({ clients: 32, settings, ...pace(short) }),
    ];
    rows.push([delay, few.tasks, many.tasks]);
  }
  return {
    "commits.md":
      "### commit_delay\n\nTasks per second of chains, claims of ten, reports one by one, synchronous_commit on.\n\n" +
      table(["commit_delay", "8 workers", "32"], rows),
  };
}

/** The same eight workers on one database, and four on each of two. */
export async function databases({ short }) {
  const other = "other";
  createDatabase(other);
  const how = { seconds: short ? 1 : 6 };
  const one = await throughput({ clients: 8, ...how });
  const listed = [];
  const look = () => listed.push(...sql(other, "select queue_name from pgmq.list_queues()"));
  const both = await Promise.all([
    throughput({ clients: 4, ...how, change: look }),
    throughput({ database: other, clients: 4, ...how }),
  ]);
  if (listed.length > 0) throw new Error(`a database lists another one's queues: ${listed}`);
  sql("postgres", `drop database ${other} with (force)`);
  return {
    "databases.md":
      "### Two databases in one server\n\nTasks per second of chains, claims of ten, reports one by one, synchronous_commit on.\n\n" +
      table(["databases", "workers", "tasks per second"], [["one", "8", one.tasks], ["two", "4 on each", both[0].tasks + both[1].tasks]]),
  };
}
