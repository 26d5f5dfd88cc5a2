// Reads on a standby while the primary works. Each server and its clients are kept on a core of their own, as if they were
// machines with one core each.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { drop, standby, start } from "../tests/reliability/server.mjs";
import { NATIVE, define } from "./engines.mjs";
import { table } from "./report.mjs";
import { allCores, load, number, sql } from "./server.mjs";
import { throughput } from "./steady.mjs";
import { workloads } from "./workloads.mjs";

const RUNS = 1000;
/** Rounds of the readers per second. */
const RATE = 2000;
const primary = process.env.PGHOST;
const spare = `${primary}-2`;

/** What a page about a run asks. */
const run = `('00000000-0000-0000-0000-' || lpad(:n::text, 12, '0'))::uuid`;
const look =
  `\\set n random(1, ${RUNS})\nselect pgflow.get_run_with_states(${run});\n` +
  `select * from pgflow.run_progress where run_id = ${run};\n`;

export async function replica({ short }) {
  const seconds = short ? 1 : 8;
  define(NATIVE, "watched", workloads.diamond);
  sql(NATIVE, `select count(*) from generate_series(1, ${RUNS}) n, pgflow.start_flow('watched', '{}', ${run.replace(":n", "n")})`);
  process.stderr.write("-- making a standby\n");
  await standby(spare, primary);
  await start(spare, "shared_buffers=1GB", "max_connections=600");
  const rows = [];
  try {
    pin(primary, "0");
    pin(spare, "1");
    for (const [name, host, cores] of [["none"], ["on the primary", primary, "0"], ["on the standby", spare, "1"]]) {
      let lag = 0;
      const reading = host && load(NATIVE, look, { clients: 4, seconds: seconds + 2, host, cores, rate: RATE });
      const { tasks } = await throughput({
        clients: 4, seconds, cores: "0",
        during: async () => {
          for (let sample = 1; sample < 10; sample += 1) {
            await sleep(seconds * 100);
            lag = Math.max(lag, number(NATIVE, "select extract(epoch from coalesce(replay_lag, '0')) * 1000 from pg_stat_replication"));
          }
        },
      });
      const read = await reading;
      rows.push([name, tasks, read ? Math.round(read.processed / read.seconds) : NaN, lag]);
    }
  } finally {
    pin(primary, allCores);
    await drop(spare);
  }
  return {
    "replica.md":
      "### Reads on a standby\n\nFour workers on the primary: chains, claims of ten, reports one by one. Four readers, " +
      "whose round is `get_run_with_states` and `run_progress` of a run.\n\n" +
      table(["reads", "tasks per second", "rounds per second", "longest replay lag, ms"], rows),
  };
}

/** Keeps a server's processes on these cores; new ones inherit it from the first. */
function pin(folder, cores) {
  const first = readFileSync(`${folder}/data/postmaster.pid`, "utf8").split("\n")[0];
  const children = execFileSync("pgrep", ["-P", first], { encoding: "utf8" }).trim().split("\n");
  for (const pid of [first, ...children]) execFileSync("taskset", ["-a", "-c", "-p", cores, pid], { stdio: "ignore" });
}
