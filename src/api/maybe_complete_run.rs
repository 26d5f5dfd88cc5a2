//! `pgflow.maybe_complete_run(run_id)`: completes a run whose steps have all ended.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::engine::RunUpdate;
use crate::model::RunStatus;
use crate::store::{self, runs};

/// Completes a started run with no step remaining: its output becomes the object of the outputs of completed steps
/// that nothing depends on. Nothing otherwise. Every verb of the engine does this by itself. Locks the run.
#[pg_extern(sql = false)]
fn maybe_complete_run(run_id: Option<Uuid>) -> Result<(), ErrorReport> {
    let Some(run_id) = run_id else { return Ok(()) };
    Ok(store::connect(|| {
        match runs::lock(run_id)?.filter(|run| run.status == RunStatus::Started) {
            Some(run) => RunUpdate::new(run).finish(),
            None => Ok(()),
        }
    })?)
}
