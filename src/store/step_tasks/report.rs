//! What a worker's report does to its task.

use pgrx::Uuid;

use super::message;
use crate::datum::{Jsonb, Row};
use crate::db::{param, Param, Statement};
use crate::error::Error;
use crate::model::{MessageRef, Mode, StepStatus, StepType, TaskKey};
use crate::store::runs::LockedRun;

/// A reported task, with its run and step state locked in that order. The task itself is not locked yet: the guard
/// of the UPDATE that takes the report decides whether it still is being worked on.
pub struct ReportedTask {
    pub run: LockedRun,
    pub step_status: StepStatus,
    pub step_type: StepType,
    pub remaining_tasks: Option<i32>,
    pub initial_tasks: Option<i32>,
    pub attempts_count: i32,
    pub max_attempts: i32,
    pub base_delay: i32,
    pub when_exhausted: Mode,
    /// None for a task without message.
    pub message: Option<MessageRef>,
    /// It stalled too often: its message should be archived already.
    pub permanently_stalled: bool,
}

/// Locks run and step state of a task. None when there is no such task.
pub fn lock_for_report(key: TaskKey) -> Result<Option<ReportedTask>, Error> {
    static LOCK: Statement = Statement::new(
        "select r.run_id, r.flow_slug, r.status, r.remaining_steps, s.status, d.step_type, s.remaining_tasks,
                t.attempts_count, coalesce(d.opt_max_attempts, f.opt_max_attempts),
                coalesce(d.opt_base_delay, f.opt_base_delay), d.when_exhausted, t.queue_name, t.message_id,
                t.permanently_stalled_at is not null, s.initial_tasks
         from pgflow.runs r
         join pgflow.step_states s on s.run_id = r.run_id and s.step_slug = $2
         join pgflow.step_tasks t on t.run_id = r.run_id and t.step_slug = $2 and t.task_index = $3
         join pgflow.steps d on d.flow_slug = r.flow_slug and d.step_slug = $2
         join pgflow.flows f on f.flow_slug = r.flow_slug
         where r.run_id = $1
         for no key update of r, s",
    );
    LOCK.row(&[
        param(key.run_id),
        param(key.step_slug),
        param(key.task_index),
    ])?
    .map(|record| {
        Ok(ReportedTask {
            run: LockedRun::from_record(&record)?,
            step_status: record.get::<String>(5)?.parse()?,
            step_type: record.get::<String>(6)?.parse()?,
            remaining_tasks: record.nullable(7),
            attempts_count: record.get(8)?,
            max_attempts: record.get(9)?,
            base_delay: record.get(10)?,
            when_exhausted: record.get::<String>(11)?.parse()?,
            message: message(&record, 12)?,
            permanently_stalled: record.get(14)?,
            initial_tasks: record.nullable(15),
        })
    })
    .transpose()
}

/// A task of a batch of reports, and its step as it is under the run's lock.
pub struct BatchTask {
    /// Which of the given keys it is of.
    pub position: usize,
    pub run_id: Uuid,
    pub step_status: StepStatus,
    pub step_type: StepType,
    pub remaining_tasks: Option<i32>,
    pub initial_tasks: Option<i32>,
    /// The task is started, and locked. Others are not locked: a report does nothing to them, and a claim may want them.
    pub is_started: bool,
    pub message: Option<MessageRef>,
}

/// Locks those of the tasks that are started, by key, after their runs: under a run's lock its step states do not
/// change. All tasks, in the order given: one that is given twice comes twice, one that does not exist not at all.
pub fn lock_started(keys: &[TaskKey]) -> Result<Vec<BatchTask>, Error> {
    static LOCK: Statement = Statement::new(
        "with started as materialized (
           select t.run_id, t.step_slug, t.task_index
           from unnest($1, $2, $3) as k (run_id, step_slug, task_index)
           join pgflow.step_tasks t on t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
           where t.status = 'started'
           order by t.run_id, t.step_slug, t.task_index
           for no key update of t
         )
         select k.position, t.run_id, s.status, d.step_type, s.remaining_tasks, s.initial_tasks,
                (t.run_id, t.step_slug, t.task_index) in (select run_id, step_slug, task_index from started),
                t.queue_name, t.message_id
         from unnest($1, $2, $3) with ordinality as k (run_id, step_slug, task_index, position)
         join pgflow.step_tasks t on t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
         join pgflow.step_states s on s.run_id = t.run_id and s.step_slug = t.step_slug
         join pgflow.steps d on d.flow_slug = t.flow_slug and d.step_slug = t.step_slug
         order by k.position",
    );
    LOCK.rows(&key_params(keys))?.collect(|record| {
        Ok(BatchTask {
            position: record.get::<i64>(1)? as usize - 1,
            run_id: record.get(2)?,
            step_status: record.get::<String>(3)?.parse()?,
            step_type: record.get::<String>(4)?.parse()?,
            remaining_tasks: record.nullable(5),
            initial_tasks: record.nullable(6),
            is_started: record.get(7)?,
            message: message(record, 8)?,
        })
    })
}

fn key_params(keys: &[TaskKey]) -> [Param; 3] {
    [
        param(keys.iter().map(|key| key.run_id).collect::<Vec<_>>()),
        param(keys.iter().map(|key| key.step_slug).collect::<Vec<_>>()),
        param(keys.iter().map(|key| key.task_index).collect::<Vec<_>>()),
    ]
}

/// Rows of tasks, in the order given; none for one that does not exist.
pub fn rows(keys: &[TaskKey]) -> Result<Vec<Row>, Error> {
    static SELECT: Statement = Statement::new(
        "select t
         from unnest($1, $2, $3) with ordinality as k (run_id, step_slug, task_index, position)
         join pgflow.step_tasks t on t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
         order by k.position",
    );
    let rows = SELECT.rows(&key_params(keys))?;
    Ok(rows.iter().filter_map(|record| record.keep(1)).collect())
}

/// Completes locked tasks that are started.
pub fn complete_many(keys: &[TaskKey], outputs: Vec<Option<Jsonb>>) -> Result<(), Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_tasks t
         set status = 'completed', output = k.output,
             completed_at = greatest(clock_timestamp(), t.started_at, t.queued_at)
         from unnest($1, $2, $3, $4) as k (run_id, step_slug, task_index, output)
         where t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
           and t.status = 'started'",
    );
    let [run_ids, step_slugs, task_indexes] = key_params(keys);
    UPDATE.run(&[run_ids, step_slugs, task_indexes, param(outputs)])
}

/// Completes a started task; its row, or none when it is not started.
pub fn complete(key: TaskKey, output: Option<Jsonb>) -> Result<Option<Row>, Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_tasks t
         set status = 'completed', output = $4,
             completed_at = greatest(clock_timestamp(), t.started_at, t.queued_at)
         where t.run_id = $1 and t.step_slug = $2 and t.task_index = $3 and t.status = 'started'
         returning t",
    );
    let params = [
        param(key.run_id),
        param(key.step_slug),
        param(key.task_index),
        param(output),
    ];
    Ok(UPDATE.row(&params)?.and_then(|record| record.keep(1)))
}

/// Puts a started task back for another attempt; the attempt that failed stays counted. Its row, or none when the
/// task is not in that attempt any more.
pub fn retry(
    key: TaskKey,
    attempts_count: i32,
    error_message: Option<&str>,
) -> Result<Option<Row>, Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_tasks t set status = 'queued', started_at = null, error_message = $5
         where t.run_id = $1 and t.step_slug = $2 and t.task_index = $3 and t.status = 'started'
           and t.attempts_count = $4
         returning t",
    );
    let params = [
        param(key.run_id),
        param(key.step_slug),
        param(key.task_index),
        param(attempts_count),
        param(error_message),
    ];
    Ok(UPDATE.row(&params)?.and_then(|record| record.keep(1)))
}

/// Fails a started task; `output` is what it returned, when that is what was wrong. Its row, or none when it is not
/// started.
pub fn fail(
    key: TaskKey,
    error_message: Option<&str>,
    output: Option<Jsonb>,
) -> Result<Option<Row>, Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_tasks t
         set status = 'failed', error_message = $4, output = $5,
             failed_at = greatest(clock_timestamp(), t.started_at, t.queued_at)
         where t.run_id = $1 and t.step_slug = $2 and t.task_index = $3 and t.status = 'started'
         returning t",
    );
    let params = [
        param(key.run_id),
        param(key.step_slug),
        param(key.task_index),
        param(error_message),
        param(output),
    ];
    Ok(UPDATE.row(&params)?.and_then(|record| record.keep(1)))
}
