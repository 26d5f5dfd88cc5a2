//! `pgflow.get_run_with_states(run_id)`: shows a run with its steps.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::datum::Jsonb;
use crate::store::{self, runs};

/// `{"run": row, "steps": [rows]}`, steps in the order of the definition; NULL for an unknown run. Security
/// definer: a role needs only USAGE on the schema. Locks nothing.
#[pg_extern(sql = false)]
fn get_run_with_states(run_id: Option<Uuid>) -> Result<Option<Jsonb>, ErrorReport> {
    let Some(run_id) = run_id else {
        return Ok(None);
    };
    Ok(store::connect(|| runs::with_states(run_id))?)
}
