//! `pgflow.requeue_stalled_tasks()`: takes back tasks whose worker is gone.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::queue;
use crate::store::{self, step_tasks};

/// A task is stalled this many seconds after its timeout.
const GRACE_SECONDS: i32 = 30;
/// How often a task is queued again before it counts as permanently stalled.
const MOST_REQUEUES: i32 = 3;

/// Queues stalled tasks again, visible at once, up to three times each; after that marks them permanently stalled
/// and archives their message. Returns how many were queued. Attempts stay counted. Rows that others have locked are
/// passed over until the next call. Security definer. Locks tasks in key order, then queue rows.
#[pg_extern(sql = false)]
fn requeue_stalled_tasks() -> Result<i32, ErrorReport> {
    Ok(store::connect(|| {
        let recovered = step_tasks::recover_stalled(GRACE_SECONDS, MOST_REQUEUES)?;
        queue::show(recovered.requeued)?;
        queue::archive(recovered.given_up)?;
        Ok(recovered.requeued_count)
    })?)
}
