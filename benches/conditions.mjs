// Long flows: chains whose conditions are all judged in one call, and runs of many steps.

import { NATIVE, define } from "./engines.mjs";
import { median, table } from "./report.mjs";
import { pgbench, settle, sql } from "./server.mjs";
import { startScript, workScript } from "./workloads.mjs";

const SETTINGS = "-c synchronous_commit=off";

export function conditions({ short }) {
  const lengths = short ? [10, 50] : [10, 50, 100, 250, 500];
  const rows = lengths.map((length) => {
    process.stderr.write(`-- conditions: ${length} steps\n`);
    const judged = startOfSkippedChain(length, short ? 1 : 5);
    const worked = cycleOfChain(length);
    return [length, judged, judged / length, worked];
  });
  return {
    "conditions.md":
      "### Long flows\n\nA chain whose steps are all skipped by their conditions is resolved whole by start_flow; a chain " +
      "without conditions is worked off, ten runs at a time. Milliseconds, pgflow native.\n\n" +
      table(["steps", "start_flow of the skipped chain", "per step", "cycle per task of the chain"], rows),
  };
}

function startOfSkippedChain(length, rounds) {
  const slug = `skipped_${length}`;
  sql(
    NATIVE,
    `select pgflow.create_flow('${slug}');
     select pgflow.add_step('${slug}', 's' || i, case when i = 1 then '{}' else array['s' || (i - 1)] end,
                            required_input_pattern => '{"never": true}', when_unmet => 'skip')
     from generate_series(1, ${length}) i;`,
  );
  settle(NATIVE);
  const script = startScript(slug, { input: `'{}'::jsonb` });
  const found = Array.from({ length: rounds }, () => pgbench(NATIVE, script, { transactions: 20, settings: SETTINGS }));
  return median(found.map(({ seconds }) => (seconds * 1000) / 20));
}

function cycleOfChain(length) {
  const steps = Array.from({ length }, (_, at) => [`s${at}`, at === 0 ? [] : [`s${at - 1}`]]);
  const workload = { steps, tasks: length, input: `'{}'::jsonb`, output: `'[1, 2, 3]'` };
  const slug = define(NATIVE, `long_${length}`, workload);
  settle(NATIVE);
  const started = pgbench(NATIVE, startScript(slug, workload), { transactions: 10, settings: SETTINGS });
  const worked = pgbench(NATIVE, workScript(slug, workload), { transactions: length, settings: SETTINGS });
  return ((started.seconds + worked.seconds) * 1000) / (10 * length);
}
