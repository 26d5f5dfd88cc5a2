-- A schema with a trap for each function, operator, type and table that code without a fixed search path would take from
-- it. A trap counts how often it was stepped into, also where the transaction ends with an error.
create schema hostile;
create sequence hostile.hits;
grant usage on schema hostile to public;
grant usage on sequence hostile.hits to public;

-- Functions: the name and arguments of each in pg_catalog; they return NULL.
do $$
declare
  f record;
begin
  for f in
    select proname, pg_catalog.pg_get_function_identity_arguments(oid) as arguments, prorettype, proretset
    from pg_catalog.pg_proc
    where pronamespace = 'pg_catalog'::regnamespace and prokind in ('f', 'a', 'w')
      and not exists (
        select from pg_catalog.pg_type t
        where t.oid = any (proargtypes::oid[] || prorettype) and t.typtype = 'p'
          and t.typname not in ('void', 'record', 'anyelement', 'anyarray', 'anynonarray', 'anycompatible', 'anycompatiblearray'))
      and pg_catalog.pg_get_function_identity_arguments(oid) !~ 'OUT |VARIADIC|ORDER BY|record|void'
      and proname not in ('nextval', 'currval', 'setval')
  loop
    execute pg_catalog.format(
      'create or replace function hostile.%I(%s) returns %s %s language plpgsql as
       $f$ begin perform pg_catalog.nextval(''hostile.hits''); return%s; end $f$',
      f.proname, f.arguments, case when f.proretset then 'setof' else '' end, pg_catalog.format_type(f.prorettype, null),
      case when f.proretset or f.prorettype = 'void'::regtype then '' else ' null' end);
  end loop;
end
$$;

-- Operators: each of pg_catalog's over types that pgflow and PGMQ use.
do $$
declare
  o record;
begin
  for o in
    select oprname, oprleft::regtype as l, oprright::regtype as r, oprresult::regtype as res, row_number() over () as n
    from pg_catalog.pg_operator
    where oprnamespace = 'pg_catalog'::regnamespace and oprleft <> 0
      and oprleft::regtype::text = any ('{text,jsonb,integer,bigint,boolean,uuid,timestamp with time zone,interval,oid,name,double precision}')
      and oprright::regtype::text = any ('{text,jsonb,integer,bigint,boolean,uuid,timestamp with time zone,interval,oid,name,text[],double precision}')
  loop
    execute pg_catalog.format(
      'create function hostile.op_%s(%s, %s) returns %s language plpgsql as
       $f$ begin perform pg_catalog.nextval(''hostile.hits''); return null; end $f$', o.n, o.l, o.r, o.res);
    execute pg_catalog.format('create operator hostile.%s (leftarg = %s, rightarg = %s, function = hostile.op_%s)',
                              o.oprname, o.l, o.r, o.n);
  end loop;
end
$$;

-- Types: domains that count whenever a value is put into one.
create function hostile.steps_in(value anyelement) returns boolean language plpgsql as
$$ begin perform pg_catalog.nextval('hostile.hits'); return true; end $$;
do $$
declare
  t text;
begin
  foreach t in array '{text,jsonb,json,uuid,int4,int8,bool,name,oid,timestamptz,interval,numeric,regclass,float8,bytea,varchar}'::text[] loop
    execute pg_catalog.format('create domain hostile.%I as pg_catalog.%1$I check (hostile.steps_in(value))', t);
  end loop;
end
$$;

-- Tables: views of the names that pgflow, PGMQ and the catalog have.
create function hostile.row() returns setof integer language plpgsql as
$$ begin perform pg_catalog.nextval('hostile.hits'); return; end $$;
do $$
declare
  t text;
begin
  foreach t in array '{flows,steps,deps,runs,step_states,step_tasks,workers,worker_functions,meta,q_path,a_path,pg_class,pg_proc,pg_namespace,pg_extension,pg_depend,tables,job,secrets}'::text[] loop
    execute pg_catalog.format('create view hostile.%I as select * from hostile.row()', t);
  end loop;
end
$$;
grant execute on all functions in schema hostile to public;
