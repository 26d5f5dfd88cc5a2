//! `pgflow.start_flow(flow_slug, input, run_id)`: starts a run.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::datum::{Jsonb, Row};
use crate::engine::start;
use crate::store::{self, runs};

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
) -> Result<SetOfIterator<'static, Row>, ErrorReport> {
    Ok(SetOfIterator::new(store::connect(|| {
        runs::row(start::start_run(flow_slug, input, run_id)?)
    })?))
}
