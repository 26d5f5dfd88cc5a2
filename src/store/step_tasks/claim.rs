//! How tasks are claimed, and what a worker gets with them.

use pgrx::Uuid;

use crate::datum::Jsonb;
use crate::db::{param, Statement};
use crate::error::Error;
use crate::model::{QueueName, StepType};

/// A task that this transaction has claimed.
pub struct ClaimedTask {
    pub run_id: Uuid,
    pub step_slug: String,
    pub task_index: i32,
    pub message_id: i64,
    /// Effective timeout of its step, in seconds.
    pub timeout: i32,
}

/// Claims the queued tasks behind messages of one queue that belong to this flow, in started steps of started
/// runs. Whoever ends a run or a step moves its tasks out of queued in the same transaction, so the guard on the
/// task's own row decides.
pub fn claim(
    queue: &QueueName,
    flow_slug: &str,
    ids: &[i64],
    worker_id: Option<Uuid>,
) -> Result<Vec<ClaimedTask>, Error> {
    static UPDATE: Statement = Statement::new(
        "with locked as materialized (
           select t.run_id, t.step_slug, t.task_index
           from pgflow.step_tasks t
           where t.queue_name = $1 and t.message_id = any($2) and t.flow_slug = $3 and t.status = 'queued'
             and exists (select from pgflow.runs r where r.run_id = t.run_id and r.status = 'started')
             and exists (select from pgflow.step_states s
                         where s.run_id = t.run_id and s.step_slug = t.step_slug and s.status = 'started')
           order by t.run_id, t.step_slug, t.task_index
           for no key update of t
         )
         update pgflow.step_tasks t
         set status = 'started', attempts_count = t.attempts_count + 1, last_worker_id = $4,
             started_at = greatest(clock_timestamp(), t.queued_at)
         from locked k
         join pgflow.steps d on d.flow_slug = $3 and d.step_slug = k.step_slug
         join pgflow.flows f on f.flow_slug = $3
         where t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
           and t.status = 'queued'
         returning t.run_id, t.step_slug, t.task_index, t.message_id, coalesce(d.opt_timeout, f.opt_timeout)",
    );
    UPDATE
        .rows(&[
            param(queue.as_str()),
            param(ids.to_vec()),
            param(flow_slug),
            param(worker_id),
        ])?
        .collect(|record| {
            Ok(ClaimedTask {
                run_id: record.get(1)?,
                step_slug: record.get(2)?,
                task_index: record.get(3)?,
                message_id: record.get(4)?,
                timeout: record.get(5)?,
            })
        })
}

/// Of the given messages of a queue: those without a task, and those whose task is of another flow.
pub fn unclaimable(
    queue: &QueueName,
    flow_slug: &str,
    ids: &[i64],
) -> Result<(Vec<i64>, Vec<i64>), Error> {
    static SELECT: Statement = Statement::new(
        "select coalesce(array_agg(k.id order by k.id) filter (where t.flow_slug is null), '{}'),
                coalesce(array_agg(k.id order by k.id) filter (where t.flow_slug <> $2), '{}')
         from unnest($3) as k (id)
         left join pgflow.step_tasks t on t.queue_name = $1 and t.message_id = k.id",
    );
    match SELECT.row(&[param(queue.as_str()), param(flow_slug), param(ids.to_vec())])? {
        Some(record) => Ok((record.get(1)?, record.get(2)?)),
        None => Ok((Vec::new(), Vec::new())),
    }
}

/// What the tasks of one step of one run get as input.
pub struct StepInput {
    /// A single step's task gets `input` whole; each task of a map its element of it.
    pub step_type: StepType,
    pub input: Option<Jsonb>,
    /// The run input, for a root single step.
    pub flow_input: Option<Jsonb>,
}

/// Inputs of steps, in the order given. An array to map over comes as it is stored, not detoasted.
pub fn inputs(run_ids: Vec<Uuid>, step_slugs: Vec<&str>) -> Result<Vec<StepInput>, Error> {
    static SELECT: Statement = Statement::new(
        "select d.step_type,
                case when d.step_type = 'map' and d.deps_count = 0 then r.input
                     when d.step_type = 'map' then (
                       select p.output
                       from pgflow.deps e
                       join pgflow.step_states p on p.run_id = r.run_id and p.step_slug = e.dep_slug
                       where e.flow_slug = d.flow_slug and e.step_slug = d.step_slug)
                     when d.deps_count = 0 then '{}'::jsonb
                     else (
                       select coalesce(jsonb_object_agg(p.step_slug, p.output), '{}')
                       from pgflow.deps e
                       join pgflow.step_states p on p.run_id = r.run_id and p.step_slug = e.dep_slug
                       where e.flow_slug = d.flow_slug and e.step_slug = d.step_slug and p.status = 'completed')
                end,
                case when d.step_type = 'single' and d.deps_count = 0 then r.input end
         from unnest($1, $2) with ordinality as k (run_id, step_slug, position)
         join pgflow.runs r on r.run_id = k.run_id
         join pgflow.steps d on d.flow_slug = r.flow_slug and d.step_slug = k.step_slug
         order by k.position",
    );
    SELECT
        .rows(&[param(run_ids), param(step_slugs)])?
        .collect(|record| {
            Ok(StepInput {
                step_type: record.get::<String>(1)?.parse()?,
                input: record.keep(2),
                flow_input: record.keep(3),
            })
        })
}
