-- What came of the run :run, as tables. Times are seconds since the run started.

\set QUIET on
\pset pager off
\pset footer off
\pset linestyle unicode
\pset border 2

\pset title 'The report, which is the output of the run'
select line.*
from pgflow.runs
cross join jsonb_to_recordset(output -> 'report')
  as line (rank int, top_word text, times int, longest_word text, letters int, file text)
where run_id = :'run'
order by rank;

\pset title 'The workers, with the tasks that overlapped those of another worker'
select function_name as worker, count(*) as tasks,
  count(*) filter (where exists (
    select from pgflow.step_tasks as other
    where other.run_id = task.run_id and other.last_worker_id <> task.last_worker_id
      and other.started_at < task.completed_at and other.completed_at > task.started_at
  )) as overlapping,
  round(extract(epoch from min(task.started_at) - run.started_at), 2) as first_claimed,
  round(extract(epoch from max(task.completed_at) - run.started_at), 2) as last_completed
from pgflow.runs as run
join pgflow.step_tasks as task using (run_id)
join pgflow.workers on worker_id = last_worker_id
where run_id = :'run' and task.status = 'completed'
group by worker_id, run.run_id
order by worker;

\pset title 'The retried tasks, with the error of the attempt before'
select step_slug as step, task_index as task, attempts_count as attempts, error_message as error,
  round(extract(epoch from task.started_at - run.started_at), 2) as claimed,
  round(extract(epoch from task.completed_at - run.started_at), 2) as completed
from pgflow.runs as run
join pgflow.step_tasks as task using (run_id)
where run_id = :'run' and attempts_count > 1
order by step, task;
