-- What the roles of users.sql were granted, and which functions are closed to the public. Those of maintenance are left
-- out there: 0.17.0 closes them.
select format('%s: %s%s on %s', a.grantee::regrole, a.privilege_type, case when a.is_grantable then ' with grant option' end, o.name)
from (
  select nspname::text, nspacl from pg_namespace where nspname = 'pgflow'
  union all select relname, relacl from pg_class where relnamespace = 'pgflow'::regnamespace
  union all select proname, proacl from pg_proc where pronamespace = 'pgflow'::regnamespace
  union all select typname, typacl from pg_type where typnamespace = 'pgflow'::regnamespace
  union all select format('%s of %s', a.attname, c.relname), a.attacl from pg_attribute a join pg_class c on c.oid = a.attrelid
            where c.relnamespace = 'pgflow'::regnamespace
) as o (name, acl), aclexplode(o.acl) a
where a.grantee in ('app_web'::regrole, 'app_worker'::regrole, 'app_cron'::regrole)
order by 1;
select 'closed: ' || proname from pg_proc
where pronamespace = 'pgflow'::regnamespace and not has_function_privilege('app_nobody', oid, 'execute')
  and proname not in ('requeue_stalled_tasks', 'setup_requeue_stalled_tasks_cron', 'setup_ensure_workers_cron',
                      'cleanup_ensure_workers_logs')
order by 1;
