//! How a worker's report about a task is taken.

use crate::datum::Row;
use crate::error::Error;
use crate::model::TaskKey;
use crate::queue;
use crate::rules::callback::is_late;
use crate::store::step_tasks::{self, ReportedTask};

/// Locks run and step state and has `accept` act on the report, unless it comes too late: then only the message is
/// archived. `accept` gives the row it changed, or none when the task is not started any more. Returns the task's row
/// in every case, none for a task that does not exist.
pub fn take(
    key: TaskKey,
    accept: impl FnOnce(ReportedTask) -> Result<Option<Row>, Error>,
) -> Result<Option<Row>, Error> {
    let Some(task) = step_tasks::lock_for_report(key)? else {
        return Ok(None);
    };
    let changed = if is_late(task.run.status, task.step_status) {
        queue::archive(task.message.into_iter().collect())?;
        None
    } else {
        accept(task)?
    };
    changed.map_or_else(|| step_tasks::row(key), |row| Ok(Some(row)))
}
