-- How far are the latest runs?
select flow_slug, status, completed_steps, total_steps, completed_tasks, total_tasks, duration
from pgflow.run_progress order by started_at desc limit 3;

-- The steps of the run above, and its picture as a Mermaid graph, which GitHub and https://mermaid.live draw.
select step_slug, status, completed_tasks, total_tasks, retries_count, duration
from pgflow.step_progress where run_id = :'run' order by step_index;
select pgflow.run_graph(:'run') \g (format=unaligned tuples_only=on)

-- Start a run of your own. The demo's workers have ended: what is stuck, why, and how full is the queue?
select run_id as mine from pgflow.start_flow('wordcount', '{"folder": "/usr/share/common-licenses"}') \gset
select step_slug, reason, stalled_tasks, detail from pgflow.stalled where run_id = :'mine';
select queue_name, queue_length, oldest_msg_age_sec, unfinished_tasks, live_workers from pgflow.queue_depth('wordcount');

-- Be the worker: read messages, claim their tasks, report a result. The list of files has one, so the map gets one task.
select run_id, step_slug, task_index, flow_input
from pgflow.start_tasks('wordcount', array(select msg_id from pgmq.read('wordcount', 5, 10)), null);
select status from pgflow.complete_task(:'mine', 'files', 0, '["/usr/share/common-licenses/GPL-3"]');

-- What your run does now, and what each step waits for. The workers of the next `make demo` go on with it.
select step_slug, status, queued_tasks, total_tasks, waits_for
from pgflow.step_progress where run_id = :'mine' order by step_index;
