//! `pgflow.start_flow(flow_slug, input, run_id)`: starts a run.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::datum::{AtMostOneRow, Jsonb, Row};
use crate::db;
use crate::engine::{advance, RunUpdate};
use crate::error::Error;
use crate::events;
use crate::store::{runs, steps};

/// Creates a run with a state for each step, takes ready steps as far as they go, and returns the run's row.
///
/// `run_id` NULL is generated. A flow without steps completes at once; an unmet condition may return a failed
/// run. Not idempotent. Errors: 23503 unknown flow, 23502 NULL input, 22023 a root map step and an input that is
/// no array, 23505 a run_id that exists.
#[pg_extern(sql = false)]
fn start_flow(
    flow_slug: Option<&str>,
    input: Option<Jsonb>,
    run_id: Option<Uuid>,
) -> Result<AtMostOneRow, ErrorReport> {
    Ok(AtMostOneRow(db::connect(|| {
        match start(flow_slug, input, run_id)? {
            Some(run_id) => runs::row(run_id) as Result<Option<Row>, Error>,
            None => Ok(None),
        }
    })?))
}

/// Starts a run; returns its id.
pub fn start(
    flow_slug: Option<&str>,
    input: Option<Jsonb>,
    run_id: Option<Uuid>,
) -> Result<Option<Uuid>, Error> {
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
    let Some((run, ready)) = runs::insert(flow_slug, input, run_id)? else {
        return Ok(None);
    };
    let run_id = run.run_id;
    events::run_started(run_id)?;
    let mut update = RunUpdate::new(run);
    advance::advance(&mut update, ready)?;
    update.finish()?;
    Ok(Some(run_id))
}
