//! `pgflow.start_ready_steps(run_id)`: starts what waits for nothing.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::engine::{advance, RunUpdate};
use crate::model::RunStatus;
use crate::store::{self, runs};

/// Starts the created steps of a started run that wait for no dependency, have tasks, and whose condition is
/// absent or met. Nothing for an unknown or ended run. Every verb of the engine does this by itself; repeating it
/// is harmless. Locks the run.
#[pg_extern(sql = false)]
fn start_ready_steps(run_id: Option<Uuid>) -> Result<(), ErrorReport> {
    let Some(run_id) = run_id else { return Ok(()) };
    Ok(store::connect(|| {
        let Some(run) = runs::lock(run_id)?.filter(|run| run.status == RunStatus::Started) else {
            return Ok(());
        };
        let mut update = RunUpdate::new(run);
        let mut ready = advance::cleared(&update)?;
        ready.retain(|step| step.tasks > 0);
        advance::start(&mut update, &ready)?;
        update.save()
    })?)
}
