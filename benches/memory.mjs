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

/** How much of the array a claim reads, of one task and of a hundred, when it is stored out of line. */
function arrayReads(short) {
  const width = short ? 1000 : 10_000;
  const workload = map(width, 30);
  const slug = define(NATIVE, "array_reads", workload);
  const claim = (count) =>
    `select count(input) from pgflow.start_tasks('${slug}', array(select msg_id from pgmq.read('${slug}', 60, ${count})), null);\n`;
  const fetched =
    "select pg_stat_force_next_flush();\n" +
    "select 'fetched', pg_stat_get_blocks_fetched(reltoastrelid) from pg_class where oid = 'pgflow.runs'::regclass;\n";
  const lines = sql(
    NATIVE,
    // The first claims load plans and catalogs.
    startScript(slug, workload) + claim(1) + claim(2) + fetched + claim(1) + fetched + claim(100) + fetched,
  );
  const [before, afterOne, afterMany] = lines
    .filter((line) => line.startsWith("fetched"))
    .map((line) => Number(line.split("\t")[1]));
  const rows = [[1, afterOne - before], [100, afterMany - afterOne]];
  if (rows.some(([, blocks]) => !(blocks > 0))) throw new Error(`the array was not read at all:\n${lines.join("\n")}`);
  return (
    `### A claim reads its array once\n\nA root map of ${width} elements, whose array is stored out of line. Blocks of it ` +
    "that a claim reads:\n\n" +
    table(["tasks claimed", "blocks"], rows)
  );
}
