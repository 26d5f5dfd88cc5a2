//! `pgflow.start_tasks(flow_slug, msg_ids, worker_id, queue_name)`: a worker claims the tasks of messages it read.

use std::collections::BTreeMap;

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgLogLevel, Uuid};

use crate::datum::Jsonb;
use crate::error::Error;
use crate::model::{MessageRef, QueueName, StepType};
use crate::queue;
use crate::store;
use crate::store::step_tasks::{self, ClaimedTask, StepInput};

/// A message stays invisible for its step's timeout and this many seconds more.
const GRACE_SECONDS: i64 = 2;

type TaskRow = (
    Option<String>,
    Option<Uuid>,
    Option<String>,
    Option<Jsonb>,
    Option<i64>,
    Option<i32>,
    Option<Jsonb>,
);

/// Claims the queued tasks that belong to messages of one queue: started, attempt counted, message invisible for
/// the step's timeout + 2 s. Returns each claimed task with its input.
///
/// `queue_name` is the queue that was polled, in any spelling; NULL means `lower(flow_slug)`. Ids that repeat count
/// once; NULL or empty arrays give no rows. Messages without a task, or with a task of another flow, are left as
/// they are and named in a WARNING; tasks that are started or ended are passed over. Errors: 23503 a worker_id
/// that is not in pgflow.workers, 55000 a claimed message that is not in the queue any more (nothing is claimed
/// then). Locks tasks in key order, then queue rows.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity, reason = "pgrx wants the columns spelled out")]
fn start_tasks(
    flow_slug: Option<&str>,
    msg_ids: Option<Array<i64>>,
    worker_id: Option<Uuid>,
    queue_name: Option<&str>,
) -> Result<
    TableIterator<
        'static,
        (
            name!(flow_slug, Option<String>),
            name!(run_id, Option<Uuid>),
            name!(step_slug, Option<String>),
            name!(input, Option<Jsonb>),
            name!(msg_id, Option<i64>),
            name!(task_index, Option<i32>),
            name!(flow_input, Option<Jsonb>),
        ),
    >,
    ErrorReport,
> {
    let ids = distinct(msg_ids);
    let (Some(flow_slug), false) = (flow_slug, ids.is_empty()) else {
        return Ok(TableIterator::empty());
    };
    let queue = QueueName::normalized(queue_name.unwrap_or(flow_slug));
    let rows = store::connect(|| {
        let claimed = step_tasks::claim(&queue, flow_slug, &ids, worker_id)?;
        if claimed.len() < ids.len() {
            warn_unclaimable(&queue, flow_slug, &ids)?;
        }
        if claimed.is_empty() {
            return Ok(Vec::new());
        }
        hide(&queue, &claimed)?;
        with_inputs(flow_slug, claimed)
    })?;
    Ok(TableIterator::new(rows))
}

fn distinct(ids: Option<Array<i64>>) -> Vec<i64> {
    let mut ids: Vec<i64> = ids
        .map(|array| array.iter().flatten().collect())
        .unwrap_or_default();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// One WARNING for messages that no task knows, one for those of another flow.
fn warn_unclaimable(queue: &QueueName, flow_slug: &str, ids: &[i64]) -> Result<(), Error> {
    let (unknown, foreign) = step_tasks::unclaimable(queue, flow_slug, ids)?;
    if !unknown.is_empty() {
        warn(format!(
            "queue \"{}\" holds messages without a task: {}",
            queue.as_str(),
            listing(&unknown)
        ));
    }
    if !foreign.is_empty() {
        warn(format!(
            "queue \"{}\" holds messages whose task is not of flow \"{flow_slug}\": {}",
            queue.as_str(),
            listing(&foreign)
        ));
    }
    Ok(())
}

fn warn(message: String) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, function_name!())
        .set_detail("They were left untouched and come back when their visibility timeout ends.")
        .report(PgLogLevel::WARNING);
}

fn listing(ids: &[i64]) -> String {
    ids.iter()
        .map(i64::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Keeps claimed messages from other readers while their handlers run.
fn hide(queue: &QueueName, claimed: &[ClaimedTask]) -> Result<(), Error> {
    let seconds = |task: &ClaimedTask| {
        i32::try_from(i64::from(task.timeout) + GRACE_SECONDS).unwrap_or(i32::MAX)
    };
    let hidden = match claimed {
        [task] => {
            let message = MessageRef {
                queue: queue.clone(),
                id: task.message_id,
            };
            usize::from(queue::set_visibility(&message, seconds(task))?)
        }
        _ => {
            let ids = claimed.iter().map(|task| Some(task.message_id)).collect();
            queue::set_vt_batch(
                queue.as_str(),
                ids,
                claimed.iter().map(|task| Some(seconds(task))).collect(),
            )?
            .len()
        }
    };
    if hidden < claimed.len() {
        let ids = claimed.iter().map(|task| task.message_id).collect();
        return Err(Error::MessagesVanished {
            queue: queue.as_str().into(),
            ids,
        });
    }
    Ok(())
}

/// Gives each claimed task its input. What a step's tasks share is read once, a mapped array uncompressed once.
fn with_inputs(flow_slug: &str, claimed: Vec<ClaimedTask>) -> Result<Vec<TaskRow>, Error> {
    let mut steps: BTreeMap<(Uuid, &str), usize> = BTreeMap::new();
    for task in &claimed {
        let position = steps.len();
        steps
            .entry((task.run_id, &task.step_slug))
            .or_insert(position);
    }
    let mut keys: Vec<_> = steps
        .iter()
        .map(|(key, position)| (*position, *key))
        .collect();
    keys.sort_by_key(|(position, _)| *position);
    let (run_ids, step_slugs) = keys.into_iter().map(|(_, key)| key).unzip();
    let mut inputs = step_tasks::inputs(run_ids, step_slugs)?;
    for input in inputs
        .iter_mut()
        .filter(|input| input.step_type == StepType::Map)
    {
        input.input = input.input.map(Jsonb::detoasted);
    }
    claimed
        .iter()
        .map(|task| {
            let input = steps
                .get(&(task.run_id, task.step_slug.as_str()))
                .and_then(|position| inputs.get(*position))
                .ok_or(Error::Internal {
                    what: "a claimed task has no step",
                })?;
            Ok(task_row(flow_slug, task, input))
        })
        .collect()
}

fn task_row(flow_slug: &str, task: &ClaimedTask, step: &StepInput) -> TaskRow {
    let input = match step.step_type {
        StepType::Map => step.input.and_then(|array| array.element(task.task_index)),
        StepType::Single => step.input,
    };
    (
        Some(flow_slug.to_string()),
        Some(task.run_id),
        Some(task.step_slug.clone()),
        input,
        Some(task.message_id),
        Some(task.task_index),
        step.flow_input,
    )
}
