// psql and pgbench on the bench's own server. PGHOST and PGUSER lead to it.

import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const folder = mkdtempSync(join(tmpdir(), "pgflow-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const call = (program, args, options = {}) =>
  execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["pipe", "pipe", "pipe"], ...options });

/** Runs SQL in one session; the rows of all statements as lines of tab-separated columns. */
export function sql(database, text) {
  const output = call("psql", ["-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", database, "-f", "-"], { input: text });
  return output.split("\n").filter((line) => line !== "");
}

/** As `sql`, the only column of the only row as a number. */
export const number = (database, text) => Number(sql(database, text)[0]);

/**
 * Runs a pgbench script and returns the seconds it took and, for each of its SQL commands in order, the mean latency
 * in milliseconds.
 */
export function pgbench(database, script, { clients = 1, transactions, settings = "" }) {
  const output = call("pgbench", ["-r", "-t", `${transactions}`, ...common(database, script, { clients })], {
    env: { ...process.env, PGOPTIONS: settings },
  });
  const { processed, seconds } = outcome(output);
  if (processed !== clients * transactions) throw new Error(`pgbench broke off:\n${output}`);
  const commands = [...output.matchAll(/^\s+([\d.]+)\s+\d+\s+(.*)$/gm)]
    .filter(([, , text]) => !text.startsWith("\\"))
    .map(([, milliseconds, text]) => ({ milliseconds: Number(milliseconds), text }));
  return { seconds, commands };
}

/**
 * Clients repeat a pgbench script for some seconds, and other loads may run meanwhile; returns how often they did, and the
 * exact seconds. `host` is where they connect, the bench's server or another or a pooler, `cores` where they run, `rate`
 * how often per second they begin together, as often as they can without it.
 */
export async function load(database, script, how) {
  const { clients, seconds, protocol, settings = "", host = process.env.PGHOST, port, cores = allCores, rate } = how;
  const pace = ["-T", `${seconds}`, ...(rate ? ["-R", `${rate}`] : [])];
  // A pooler takes no settings of a session.
  const env = { ...process.env, PGHOST: host, ...(port ? { PGPORT: port } : { PGOPTIONS: settings }) };
  const pgbench = ["pgbench", ...pace, ...common(database, script, { clients, protocol })];
  return outcome((await promisify(execFile)("taskset", ["-c", cores, ...pgbench], { env })).stdout);
}

let scripts = 0;

function common(database, script, { clients, protocol = "prepared" }) {
  const file = join(folder, `script${(scripts += 1)}.sql`);
  writeFileSync(file, script);
  return ["-n", "-M", protocol, "-c", `${clients}`, "-j", `${Math.min(clients, 2)}`, "-f", file, database];
}

function outcome(output) {
  const found = (pattern) => Number(output.match(pattern)?.[1] ?? NaN);
  const processed = found(/transactions actually processed: (\d+)/);
  return { processed, seconds: processed / found(/^tps = ([\d.]+)/m) };
}

export const allCores = `0-${cpus().length - 1}`;

/** What a measurement must not inherit from the one before: dead rows, stale statistics, dirty pages. */
export const settle = (database) => sql(database, "vacuum analyze; checkpoint");
