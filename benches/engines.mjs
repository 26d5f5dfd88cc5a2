// The databases that are compared: same PGMQ, same realtime.send, same settings.

import { readFileSync, readdirSync } from "node:fs";
import { sql } from "./server.mjs";
import { WORKER, definition } from "./workloads.mjs";

const fixture = readFileSync(new URL("../tests/fixtures/realtime.sql", import.meta.url), "utf8");
const migrations = new URL("node_modules/@pgflow/core/dist/supabase/migrations/", import.meta.url);

export const NATIVE = "native";
export const PLPGSQL = "plpgsql";
/** Our tables without our functions. */
export const FLOOR = "floor";

const install = {
  [NATIVE]: () => "create extension pgflow;",
  [FLOOR]: () => "create extension pgflow;",
  [PLPGSQL]: () =>
    readdirSync(migrations)
      .filter((file) => file.endsWith(".sql"))
      .sort()
      .map((file) => readFileSync(new URL(file, migrations), "utf8"))
      .join("\n"),
};

export function createDatabases() {
  for (const engine of [NATIVE, PLPGSQL, FLOOR]) createDatabase(engine, engine);
}

/** A database of any name, with an engine. */
export function createDatabase(name, engine = NATIVE) {
  sql("postgres", `drop database if exists ${name} with (force);`);
  sql("postgres", `create database ${name};`);
  sql(name, `set client_min_messages = error; create extension pgmq; ${fixture} ${install[engine]()}`);
  sql(name, `insert into pgflow.workers (worker_id, queue_name, function_name) values ('${WORKER}', 'bench', 'bench');`);
}

/** Defines a flow and returns its slug; every measurement has a flow and so a queue of its own. */
export function define(engine, slug, workload) {
  sql(engine, definition(slug, workload));
  return slug;
}
