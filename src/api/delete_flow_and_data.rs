//! `pgflow.delete_flow_and_data(p_flow_slug)`: removes a flow with all that ran of it.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::engine::definition;
use crate::store;

/// Drops the queues of the flow's steps (its default queue when it has none) with their archives, then deletes its
/// rows; all in this transaction. Nothing for a slug that is not exactly a flow's. A queue that PGMQ lists no more
/// is passed over with a NOTICE. Errors: 42725 a queue that is listed in more than one spelling (before anything is
/// dropped), 55000 a listed queue that PGMQ does not drop. Locks definition, flow, runs, tasks, then the queues.
#[pg_extern(sql = false)]
fn delete_flow_and_data(p_flow_slug: Option<&str>) -> Result<(), ErrorReport> {
    let Some(flow_slug) = p_flow_slug else {
        return Ok(());
    };
    Ok(store::connect(|| definition::delete_flow(flow_slug))?)
}
