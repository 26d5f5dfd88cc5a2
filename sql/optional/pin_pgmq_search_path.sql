-- Optional: gives PGMQ's PL/pgSQL functions the search path that pgflow's have. docs/security.md says when that is needed.
-- Run it with psql as the owner of PGMQ's functions, and again after each update of PGMQ, which may take the path away.
-- Triggers of yours on queues' tables then run with this search path, whoever calls PGMQ.
do $$
declare
  f regprocedure;
begin
  for f in
    select p.oid
    from pg_catalog.pg_proc p
    join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
    join pg_catalog.pg_extension e on e.oid = d.refobjid and e.extname = 'pgmq'
    join pg_catalog.pg_language l on l.oid = p.prolang
    where l.lanname = 'plpgsql' and p.prokind = 'f'
  loop
    execute pg_catalog.format('alter function %s set search_path to pg_catalog, pg_temp', f);
  end loop;
end
$$;
