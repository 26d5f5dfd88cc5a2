//! `pgflow.run_graph(run_id)`: a run as a picture.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::rules::graph;
use crate::store::{self, runs};

/// The run as Mermaid text: the flow's steps with their states, tasks, retries and times (seconds below a minute); NULL
/// for an unknown run. Reads the tasks of this run. Runs with the caller's rights. Locks nothing.
#[pg_extern(sql = false)]
fn run_graph(run_id: Option<Uuid>) -> Result<Option<String>, ErrorReport> {
    let Some(run_id) = run_id else {
        return Ok(None);
    };
    let steps = store::connect(|| runs::graph(run_id))?;
    Ok(steps.map(|steps| graph::mermaid(&steps)))
}
