// start_flow, claim, complete and the whole cycle of each workload, for both engines and the floor.

import { FLOOR, NATIVE, PLPGSQL, define } from "./engines.mjs";
import * as floor from "./floor.mjs";
import { median, ratio, table } from "./report.mjs";
import { number, pgbench, settle, sql } from "./server.mjs";
import { batchScript, startScript, workScript, workloads } from "./workloads.mjs";

const ROUNDS = 5;
const MODES = [
  { clients: 1, commit: "off" },
  { clients: 1, commit: "on" },
  { clients: 8, commit: "off" },
  { clients: 8, commit: "on" },
];
/** Runs per measurement and client. */
const RUNS = { chain: 200, diamond: 150, map: 1 };
const CLAIM = 10;

export function cycle({ short }) {
  const samples = new Map();
  let serial = 0;
  const rounds = short ? 1 : ROUNDS;
  const modes = short ? MODES.slice(0, 1).concat(MODES.slice(2, 3)) : MODES;
  for (let round = 1; round <= rounds; round += 1) {
    for (const mode of modes) {
      for (const name of Object.keys(workloads)) {
        for (const variant of variants(name, mode, round)) {
          const slug = `${name}_${(serial += 1)}`;
          const key = [name, mode.clients, mode.commit, variant.label].join(" ");
          process.stderr.write(`-- round ${round} of ${rounds}: ${key}\n`);
          const sample = measure(variant, slug, workloads[name], short ? Math.min(20, RUNS[name]) : RUNS[name], mode);
          samples.set(key, [...(samples.get(key) ?? []), sample]);
        }
      }
    }
  }
  return { "cycle.md": text(samples, modes, rounds) };
}

/** The engines in turn, the order changing with the round. */
function variants(name, mode, round) {
  const engines = [
    { label: "native", engine: NATIVE, script: workScript, claim: CLAIM },
    { label: "plpgsql", engine: PLPGSQL, script: workScript, claim: CLAIM },
    ...(name === "map" && mode.clients === 1
      ? [10, 100].map((claim) => ({ label: `batches of ${claim}`, engine: NATIVE, script: batchScript, claim }))
      : []),
    ...(name !== "diamond" && mode.clients === 1 ? [{ label: "floor", engine: FLOOR, claim: CLAIM }] : []),
  ];
  return round % 2 === 1 ? engines : engines.reverse();
}

/** One flow of its own: its runs are started, then worked off. Everything in milliseconds. */
function measure({ engine, script, claim }, slug, workload, runs, { clients, commit }) {
  define(engine, slug, workload);
  settle(engine);
  const settings = `-c synchronous_commit=${commit}`;
  const isMap = workload.steps[0][2] === "map";
  const elements = isMap ? workload.tasks - 1 : 1;
  const start = engine === FLOOR ? floor.startScript(slug, workload, elements) : startScript(slug, workload);
  const started = pgbench(engine, start, { clients, transactions: runs, settings });
  settle(engine);
  const tasks = runs * clients * workload.tasks;
  const worked = [];
  if (engine === FLOOR) {
    const scripts = isMap
      ? [[floor.mapScript(slug, workload, claim), runs * elements]]
      : workload.steps.map((_, position) => [floor.chainScript(slug, workload, position, claim), runs]);
    for (const [text, count] of scripts) {
      worked.push(pgbench(engine, text, { clients, transactions: Math.ceil(count / claim), settings }));
    }
  } else {
    // Single steps that follow a map make one more round; with several clients some reads find nothing.
    const transactions = Math.ceil((runs * workload.tasks) / claim) + (clients > 1 ? 4 : 1);
    worked.push(pgbench(engine, script(slug, workload, claim), { clients, transactions, settings }));
    while (number(engine, `select count(*) from pgflow.runs where flow_slug = '${slug}' and status = 'started'`) > 0) {
      worked.push(pgbench(engine, script(slug, workload, claim), { transactions: 10, settings }));
    }
  }
  check(engine, slug, tasks, isMap);
  const working = worked.reduce((total, run) => total + run.seconds * 1000, 0);
  const reading = mean(worked, /^with messages/);
  const claiming = mean(worked, /^with claimed/);
  return {
    start: (started.seconds * 1000) / runs,
    claim: claiming / claim,
    // A pipeline's latency is not that of its commands: what neither reads nor claims reports.
    complete: engine === FLOOR ? working / tasks - (reading + claiming) / claim : mean(worked, /complete_task\(/),
    cycle: (started.seconds * 1000 + working) / tasks,
  };
}

function mean(worked, pattern) {
  const found = worked.flatMap((run) => run.commands.filter(({ text }) => pattern.test(text)));
  return found.length > 0 ? found.reduce((total, { milliseconds }) => total + milliseconds, 0) / found.length : NaN;
}

/** What was measured must have happened. */
function check(engine, slug, tasks, isMap) {
  const count = (what) => number(engine, `select count(*) from ${what}`);
  const completed = count(`pgflow.step_tasks where flow_slug = '${slug}' and status = 'completed'`);
  const archived = count(`pgmq.a_${slug}`);
  const expected = engine === FLOOR && isMap ? tasks - tasks / 1001 : tasks;
  if (completed !== expected || archived !== expected) {
    throw new Error(`${slug} in ${engine}: ${completed} tasks completed, ${archived} archived, not ${expected}`);
  }
  if (engine !== FLOOR || !isMap) {
    const unfinished = count(`pgflow.runs where flow_slug = '${slug}' and status <> 'completed'`);
    if (unfinished > 0) throw new Error(`${slug} in ${engine}: ${unfinished} runs did not complete`);
  }
  sql(engine, `select pgmq.drop_queue('${slug}')`);
}

function text(samples, modes, rounds) {
  const of = (name, mode, label, phase) => {
    const found = samples.get([name, mode.clients, mode.commit, label].join(" "));
    return found ? median(found.map((sample) => sample[phase])) : NaN;
  };
  const rows = [];
  for (const name of Object.keys(workloads)) {
    for (const mode of modes) {
      const where = [name, mode.clients, mode.commit];
      for (const phase of ["start", "claim", "complete", "cycle"]) {
        const [ours, theirs, least] = ["native", "plpgsql", "floor"].map((label) => of(name, mode, label, phase));
        rows.push([...where, phase, ours, theirs, ratio(theirs, ours), least, ratio(ours, least)]);
      }
      for (const claim of [10, 100]) {
        const ours = of(name, mode, `batches of ${claim}`, "cycle");
        const theirs = of(name, mode, "plpgsql", "cycle");
        if (!Number.isNaN(ours)) {
          rows.push([...where, `cycle, complete_tasks of ${claim}`, ours, theirs, ratio(theirs, ours), NaN, NaN]);
        }
      }
    }
  }
  return (
    `### One cycle\n\nMilliseconds, medians of ${rounds} rounds: start per run; claim, complete and cycle per task.\n\n` +
    table(
      ["workload", "clients", "synchronous_commit", "phase", "native", "PL/pgSQL", "PL/pgSQL ÷ native", "floor", "native ÷ floor"],
      rows,
    )
  );
}
