//! `pgflow.cascade_complete_taskless_steps(run_id)`: completes steps that have nothing to run.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::engine::{advance, RunUpdate};
use crate::model::RunStatus;
use crate::store::{self, runs};

/// Completes the ready steps of a started run that have no task, and those that become so; returns how many. Steps
/// whose condition is not met, or comes up on the way, are left. Every verb of the engine does this by itself;
/// repeating it is harmless. Locks the run.
#[pg_extern(sql = false)]
fn cascade_complete_taskless_steps(run_id: Option<Uuid>) -> Result<i32, ErrorReport> {
    let Some(run_id) = run_id else { return Ok(0) };
    Ok(store::connect(|| {
        let Some(run) = runs::lock(run_id)?.filter(|run| run.status == RunStatus::Started) else {
            return Ok(0);
        };
        let mut update = RunUpdate::new(run);
        let mut ready = advance::cleared(&update)?;
        ready.retain(|step| step.tasks == 0);
        let result = advance::complete_taskless(&mut update, ready)?;
        update.save()?;
        Ok(result.completed)
    })?)
}
