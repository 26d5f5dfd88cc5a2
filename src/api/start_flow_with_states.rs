//! `pgflow.start_flow_with_states(flow_slug, input, run_id)`: starts a run and shows it with its steps.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::datum::Jsonb;
use crate::engine::start;
use crate::store::{self, runs};

/// As start_flow, and returns `{"run": row, "steps": [rows]}`. Same errors. Security definer: a role needs only
/// USAGE on the schema.
#[pg_extern(sql = false)]
fn start_flow_with_states(
    flow_slug: Option<&str>,
    input: Option<Jsonb>,
    run_id: Option<Uuid>,
) -> Result<Option<Jsonb>, ErrorReport> {
    Ok(store::connect(|| {
        runs::with_states(start::start_run(flow_slug, input, run_id)?)
    })?)
}
