//! `pgflow.requeue_stalled_tasks()`: takes back tasks whose worker is gone.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::PgLogLevel;

use crate::model::QueueName;
use crate::queue;
use crate::store::{self, step_tasks};

/// A task is stalled this many seconds after its timeout.
const GRACE_SECONDS: i32 = 30;
/// How often a task is queued again before it counts as permanently stalled.
const MOST_REQUEUES: i32 = 3;

/// Queues stalled tasks again, visible at once, up to three times each; after that marks them permanently stalled
/// and archives their message. Returns how many were queued. Attempts stay counted. Rows that others have locked are
/// passed over until the next call; so are tasks whose queue does not exist, with a WARNING for each queue. Security
/// definer. Locks tasks in key order, then queue rows.
#[pg_extern(sql = false)]
fn requeue_stalled_tasks() -> Result<i32, ErrorReport> {
    Ok(store::connect(|| {
        let missing = queue::missing(step_tasks::queues_of_stalled(GRACE_SECONDS)?)?;
        missing.iter().for_each(warn_missing);
        let recovered = step_tasks::recover_stalled(GRACE_SECONDS, MOST_REQUEUES, &missing)?;
        queue::show(recovered.requeued)?;
        queue::archive(recovered.given_up)?;
        Ok(recovered.requeued_count)
    })?)
}

fn warn_missing(queue: &QueueName) {
    let message = format!("queue \"{}\" does not exist", queue.as_str());
    ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, function_name!())
        .set_detail("Stalled tasks that were sent to it are left as they are.")
        .set_hint("Report on the tasks with complete_task or fail_task; pgflow.stalled shows them.")
        .report(PgLogLevel::WARNING);
}
