//! `pgflow._archive_task_message(run_id, step_slug, task_index)`: puts a task's message away.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::model::TaskKey;
use crate::queue;
use crate::store::{self, step_tasks};

/// Archives the task's message through its stored queue. Nothing for a task that is unknown or has no message, or a
/// message that is not in the queue. Locks the queue row.
#[pg_extern(sql = false)]
fn _archive_task_message(
    p_run_id: Option<Uuid>,
    p_step_slug: Option<&str>,
    p_task_index: Option<i32>,
) -> Result<(), ErrorReport> {
    let Some(key) = TaskKey::new(p_run_id, p_step_slug, p_task_index) else {
        return Ok(());
    };
    Ok(store::connect(|| {
        queue::archive(step_tasks::message_of(key)?.into_iter().collect())
    })?)
}
