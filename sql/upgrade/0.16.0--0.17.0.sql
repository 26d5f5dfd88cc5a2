-- From pgflow 0.16.0, adopted or installed, to 0.17.0: steps and tasks get their queue's name, functions become C.
-- It succeeds as a whole or changes nothing. Rows that break a new constraint end it with that constraint's error.
--
-- `make upgrade-script` writes sql/pgflow--0.16.0--0.17.0.sql from sql/upgrade/0.16.0--0.17.0.sql: an "@include" line
-- stands for the text of a file, an "@comments" line for its COMMENTs and dump marks.
\echo Use "ALTER EXTENSION pgflow UPDATE" to load this file. \quit

set local search_path to pg_catalog, pg_temp;

-- No lock is waited for longer than 10 s; a shorter limit of the caller's stays.
select set_config('lock_timeout', '10s', true)
from pg_settings
where name = 'lock_timeout' and (setting = '0' or setting::integer > 10000);

lock table pgflow.flows, pgflow.steps, pgflow.deps, pgflow.runs, pgflow.step_states, pgflow.step_tasks,
  pgflow.workers, pgflow.worker_functions
  in access exclusive mode;

-- @include sql/validators.sql

-- Routes of steps, and of the tasks that were sent: 0.16.0 had one queue for each flow.
alter table pgflow.steps      add column queue_name text;
alter table pgflow.step_tasks add column queue_name text;

set local session_replication_role to replica; -- users' triggers stay silent, until the script ends
update pgflow.steps      set queue_name = lower(flow_slug);
update pgflow.step_tasks set queue_name = lower(flow_slug);

alter table pgflow.steps
  alter column queue_name set not null,
  add constraint queue_name_is_valid check (pgflow.is_valid_queue_name(queue_name));
alter table pgflow.step_tasks
  alter column queue_name set not null,
  add constraint queue_name_is_valid check (pgflow.is_valid_queue_name(queue_name));

create unique index idx_step_tasks_queue_message on pgflow.step_tasks (queue_name, message_id)
                                                 where message_id is not null;
drop index pgflow.idx_step_tasks_message_id;

-- No query uses these, and each would cost a write for every change of a status: docs/adr/0007-fewer-indexes.md.
drop index pgflow.idx_runs_status;
drop index pgflow.idx_step_states_ready, pgflow.idx_step_states_failed, pgflow.idx_step_states_skipped,
           pgflow.idx_step_states_run_id;
drop index pgflow.idx_step_tasks_queued_msg, pgflow.idx_step_tasks_queued, pgflow.idx_step_tasks_completed,
           pgflow.idx_step_tasks_failed, pgflow.idx_step_tasks_last_worker;

-- What is under way is found by this one.
create index idx_runs_started on pgflow.runs (started_at) where status = 'started';

create unique index idx_flows_normalized_slug on pgflow.flows (lower(flow_slug));

-- start_tasks gets an argument, which makes it another function; the old one steps aside and hands its owner and
-- privileges over.
alter function pgflow.start_tasks(text, bigint[], uuid) rename to start_tasks_0_16_0;

-- @include sql/functions_flow.sql
-- @include sql/functions_run.sql
-- @include sql/functions_task.sql
-- @include sql/functions_compile.sql
-- @include sql/functions_worker.sql
-- @include sql/functions_monitoring.sql
-- @include sql/views.sql

do $$
declare
  old       constant regprocedure := 'pgflow.start_tasks_0_16_0(text, bigint[], uuid)';
  new       constant regprocedure := 'pgflow.start_tasks(text, bigint[], uuid, text)';
  tables    constant regclass := 'pgflow.flows';
  object    text;
  privilege record;
begin
  execute format('alter function %s owner to %s', new, (select proowner::regrole from pg_proc where oid = old));
  foreach object in array array[
    'function pgflow.is_valid_queue_name', 'function pgflow.complete_tasks', 'function pgflow.queue_depth',
    'function pgflow.flow_graph', 'function pgflow.run_graph', 'view pgflow.run_progress', 'view pgflow.step_progress',
    'view pgflow.live_workers', 'view pgflow.permanently_stalled_tasks', 'view pgflow.stalled']
  loop
    execute format('alter %s owner to %s', object, (select relowner::regrole from pg_class where oid = tables));
  end loop;

  if (select proacl is not null from pg_proc where oid = old) then
    execute format('revoke all on function %s from public', new);
    for privilege in
      select case a.grantee when 0 then 'public' else a.grantee::regrole::text end as grantee, a.is_grantable
      from pg_proc p, aclexplode(p.proacl) a
      where p.oid = old
    loop
      execute format('grant execute on function %s to %s%s', new, privilege.grantee,
                     case when privilege.is_grantable then ' with grant option' end);
    end loop;
  end if;
  execute format('drop function %s', old);
end
$$;

-- @comments sql/definitions.sql
-- @comments sql/workers.sql
-- @comments sql/runtime.sql
comment on column pgflow.worker_functions.created_at is null;
-- @comments sql/grants_and_dump.sql

-- Adding an object to an extension, and GRANT and REVOKE in its scripts, record all privileges on the object as the
-- extension's own, and pg_dump leaves those out. The only ones that are: PUBLIC may not run maintenance functions.
-- pg_shdepend has such entries from PostgreSQL 17 on.
with member as (
  select d.classid, d.objid, p.proowner as owner, coalesce(p.proname in (
    'requeue_stalled_tasks', 'setup_requeue_stalled_tasks_cron', 'setup_ensure_workers_cron',
    'cleanup_ensure_workers_logs'), false) as is_maintenance
  from pg_depend d
  left join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
  where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e'
    and d.refobjid = (select oid from pg_extension where extname = 'pgflow')
), corrected as (
  update pg_init_privs i set initprivs = array[makeaclitem(m.owner, m.owner, 'EXECUTE', false)]
  from member m
  where (i.classoid, i.objoid) = (m.classid, m.objid) and m.is_maintenance
), removed as (
  delete from pg_init_privs i using member m
  where (i.classoid, i.objoid) = (m.classid, m.objid) and not m.is_maintenance
)
delete from pg_shdepend s using member m, pg_database b
where (s.classid, s.objid) = (m.classid, m.objid) and s.deptype = 'i'
  and b.datname = current_database() and s.dbid = b.oid
  and not (m.is_maintenance and s.refclassid = 'pg_authid'::regclass and s.refobjid = m.owner);
