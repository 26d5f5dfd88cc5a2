// Memory of a backend that works for long, and how often a claim reads the array that it maps over.

import { NATIVE, define } from "./engines.mjs";
import { table } from "./report.mjs";
import { sql } from "./server.mjs";
import { map, startScript } from "./workloads.mjs";

export function memory({ short }) {
  const chunk = short ? 500 : 10_000;
  process.stderr.write(`-- memory: ${10 * chunk} cycles in one backend\n`);
  define(NATIVE, "memory", { steps: [["a"], ["b", ["a"]]] });
  // Anonymous memory, without the shared buffers that the backend has touched.
  const resident = `select substring(pg_read_file('/proc/self/status') from 'RssAnon:\\s+(\\d+)');`;
  const lines = sql(
    NATIVE,
    `set synchronous_commit = off;
     create procedure pg_temp.cycles(count integer) language plpgsql as $$
     begin
       for i in 1..count loop
         if i % 2 = 1 then
           perform pgflow.start_flow('memory', '{}');
           commit;
         end if;
         perform pgflow.complete_task(t.run_id, t.step_slug, t.task_index, '{"ok": true}')
         from pgflow.start_tasks('memory', array(select msg_id from pgmq.read('memory', 60, 1)), null) t;
         commit;
       end loop;
     end $$;
     ${`call pg_temp.cycles(${chunk}); ${resident}\n`.repeat(10)}`,
  );
  const kilobytes = lines.map(Number);
  const rows = kilobytes.map((size, at) => [(at + 1) * chunk, size]);
  return {
    "memory.md":
      "### Memory\n\nAnonymous resident memory of one backend that starts runs, claims and completes; " +
      `from ${chunk} cycles to ${10 * chunk} it grew by ${kilobytes[9] - kilobytes[0]} kB.\n\n` +
      table(["cycles", "kB"], rows) +
      `\n${arrayReads(short)}`,
  };
}

/** Pages that a claim touches, of one task and of a hundred, out of a map whose array is stored out of line. */
function arrayReads(short) {
  const width = short ? 1000 : 10_000;
  const workload = map(width, 30);
  const slug = define(NATIVE, "array_reads", workload);
  sql(NATIVE, startScript(slug, workload));
  const pages = Number(
    sql(NATIVE, `select pg_column_size(input) / 2000 from pgflow.runs where flow_slug = '${slug}'`)[0],
  );
  const claim = (count) =>
    `explain (analyze, buffers, costs off, timing off, summary off) select count(input) from pgflow.start_tasks('${slug}', ` +
    `array(select msg_id from pgmq.q_${slug} where vt <= now() order by msg_id limit ${count}), null);\n`;
  // The first two claims load plans and catalogs.
  const plan = sql(NATIVE, claim(1) + claim(100) + claim(1) + claim(100));
  const hits = plan
    .map((line) => line.match(/^\s+Buffers: shared hit=(\d+)/)?.[1])
    .filter((hit) => hit !== undefined);
  const starts = plan.flatMap((line, at) => (/^Aggregate/.test(line) ? [at] : []));
  const of = (at) => Number(plan.slice(starts[at]).find((line) => /Buffers: shared hit=/.test(line)).match(/hit=(\d+)/)[1]);
  if (hits.length < 4) throw new Error(`no buffers in the plan:\n${plan.join("\n")}`);
  return (
    `### A claim reads its array once\n\nThe array of ${width} elements takes about ${pages} pages. Pages touched by a claim:\n\n` +
    table(["tasks claimed", "pages"], [[1, of(2)], [100, of(3)]])
  );
}
