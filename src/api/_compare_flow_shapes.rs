//! `pgflow._compare_flow_shapes(p_local, p_db)`: how two shapes differ.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::datum::Jsonb;
use crate::engine::compile;
use crate::rules::shape;

/// The differences in words, by step index; an empty array for equal shapes. Options never count. NULL is taken as
/// a shape without steps. Error 22023 for what is no shape. Touches no table.
#[pg_extern(sql = false)]
fn _compare_flow_shapes(
    p_local: Option<Jsonb>,
    p_db: Option<Jsonb>,
) -> Result<Vec<String>, ErrorReport> {
    let text = |shape: Option<Jsonb>| shape.map_or_else(|| "{}".to_string(), Jsonb::to_text);
    Ok(compile::differences(
        &shape::parse(&text(p_local))?,
        &shape::parse(&text(p_db))?,
    ))
}
