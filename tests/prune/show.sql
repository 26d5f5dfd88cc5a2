select 'run', right(run_id::text, 1), flow_slug, status from pgflow.runs order by 2;
select 'step', right(run_id::text, 1), step_slug, status from pgflow.step_states order by 2, 3;
select 'task', right(run_id::text, 1), step_slug, task_index, status, queue_name, message_id, right(last_worker_id::text, 1)
from pgflow.step_tasks order by run_id, step_slug, task_index;
select 'worker', right(worker_id::text, 1), function_name from pgflow.workers order by 2;
select 'flow', flow_slug from pgflow.flows order by flow_slug collate "C";
select format('select %L, msg_id from pgmq.%I order by msg_id', c.relname, c.relname)
from pg_class c where c.relnamespace = 'pgmq'::regnamespace and c.relkind = 'r' and c.relname ~ '^[aq]_' order by c.relname
\gexec
