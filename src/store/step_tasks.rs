//! `pgflow.step_tasks`.
//!
//! Claiming and requeueing touch tasks without the run's lock, so every change here is guarded by the status it
//! leaves. Several tasks are always locked in the order of their primary key.

use pgrx::Uuid;

use crate::datum::{Jsonb, Row};
use crate::db::{param, Record, Rows, Statement};
use crate::error::Error;
use crate::model::{MessageRef, Mode, QueueName, StepStatus, StepType, TaskKey, TaskStatus};
use crate::store::runs::LockedRun;
use crate::store::step_states::StartedStep;

/// A reported task, with its run and step state locked in that order. The task itself is not locked yet: the guard
/// of the UPDATE that takes the report decides whether it still is being worked on.
pub struct ReportedTask {
    pub run: LockedRun,
    pub step_status: StepStatus,
    pub step_type: StepType,
    pub remaining_tasks: Option<i32>,
    pub attempts_count: i32,
    pub max_attempts: i32,
    pub base_delay: i32,
    pub when_exhausted: Mode,
    /// None for a task without message, and for one that stalled for good: its message is archived already.
    pub message: Option<MessageRef>,
}

/// Locks run and step state of a task. None when there is no such task.
pub fn lock_for_report(key: TaskKey) -> Result<Option<ReportedTask>, Error> {
    static LOCK: Statement = Statement::new(
        "select r.run_id, r.flow_slug, r.status, r.remaining_steps, s.status, d.step_type, s.remaining_tasks,
                t.attempts_count, coalesce(d.opt_max_attempts, f.opt_max_attempts),
                coalesce(d.opt_base_delay, f.opt_base_delay), d.when_exhausted, t.queue_name,
                case when t.permanently_stalled_at is null then t.message_id end
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
        })
    })
    .transpose()
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
pub fn insert(
    run: &LockedRun,
    steps: &[&StartedStep],
    queue: &QueueName,
    ids: Vec<i64>,
) -> Result<(), Error> {
    static INSERT: Statement = Statement::new(
        "insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, message_id, queue_name)
         select $1, $2, k.step_slug, i.task_index, ($6)[k.before + i.task_index + 1], $5
         from unnest($3, $4, $7) as k (step_slug, tasks, before)
         cross join lateral generate_series(0, k.tasks - 1) as i (task_index)",
    );
    let before = steps.iter().scan(0, |total, step| {
        let before = *total;
        *total += step.tasks;
        Some(before)
    });
    INSERT.run(&[
        param(run.flow_slug.as_str()),
        param(run.run_id),
        param(
            steps
                .iter()
                .map(|step| step.step_slug.as_str())
                .collect::<Vec<_>>(),
        ),
        param(steps.iter().map(|step| step.tasks).collect::<Vec<_>>()),
        param(queue.as_str()),
        param(ids),
        param(before.collect::<Vec<i32>>()),
    ])
}

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

/// What became of stalled tasks.
pub struct Recovered {
    /// How many were queued again, and the messages of those that have one.
    pub requeued_count: i32,
    pub requeued: Vec<MessageRef>,
    /// Messages of tasks that stalled too often.
    pub given_up: Vec<MessageRef>,
}

/// Queues stalled tasks again, up to `most` times each, or marks them permanently stalled. Rows that others have
/// locked are passed over: whoever holds them is about to decide.
pub fn recover_stalled(grace_seconds: i32, most: i32) -> Result<Recovered, Error> {
    static UPDATE: Statement = Statement::new(
        "with stalled as materialized (
           select t.run_id, t.step_slug, t.task_index, t.requeued_count < $2 as again
           from pgflow.step_tasks t
           join pgflow.runs r on r.run_id = t.run_id
           join pgflow.step_states s on s.run_id = t.run_id and s.step_slug = t.step_slug
           join pgflow.steps d on d.flow_slug = t.flow_slug and d.step_slug = t.step_slug
           join pgflow.flows f on f.flow_slug = t.flow_slug
           where t.status = 'started' and t.permanently_stalled_at is null
             and r.status = 'started' and s.status = 'started'
             and t.started_at < statement_timestamp() - make_interval(secs => $1)
             and t.started_at < statement_timestamp()
                 - make_interval(secs => coalesce(d.opt_timeout, f.opt_timeout)::double precision + $1)
           order by t.run_id, t.step_slug, t.task_index
           for no key update of t skip locked
         )
         update pgflow.step_tasks t
         set status = case when k.again then 'queued' else t.status end,
             started_at = case when k.again then null else t.started_at end,
             last_worker_id = case when k.again then null else t.last_worker_id end,
             requeued_count = t.requeued_count + k.again::integer,
             last_requeued_at = case when k.again then clock_timestamp() else t.last_requeued_at end,
             permanently_stalled_at = case when k.again then null else clock_timestamp() end
         from stalled k
         where t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
         returning t.queue_name, t.message_id, k.again",
    );
    let mut recovered = Recovered {
        requeued_count: 0,
        requeued: Vec::new(),
        given_up: Vec::new(),
    };
    for record in UPDATE.rows(&[param(grace_seconds), param(most)])?.iter() {
        let message = message(&record, 1)?;
        if record.get(3)? {
            recovered.requeued_count += 1;
            recovered.requeued.extend(message);
        } else {
            recovered.given_up.extend(message);
        }
    }
    Ok(recovered)
}
