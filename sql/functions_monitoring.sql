-- Monitoring: queues as PGMQ measures them, and pictures of flows and runs. All run with the caller's rights. The views
-- are in views.sql; docs/monitoring.md has both.

create or replace function pgflow.queue_depth(flow_slug text default null)
returns table (
  flow_slug             text,
  queue_name            text,
  queue_length          bigint,
  queue_visible_length  bigint,
  oldest_msg_age_sec    integer,
  newest_msg_age_sec    integer,
  total_messages        bigint,
  unfinished_tasks      bigint,
  live_workers          bigint
)
language c
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'queue_depth_wrapper';

comment on function pgflow.queue_depth is
'Queues of a flow, or of all flows, as pgmq.metrics measures them, with the tasks that should be in them and the workers that poll them. NULL measures: PGMQ does not list the queue. No rows for an unknown flow. Error 42P01 when a listed queue''s table is gone.';

create or replace function pgflow.flow_graph(flow_slug text)
returns text
language c
stable
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'flow_graph_wrapper';

comment on function pgflow.flow_graph is
'Picture of a flow as Mermaid text: a node for each step, an edge for each dependency, maps with double sides, conditions in words. NULL for an unknown flow.';

create or replace function pgflow.run_graph(run_id uuid)
returns text
language c
stable
set search_path to pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'run_graph_wrapper';

comment on function pgflow.run_graph is
'Picture of a run as Mermaid text: as flow_graph, with each step''s status as its colour and in words, its tasks, retries and time. NULL for an unknown run.';
