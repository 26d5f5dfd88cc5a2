//! `pgflow._get_flow_shape(p_flow_slug)`: a stored flow's definition as a shape.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::datum::Jsonb;
use crate::store::{self, steps};

/// `{"steps": [...]}` by step_index, dependencies sorted, without options; no steps for an unknown flow. Locks
/// nothing.
#[pg_extern(sql = false)]
fn _get_flow_shape(p_flow_slug: Option<&str>) -> Result<Jsonb, ErrorReport> {
    Ok(store::connect(|| {
        steps::shape(p_flow_slug.unwrap_or_default())
    })?)
}
