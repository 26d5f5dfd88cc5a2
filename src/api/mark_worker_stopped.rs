//! `pgflow.mark_worker_stopped(worker_id)`: a worker says goodbye.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::store::{self, workers};

/// Sets the worker's `stopped_at` to now. Nothing for an unknown worker.
#[pg_extern(sql = false)]
fn mark_worker_stopped(worker_id: Option<Uuid>) -> Result<(), ErrorReport> {
    Ok(store::connect(|| workers::mark_stopped(worker_id))?)
}
