alter table pgflow.runs add column extra text
alter table pgflow.runs alter column status drop not null
alter table pgflow.runs alter column status set default 'completed'
alter table pgflow.runs alter column status drop default
alter table pgflow.runs alter column output type json using output::json
alter table pgflow.runs drop constraint status_is_valid
alter table pgflow.runs drop constraint status_is_valid, add constraint status_is_valid check (status in ('started', 'failed'))
alter table pgflow.runs add unique (flow_slug)
drop index pgflow.idx_runs_flow_slug
drop index pgflow.idx_runs_flow_slug; create index idx_runs_flow_slug on pgflow.runs (flow_slug) where status = 'started'
grant select on pgflow.runs to public
grant execute on function pgflow.requeue_stalled_tasks to public
revoke execute on function pgflow.start_flow from public
grant usage on schema pgflow to public
comment on table pgflow.runs is 'x'
comment on column pgflow.runs.output is null
comment on index pgflow.idx_flows_normalized_slug is 'x'
comment on function pgflow.start_flow is 'x'
comment on type pgflow.step_task_record is 'x'
comment on schema pgflow is 'x'
alter function pgflow.start_flow reset search_path
alter function pgflow.start_flow security definer
alter function pgflow.start_flow stable
alter function pgflow.start_flow strict
alter function pgflow.start_flow parallel safe
alter function pgflow.start_flow rows 7
alter extension pgflow drop function pgflow.start_flow(text, jsonb, uuid)
update pg_extension set extconfig = extconfig[1:7], extcondition = extcondition[1:7] where extname = 'pgflow'
create function pgflow.start_tasks(text) returns integer language sql as 'select 1'
delete from pg_init_privs where objoid = 'pgflow.requeue_stalled_tasks'::regproc
alter view pgflow.run_progress reset (security_invoker)
alter view pgflow.run_progress rename column duration to took
create or replace view pgflow.live_workers as select worker_id, queue_name, function_name, started_at, last_heartbeat_at from pgflow.workers
alter extension pgflow drop view pgflow.run_progress
grant select on pgflow.run_progress to public
comment on view pgflow.run_progress is 'x'
comment on column pgflow.run_progress.duration is null
