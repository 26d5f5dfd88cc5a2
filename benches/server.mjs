// psql and pgbench on the bench's own server. PGHOST and PGUSER lead to it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

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
  const file = join(folder, "script.sql");
  writeFileSync(file, script);
  const output = call(
    "pgbench",
    ["-n", "-r", "-M", "prepared", "-c", `${clients}`, "-j", `${Math.min(clients, 2)}`, "-t", `${transactions}`, "-f", file, database],
    { env: { ...process.env, PGOPTIONS: settings } },
  );
  const found = (pattern) => Number(output.match(pattern)?.[1] ?? NaN);
  const processed = found(/transactions actually processed: (\d+)/);
  if (processed !== clients * transactions) throw new Error(`pgbench broke off:\n${output}`);
  const commands = [...output.matchAll(/^\s+([\d.]+)\s+\d+\s+(.*)$/gm)]
    .filter(([, , text]) => !text.startsWith("\\"))
    .map(([, milliseconds, text]) => ({ milliseconds: Number(milliseconds), text }));
  return { seconds: processed / found(/^tps = ([\d.]+)/m), commands };
}

/** What a measurement must not inherit from the one before: dead rows, stale statistics, dirty pages. */
export const settle = (database) => sql(database, "vacuum analyze; checkpoint");
