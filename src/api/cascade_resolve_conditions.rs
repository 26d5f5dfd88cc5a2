//! `pgflow.cascade_resolve_conditions(run_id)`: acts on the conditions of ready steps.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::engine::{advance, RunUpdate};
use crate::error::Error;
use crate::model::RunStatus;
use crate::store::{self, runs, step_states};

/// Judges the conditions of ready steps: an unmet one fails the run or skips the step, as its `when_unmet` says,
/// and so on for steps that become ready by it. False when the run failed by this or before; true otherwise. Error
/// 42704 for an unknown run. Every verb of the engine does this by itself. Locks the run, tasks, then queue rows.
#[pg_extern(sql = false)]
fn cascade_resolve_conditions(run_id: Option<Uuid>) -> Result<Option<bool>, ErrorReport> {
    let Some(run_id) = run_id else {
        return Ok(None);
    };
    Ok(Some(store::connect(|| {
        let run = runs::lock(run_id)?.ok_or(Error::UnknownRun { run: run_id })?;
        if run.status != RunStatus::Started {
            return Ok(run.status != RunStatus::Failed);
        }
        let mut update = RunUpdate::new(run);
        let ready = step_states::ready(&update.run)?;
        let holds = advance::resolve_conditions(&mut update, ready)?.is_some();
        update.save()?;
        Ok(holds)
    })?))
}
