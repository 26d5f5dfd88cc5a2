-- Everything an installed pgflow consists of, a line each. What users granted is left out, and who owns
-- the objects. Sorted, the lines do not show the order of columns, which may differ.
set search_path to pg_catalog;

create function pg_temp.acl(acl aclitem[], kind "char", owner oid) returns text language sql as $$
  select coalesce(string_agg(
    format('%s:%s%s', case grantee when owner then 'owner' else 'public' end, privilege_type,
           case when is_grantable then '*' end), ' ' order by grantee = owner, privilege_type), 'nothing')
  from aclexplode(coalesce(acl, acldefault(kind, owner)))
  where grantee in (0, owner)
$$;
create function pg_temp.initial(class regclass, object oid, kind "char", owner oid) returns text language sql as $$
  select pg_temp.acl((select initprivs from pg_init_privs where classoid = class and objoid = object and objsubid = 0), kind, owner)
$$;

-- Views of pgflow's own: users may have others in its schema.
create temporary view view as
  select c.oid from pg_class c join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
  where c.relnamespace = 'pgflow'::regnamespace and c.relkind = 'v';

select format('column %s.%s %s%s default %s; %s; %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
              case when a.attnotnull then ' not null' end, coalesce(pg_get_expr(d.adbin, d.adrelid), 'none'),
              a.attstorage, coalesce(a.attcollation::regcollation::text, ''),
              coalesce(col_description(c.oid, a.attnum), 'no comment'))
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'pgflow'::regnamespace and (c.relkind in ('r', 'c') or c.oid in (select oid from pg_temp.view))
order by c.relname, a.attname;

select format('%s %s: %s, access %s, initially %s, options %s, row security %s; %s', c.relkind, c.relname, c.relpersistence,
              pg_temp.acl(c.relacl, 'r', c.relowner), pg_temp.initial('pg_class', c.oid, 'r', c.relowner), c.reloptions,
              c.relrowsecurity, coalesce(obj_description(c.oid, 'pg_class'), 'no comment'))
from pg_class c
where c.relnamespace = 'pgflow'::regnamespace
  and (c.relkind in ('r', 'c', 'S', 'm', 'p') or c.oid in (select oid from pg_temp.view))
order by c.relname;

select format('view %s: %s', v.oid::regclass, regexp_replace(pg_get_viewdef(v.oid), '\s+', ' ', 'g'))
from pg_temp.view v
order by v.oid::regclass::text;

select format('constraint %s of %s: %s, valid %s; %s', k.conname, c.relname,
              regexp_replace(pg_get_constraintdef(k.oid), '\s+', ' ', 'g'), k.convalidated,
              coalesce(obj_description(k.oid, 'pg_constraint'), 'no comment'))
from pg_constraint k join pg_class c on c.oid = k.conrelid
where c.relnamespace = 'pgflow'::regnamespace
order by c.relname, k.conname;

select format('index %s, valid %s; %s', pg_get_indexdef(i.indexrelid), i.indisvalid,
              coalesce(obj_description(i.indexrelid, 'pg_class'), 'no comment'))
from pg_index i join pg_class c on c.oid = i.indrelid
where c.relnamespace = 'pgflow'::regnamespace
order by i.indexrelid::regclass::text;

select format('type %s: access %s; %s', t.typname, pg_temp.acl(t.typacl, 'T', t.typowner),
              coalesce(obj_description(t.oid, 'pg_type'), 'no comment'))
from pg_type t
where t.typnamespace = 'pgflow'::regnamespace and t.typname = 'step_task_record';

select format('%s access %s, initially %s; %s', regexp_replace(pg_get_functiondef(p.oid), '\s+', ' ', 'g'), pg_temp.acl(p.proacl, 'f', p.proowner),
              pg_temp.initial('pg_proc', p.oid, 'f', p.proowner), coalesce(obj_description(p.oid, 'pg_proc'), 'no comment'))
from pg_proc p
where p.pronamespace = 'pgflow'::regnamespace and p.proname <> 'prune_data_older_than'
order by p.oid::regprocedure::text;

select format('schema: access %s, initially %s; %s', pg_temp.acl(nspacl, 'n', nspowner),
              pg_temp.initial('pg_namespace', oid, 'n', nspowner), obj_description(oid, 'pg_namespace'))
from pg_namespace where nspname = 'pgflow';

select format('extension %s %s, schema %s', extname, extversion, extnamespace::regnamespace) from pg_extension where extname = 'pgflow';
select format('dumped: %s %s', c.relname, k.condition)
from pg_extension e cross join lateral unnest(e.extconfig, e.extcondition) with ordinality as k (oid, condition, n)
join pg_class c on c.oid = k.oid
where e.extname = 'pgflow' order by k.n;
select 'member: ' || pg_describe_object(d.classid, d.objid, d.objsubid)
from pg_depend d join pg_extension e on e.oid = d.refobjid and e.extname = 'pgflow'
where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e'
order by 1;
