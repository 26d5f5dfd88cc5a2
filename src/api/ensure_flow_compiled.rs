//! `pgflow.ensure_flow_compiled(flow_slug, shape)`: makes the stored flow what a worker's code says.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::api::is_local::supabase_is_local;
use crate::datum::Jsonb;
use crate::engine::compile;
use crate::error::Error;
use crate::store;

/// Returns `{"status", "differences"}`: `compiled` (the flow was absent and is created), `verified` (it is equal),
/// `recompiled` (it differed, is_local() holds: deleted with all its runs and created anew), or `mismatch` (it
/// differs; nothing is touched). Error 22023 for what is no shape, and those of create_flow, add_step and
/// delete_flow_and_data. Locks the flow's definition until the transaction ends.
#[pg_extern(sql = false)]
fn ensure_flow_compiled(
    flow_slug: Option<&str>,
    shape: Option<Jsonb>,
) -> Result<Jsonb, ErrorReport> {
    let (Some(flow_slug), Some(shape)) = (flow_slug, shape) else {
        return Err(Error::ShapeInvalid {
            why: "flow slug or shape is NULL".into(),
        }
        .into());
    };
    Ok(store::connect(|| {
        compile::ensure(flow_slug, shape, supabase_is_local())
    })?)
}
