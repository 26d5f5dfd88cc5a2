//! `pgflow.fail_task(run_id, step_slug, task_index, error_message)`: a worker reports a failed attempt.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::datum::Row;
use crate::engine::{advance, failure, report, skip, RunUpdate};
use crate::error::Error;
use crate::model::{Mode, TaskKey};
use crate::queue;
use crate::rules::retry;
use crate::store;
use crate::store::step_states;
use crate::store::step_tasks::{self, ReportedTask};

/// Gives a started task back for another attempt, or, when its attempts are used up, fails it and does what the
/// step's `when_exhausted` says.
///
/// Returns the task's row in every case, none for a task that does not exist. Late and repeated reports are taken
/// as in complete_task. The next attempt is visible after `base_delay * 2^attempts` seconds. Error 55000 when the
/// message of a task to retry is not in its queue any more. Locks run, step state, tasks, then queue rows.
#[pg_extern(sql = false)]
fn fail_task(
    run_id: Option<Uuid>,
    step_slug: Option<&str>,
    task_index: Option<i32>,
    error_message: Option<&str>,
) -> Result<SetOfIterator<'static, Row>, ErrorReport> {
    let Some(key) = TaskKey::new(run_id, step_slug, task_index) else {
        return Ok(SetOfIterator::empty());
    };
    let accept = |task: ReportedTask| {
        if task.attempts_count < task.max_attempts {
            try_again(key, task, error_message)
        } else {
            give_up(key, task, error_message)
        }
    };
    Ok(SetOfIterator::new(store::connect(|| {
        report::take(key, accept)
    })?))
}

fn try_again(
    key: TaskKey,
    task: ReportedTask,
    error_message: Option<&str>,
) -> Result<Option<Row>, Error> {
    let Some(row) = step_tasks::retry(key, task.attempts_count, error_message)? else {
        return Ok(None);
    };
    if let Some(message) = task.message {
        let delay = retry::delay(task.base_delay, task.attempts_count);
        if !queue::set_visibility(&message, delay)? && !task.permanently_stalled {
            return Err(Error::MessagesVanished {
                queue: message.queue.as_str().into(),
                ids: vec![message.id],
            });
        }
    }
    Ok(Some(row))
}

fn give_up(
    key: TaskKey,
    task: ReportedTask,
    error_message: Option<&str>,
) -> Result<Option<Row>, Error> {
    step_tasks::lock_unfinished_of_run(key.run_id)?;
    let Some(row) = step_tasks::fail(key, error_message, None)? else {
        return Ok(None);
    };
    let mut update = RunUpdate::new(task.run);
    update.retire(task.message);
    match task.when_exhausted {
        Mode::Fail => failure::by_handler(&mut update, key.step_slug, error_message)?,
        Mode::Skip => {
            skip::exhausted(&mut update, key.step_slug, error_message)?;
            let ready = step_states::release_dependents(&update.run, &[key.step_slug])?;
            advance::advance(&mut update, ready.into())?;
        }
        Mode::SkipCascade => {
            skip::exhausted(&mut update, key.step_slug, error_message)?;
            skip::cascade(&mut update, &[key.step_slug], None)?;
        }
    }
    update.finish()?;
    Ok(Some(row))
}
