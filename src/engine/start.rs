//! How a run begins.

use pgrx::Uuid;

use crate::datum::Jsonb;
use crate::engine::{advance, RunUpdate};
use crate::error::Error;
use crate::events;
use crate::store::{runs, steps};

/// Starts a run, takes its ready steps as far as they go, and returns its id.
pub fn start_run(
    flow_slug: Option<&str>,
    input: Option<Jsonb>,
    run_id: Option<Uuid>,
) -> Result<Uuid, Error> {
    if let Some(input) = input.filter(|input| !input.is_array()) {
        if let Some(map_step) = steps::root_map(flow_slug)? {
            let flow = flow_slug.unwrap_or_default().into();
            return Err(Error::InputNotArray {
                flow,
                map_step,
                found: input.type_name(),
            });
        }
    }
    let (run, ready) = runs::insert(flow_slug, input, run_id)?;
    let run_id = run.run_id;
    events::run_started(run_id)?;
    let mut update = RunUpdate::new(run);
    advance::advance(&mut update, ready)?;
    update.finish()?;
    Ok(run_id)
}
