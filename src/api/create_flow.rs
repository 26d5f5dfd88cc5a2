//! `pgflow.create_flow(flow_slug, max_attempts, base_delay, timeout)`: defines a flow and its default queue.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::datum::Row;
use crate::engine::definition;
use crate::store;
use crate::store::flows::FlowOptions;

/// Creates the flow and its queue `lower(flow_slug)`; returns the flow's row.
///
/// `max_attempts` counts attempts (default 3), `base_delay` and `timeout` are seconds (defaults 5 and 60).
/// Repeating it changes no row, ignores new options, and creates the queue if PGMQ lists none under any spelling.
/// Errors: 23514 invalid slug or option, 23505 a flow whose slug differs only in case, or a queue that is listed
/// already, 22023 a slug of more than 47 characters. Locks the flow's definition until the transaction ends.
#[pg_extern(sql = false)]
fn create_flow(
    flow_slug: Option<&str>,
    max_attempts: Option<i32>,
    base_delay: Option<i32>,
    timeout: Option<i32>,
) -> Result<Option<Row>, ErrorReport> {
    let options = FlowOptions {
        max_attempts,
        base_delay,
        timeout,
    };
    Ok(store::connect(|| {
        definition::create_flow(flow_slug, options)
    })?)
}
