-- One line for each table, and for the privileges on each kind of object: rows, and a checksum of them all.
select format(
  $$select %L, count(*), md5(string_agg(t::text, E'\n' order by t::text collate "C")) from %s t$$, t.name, t.name)
from (
  select c.oid::regclass::text as name
  from pg_class c
  where c.relkind = 'r' and c.relpersistence = 'p' and c.relnamespace in ('pgflow'::regnamespace, 'pgmq'::regnamespace)
) t
order by t.name
\gexec
select 'privileges', count(*), md5(string_agg(format('%s %s', name, acl), E'\n' order by name collate "C"))
from (
  select n.nspname::text, n.nspacl from pg_namespace n where n.nspname = 'pgflow'
  union all
  select c.oid::regclass::text, c.relacl from pg_class c where c.relnamespace = 'pgflow'::regnamespace
  union all
  select p.oid::regprocedure::text, p.proacl from pg_proc p where p.pronamespace = 'pgflow'::regnamespace
) as o (name, acl);
