// What other kinds of PGMQ queues cost and gain. What they lose is tests/reliability/queues.mjs.

import { NATIVE } from "./engines.mjs";
import { table } from "./report.mjs";
import { sql } from "./server.mjs";
import { throughput } from "./steady.mjs";

const kinds = {
  "standard": () => {},
  "unlogged": (slug) => replace(slug, "create_unlogged", ""),
  "unlogged, with its archive": (slug) => {
    replace(slug, "create_unlogged", "");
    sql(NATIVE, `alter table pgmq.a_${slug} set unlogged`);
  },
  "partitioned, 10,000 messages each": (slug) => replace(slug, "create_partitioned", ", '10000', '1000000'"),
};

/** Before there are messages, another queue takes the place of the one that create_flow has made. */
const replace = (slug, create, how) => sql(NATIVE, `select pgmq.drop_queue('${slug}'); select pgmq.${create}('${slug}'${how});`);

export async function queues({ short }) {
  sql(NATIVE, "create schema if not exists partman; create extension if not exists pg_partman schema partman");
  const rows = [];
  for (const [name, change] of Object.entries(kinds)) {
    const found = [];
    for (const commit of ["on", "off"]) {
      const pace = short ? { seconds: 1 } : { seconds: 3, rounds: 3 };
      found.push(await throughput({ clients: 8, change, settings: `-c synchronous_commit=${commit}`, ...pace }));
    }
    rows.push([name, ...found.map(({ tasks }) => tasks), found[0].wal]);
  }
  return {
    "queues.md":
      "### Kinds of queues\n\nTasks per second of chains, eight workers, claims of ten, reports one by one.\n\n" +
      table(["queue", "synchronous_commit on", "off", "bytes of WAL per task"], rows),
  };
}
