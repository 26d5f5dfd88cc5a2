//! `pgflow.step_tasks`.
//!
//! Claiming and requeueing touch tasks without the run's lock, so every change here is guarded by the status it
//! leaves. Several tasks are always locked in the order of their primary key.

mod claim;
mod recover;
mod report;
mod unfinished;

pub use claim::{claim, inputs, unclaimable, ClaimedTask, StepInput};
pub use recover::{queues_of_stalled, recover_stalled};
pub use report::{
    complete, complete_many, fail, lock_for_report, lock_started, retry, rows, BatchTask,
    ReportedTask,
};
pub use unfinished::by_queue;

use pgrx::Uuid;

use crate::datum::Row;
use crate::db::{param, Record, Rows, Statement};
use crate::error::Error;
use crate::model::{MessageRef, QueueName, StartedStep, TaskKey, TaskStatus};

/// Two columns from `first` on: queue_name, message_id. None for a task that has no message.
fn message(record: &Record, first: i32) -> Result<Option<MessageRef>, Error> {
    let queue = QueueName::stored(record.get(first)?);
    Ok(record
        .nullable(first + 1)
        .map(|id| MessageRef { queue, id }))
}

fn messages(rows: &Rows) -> Result<Vec<MessageRef>, Error> {
    Ok(rows
        .collect(|record| message(record, 1))?
        .into_iter()
        .flatten()
        .collect())
}

/// The message of a task, without locking anything.
pub fn message_of(key: TaskKey) -> Result<Option<MessageRef>, Error> {
    static SELECT: Statement = Statement::new(
        "select t.queue_name, t.message_id from pgflow.step_tasks t
         where t.run_id = $1 and t.step_slug = $2 and t.task_index = $3",
    );
    let rows = SELECT.rows(&[
        param(key.run_id),
        param(key.step_slug),
        param(key.task_index),
    ])?;
    Ok(messages(&rows)?.pop())
}

pub fn row(key: TaskKey) -> Result<Option<Row>, Error> {
    static SELECT: Statement = Statement::new(
        "select t from pgflow.step_tasks t where t.run_id = $1 and t.step_slug = $2 and t.task_index = $3",
    );
    let params = [
        param(key.run_id),
        param(key.step_slug),
        param(key.task_index),
    ];
    Ok(SELECT.row(&params)?.and_then(|record| record.keep(1)))
}

/// Creates the tasks of started steps that share a queue: `ids` are their messages, step by step in the order
/// given, within a step by task_index. Each task keeps the queue as its snapshot.
pub fn insert(queue: &QueueName, steps: &[&StartedStep], ids: Vec<i64>) -> Result<(), Error> {
    static INSERT_ONE: Statement = Statement::new(
        "insert into pgflow.step_tasks (flow_slug, run_id, step_slug, message_id, queue_name)
         values ($1, $2, $3, $4, $5)",
    );
    static INSERT: Statement = Statement::new(
        "insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, message_id, queue_name)
         select k.flow_slug, k.run_id, k.step_slug, i.task_index, ($6)[k.before + i.task_index + 1], $5
         from unnest($1, $2, $3, $4, $7) as k (flow_slug, run_id, step_slug, tasks, before)
         cross join lateral generate_series(0, k.tasks - 1) as i (task_index)",
    );
    if let ([step], [id]) = (steps, &ids[..]) {
        return INSERT_ONE.run(&[
            param(step.flow_slug.as_str()),
            param(step.run_id),
            param(step.step_slug.as_str()),
            param(*id),
            param(queue.as_str()),
        ]);
    }
    let before = steps.iter().scan(0, |total, step| {
        let before = *total;
        *total += step.tasks;
        Some(before)
    });
    let before: Vec<i32> = before.collect();
    let texts =
        |of: fn(&StartedStep) -> &str| steps.iter().map(|step| of(step)).collect::<Vec<_>>();
    INSERT.run(&[
        param(texts(|step| &step.flow_slug)),
        param(steps.iter().map(|step| step.run_id).collect::<Vec<_>>()),
        param(texts(|step| &step.step_slug)),
        param(steps.iter().map(|step| step.tasks).collect::<Vec<_>>()),
        param(queue.as_str()),
        param(ids),
        param(before),
    ])
}

/// Locks the unfinished tasks of a run in key order, before one of them is failed and the others follow.
pub fn lock_unfinished_of_run(run_id: Uuid) -> Result<(), Error> {
    static LOCK: Statement = Statement::new(
        "select from pgflow.step_tasks t
         where t.run_id = $1 and t.status in ('queued', 'started')
         order by t.step_slug, t.task_index
         for no key update",
    );
    LOCK.run(&[param(run_id)])
}

/// Ends the unfinished tasks of a run, or of some of its steps, without a result; returns their messages.
pub fn end_unfinished(
    run_id: Uuid,
    steps: Option<&[&str]>,
    status: TaskStatus,
) -> Result<Vec<MessageRef>, Error> {
    static UPDATE: Statement = Statement::new(
        "with locked as materialized (
           select t.step_slug, t.task_index
           from pgflow.step_tasks t
           where t.run_id = $1 and ($2 is null or t.step_slug = any($2)) and t.status in ('queued', 'started')
           order by t.step_slug, t.task_index
           for no key update of t
         )
         update pgflow.step_tasks t set status = $3
         from locked k
         where t.run_id = $1 and t.step_slug = k.step_slug and t.task_index = k.task_index
         returning t.queue_name, t.message_id",
    );
    messages(&UPDATE.rows(&[
        param(run_id),
        param(steps.map(<[&str]>::to_vec)),
        param(status.to_string()),
    ])?)
}

/// Locks the unfinished tasks of a flow against claims and recovery.
pub fn lock_unfinished_of_flow(flow_slug: &str) -> Result<(), Error> {
    static LOCK: Statement = Statement::new(
        "select from pgflow.step_tasks t
         where t.flow_slug = $1 and t.status in ('queued', 'started')
         order by t.run_id, t.step_slug, t.task_index
         for update",
    );
    LOCK.run(&[param(flow_slug)])
}
