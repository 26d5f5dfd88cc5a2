-- One line for each table of pgflow and PGMQ: rows, and a checksum of them all, whatever the order of columns. Routes of
-- steps and tasks, which 0.16.0 does not have, are left out.
select format(
  $$select %1$L, count(*), md5(string_agg((to_jsonb(t) - %2$L::text)::text, E'\n' order by to_jsonb(t)::text collate "C"))
    from %1$s t$$,
  c.oid::regclass,
  case when c.oid::regclass::text in ('pgflow.steps', 'pgflow.step_tasks') then 'queue_name' else '' end)
from pg_class c
where c.relkind = 'r' and c.relpersistence = 'p' and c.relnamespace in ('pgflow'::regnamespace, 'pgmq'::regnamespace)
order by c.oid::regclass::text
\gexec
