// What one server carries: workers, batches, commits, and databases beside each other.

import { NATIVE, createDatabase } from "./engines.mjs";
import { table } from "./report.mjs";
import { sql } from "./server.mjs";
import { throughput } from "./steady.mjs";
import { batchScript, workScript } from "./workloads.mjs";

const ways = [
  { workload: "chain", claim: 1, work: workScript, reports: "one by one" },
  { workload: "chain", claim: 10, work: workScript, reports: "one by one" },
  { workload: "chain", claim: 10, work: batchScript, reports: "together" },
  { workload: "chain", claim: 100, work: batchScript, reports: "together" },
  { workload: "map", claim: 10, work: batchScript, reports: "together" },
  { workload: "map", claim: 100, work: batchScript, reports: "together" },
];

export async function node({ short }) {
  const seconds = short ? 1 : 4;
  return {
    "node.md": [
      await workers(short ? [2] : [1, 2, 8, 32], short ? ways.slice(2, 3) : ways, seconds),
      await commits(short ? [0] : [0, 100, 1000], seconds),
      await databases(seconds),
    ].join("\n"),
  };
}

async function workers(counts, ways, seconds) {
  const rows = [];
  for (const commit of ["on", "off"]) {
    for (const { reports, ...way } of ways) {
      const found = [];
      for (const clients of counts) {
        found.push(await throughput({ ...way, clients, seconds, settings: `-c synchronous_commit=${commit}` }));
      }
      rows.push([commit, way.workload, way.claim, reports, ...found.map(({ tasks }) => tasks), `${found[0].busy} %`, `${found.at(-1).busy} %`]);
    }
  }
  const names = counts.map((count) => (count === 1 ? "1 worker" : `${count}`));
  return (
    "### Workers and batches\n\nTasks per second, from the start of their run to their completion.\n\n" +
    table(["synchronous_commit", "workload", "claims of", "reports", ...names, `CPU with ${counts[0]}`, `CPU with ${counts.at(-1)}`], rows)
  );
}

async function commits(delays, seconds) {
  const rows = [];
  for (const delay of delays) {
    const settings = `-c synchronous_commit=on -c commit_delay=${delay}`;
    const [few, many] = [await throughput({ clients: 8, seconds, settings }), await throughput({ clients: 32, seconds, settings })];
    rows.push([delay, few.tasks, many.tasks]);
  }
  return (
    "### commit_delay\n\nTasks per second of chains, claims of ten, reports one by one, synchronous_commit on.\n\n" +
    table(["commit_delay", "8 workers", "32"], rows)
  );
}

/** The same eight workers on one database, and four on each of two. */
async function databases(seconds) {
  const other = "other";
  createDatabase(other);
  const one = await throughput({ clients: 8, seconds });
  const listed = [];
  const look = () => listed.push(sql(other, "select queue_name from pgmq.list_queues()").join());
  const both = await Promise.all(
    [NATIVE, other].map((database) => throughput({ database, clients: 4, seconds, change: database === other ? () => {} : look })),
  );
  if (listed.join() !== "") throw new Error(`a database lists another one's queues: ${listed}`);
  sql("postgres", `drop database ${other} with (force)`);
  return (
    "### Two databases in one server\n\nTasks per second of chains, claims of ten, reports one by one, synchronous_commit on.\n\n" +
    table(["databases", "workers", "tasks per second"], [["one", "8", one.tasks], ["two", "4 on each", both[0].tasks + both[1].tasks]])
  );
}
