-- What users have around a pgflow of their own: roles with grants, a pruning function, a trigger, a view, a cron job.
grant usage on schema pgflow to app_web, app_worker, app_cron;
grant execute on function pgflow.start_flow_with_states(text, jsonb, uuid) to app_web;
grant select on pgflow.flows, pgflow.steps to app_web;
grant select (run_id, status) on pgflow.runs to app_web;
revoke execute on function pgflow.start_tasks(text, bigint[], uuid) from public;
grant execute on function pgflow.start_tasks(text, bigint[], uuid) to app_worker with grant option;
revoke execute on function pgflow.delete_flow_and_data(text) from public;
grant execute on function pgflow.requeue_stalled_tasks() to app_cron;
grant usage on type pgflow.step_task_record to app_worker;

create function pgflow.prune_data_older_than(retention_interval interval) returns void language plpgsql as $$
begin
  raise notice 'kept as it is';
end $$;

create view pgflow.my_runs as select run_id, status from pgflow.runs;

create table public.changes (id bigint generated always as identity, what text);
create function public.note() returns trigger language plpgsql as $$
begin
  insert into public.changes (what) values (tg_op);
  return null;
end $$;
create trigger note after update on pgflow.step_tasks for each row execute function public.note();

create schema cron;
create table cron.job (jobid bigint generated always as identity, schedule text, command text, jobname text, username text);
insert into cron.job (schedule, command, jobname, username)
values ('15 seconds', 'select pgflow.requeue_stalled_tasks()', 'pgflow_requeue_stalled_tasks', current_user);
