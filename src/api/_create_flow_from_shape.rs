//! `pgflow._create_flow_from_shape(p_flow_slug, p_shape)`: defines a whole flow at once.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::datum::Jsonb;
use crate::engine::compile;
use crate::error::Error;
use crate::rules::shape;
use crate::store;

/// Creates the flow and its steps in order, as create_flow and add_step do, with their errors and locks. What a
/// step leaves out is: type single, no dependencies, when_unmet skip, when_exhausted fail. Error 22023 for what is
/// no shape.
#[pg_extern(sql = false)]
fn _create_flow_from_shape(
    p_flow_slug: Option<&str>,
    p_shape: Option<Jsonb>,
) -> Result<(), ErrorReport> {
    let (Some(flow_slug), Some(shape)) = (p_flow_slug, p_shape) else {
        return Err(Error::ShapeInvalid {
            why: "flow slug or shape is NULL".into(),
        }
        .into());
    };
    Ok(store::connect(|| {
        compile::create_flow(flow_slug, &shape::parse(&shape.to_text())?)
    })?)
}
