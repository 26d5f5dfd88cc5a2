//! `pgflow.flow_graph(flow_slug)`: a flow as a picture.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::rules::graph;
use crate::store::{self, steps};

/// The flow as Mermaid text, a node for each step in the order of the definition; NULL for an unknown flow. Runs with
/// the caller's rights. Locks nothing.
#[pg_extern(sql = false)]
fn flow_graph(flow_slug: Option<&str>) -> Result<Option<String>, ErrorReport> {
    let Some(flow_slug) = flow_slug else {
        return Ok(None);
    };
    let steps = store::connect(|| steps::graph(flow_slug))?;
    Ok(steps.map(|steps| graph::mermaid(&steps)))
}
