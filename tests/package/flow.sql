-- A flow of three steps, a run, and a worker that goes three times through read, claim and report.
\set QUIET on
\pset tuples_only on
\pset format unaligned
set client_min_messages = warning;
create extension pgflow cascade;
select from pgflow.create_flow('parcel');
select from pgflow.add_step('parcel', 'pack');
select from pgflow.add_step('parcel', 'stamp', '{pack}');
select from pgflow.add_step('parcel', 'send', '{stamp}');
select from pgflow.start_flow('parcel', '{"to": "Ada"}');

\o /dev/null
prepare work as
select format('select pgflow.complete_task(%L, %L, %s, to_jsonb(%L::text))', run_id, step_slug, task_index, step_slug || ' done')
from pgflow.start_tasks('parcel', array(select msg_id from pgmq.read('parcel', 30, 10)), null);
execute work \gexec
execute work \gexec
execute work \gexec
\o

select extname, extversion from pg_extension where extname in ('pgflow', 'pgmq') order by 1;
select status, output from pgflow.runs;
drop extension pgflow;
drop extension pgmq;
