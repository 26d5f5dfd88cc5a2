//! `pgflow._cascade_force_skip_steps(run_id, step_slug, skip_reason)`: skips a step and all that depends on it.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::engine::{skip, RunUpdate};
use crate::error::Error;
use crate::model::RunStatus;
use crate::store::{self, runs};

/// Skips the step for `skip_reason`, and its transitive dependents for `dependency_skipped`, as far as they are
/// created or started, with their unfinished tasks; returns how many steps that were. Repeating it gives 0, and so
/// does an ended run. Does not complete the run. Errors: 42704 unknown run, 23514 NULL reason. Locks the run, tasks,
/// then queue rows.
#[pg_extern(sql = false)]
fn _cascade_force_skip_steps(
    run_id: Option<Uuid>,
    step_slug: Option<&str>,
    skip_reason: Option<&str>,
) -> Result<Option<i32>, ErrorReport> {
    let (Some(run_id), Some(step_slug)) = (run_id, step_slug) else {
        return Ok(None);
    };
    Ok(Some(store::connect(|| {
        let run = runs::lock(run_id)?.ok_or(Error::UnknownRun { run: run_id })?;
        if run.status != RunStatus::Started {
            return Ok(0);
        }
        let mut update = RunUpdate::new(run);
        let skipped = skip::cascade(&mut update, &[step_slug], skip_reason)?;
        update.save()?;
        Ok(skipped)
    })?))
}
