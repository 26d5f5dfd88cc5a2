// Measures pgflow native against PL/pgSQL pgflow and against the floor, side by side: see docs/performance.md; and how far
// one server goes, and what is beyond it: see docs/scaling.md.
//
//   node bench.mjs [cycle] [growth] [conditions] [memory] [first]   all of them without an argument
//   node bench.mjs scaling   for docs/scaling.md: workers, commits, databases, size, pool, queues, replica; or some of them
//
// BENCH_SHORT=1 runs each once with little work, to see that it runs. Tables go to standard output and to the folder
// BENCH_OUTPUT; progress goes to standard error.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createDatabases } from "./engines.mjs";
import { conditions } from "./conditions.mjs";
import { cycle } from "./cycle.mjs";
import { firstUse } from "./first_use.mjs";
import { growth } from "./growth.mjs";
import { memory } from "./memory.mjs";
import { commits, databases, workers } from "./node.mjs";
import { pool } from "./pool.mjs";
import { queues } from "./queues.mjs";
import { replica } from "./replica.mjs";
import { size } from "./size.mjs";

const engine = { cycle, growth, conditions, memory, first: firstUse };
const scaling = { workers, commits, databases, size, pool, queues, replica };
const parts = { ...engine, ...scaling };
const asked = process.argv.slice(2).flatMap((part) => (part === "scaling" ? Object.keys(scaling) : part));
const wanted = asked.length > 0 ? asked : Object.keys(engine);
const unknown = wanted.filter((part) => !(part in parts));
if (unknown.length > 0) throw new Error(`no such part: ${unknown.join(", ")}; there are ${Object.keys(parts).join(", ")}`);

const output = process.env.BENCH_OUTPUT;
const short = process.env.BENCH_SHORT === "1";
if (output) mkdirSync(output, { recursive: true });

createDatabases();
for (const part of wanted) {
  for (const [file, text] of Object.entries(await parts[part]({ short }))) {
    if (file.endsWith(".md")) console.log(`\n${text}`);
    if (output) writeFileSync(join(output, file), text);
  }
}
