//! How a run begins.

use pgrx::Uuid;

use crate::datum::Jsonb;
use crate::engine::{advance, RunUpdate};
use crate::error::Error;
use crate::events::Event;
use crate::store::runs;

/// Starts a run, takes its ready steps as far as they go, and returns its id.
pub fn start_run(
    flow_slug: Option<&str>,
    input: Option<Jsonb>,
    run_id: Option<Uuid>,
) -> Result<Uuid, Error> {
    let (run, released) = runs::insert(flow_slug, input, run_id)?;
    let run_id = run.run_id;
    let remaining_steps = run.remaining_steps;
    let mut update = RunUpdate::new(run);
    update.tell(Event::RunStarted { remaining_steps });
    advance::advance(&mut update, released)?;
    update.finish()?;
    Ok(run_id)
}
