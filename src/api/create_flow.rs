//! `pgflow.create_flow(flow_slug, max_attempts, base_delay, timeout)`: defines a flow and its default queue.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::datum::Row;
use crate::db;
use crate::error::Error;
use crate::model::QueueName;
use crate::queue;
use crate::store::flows;

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
    Ok(db::connect(|| {
        flows::lock_definition(flow_slug)?;
        let is_new = flows::insert_new(flow_slug, max_attempts, base_delay, timeout)?;
        if let Some(flow_slug) = flow_slug {
            provision_queue(flow_slug, is_new)?;
        }
        flows::row(flow_slug)
    })?)
}

/// A new flow needs a queue name that nobody has; a known flow takes its queue under whatever spelling.
fn provision_queue(flow_slug: &str, is_new: bool) -> Result<(), Error> {
    let queue = QueueName::normalized(flow_slug);
    match queue::listed(&queue)?.pop() {
        None if queue.is_too_long() => Err(Error::QueueNameTooLong {
            flow: flow_slug.into(),
            queue: queue.as_str().into(),
        }),
        None => queue::create(&queue),
        Some(listed) if is_new => Err(Error::QueueTaken {
            flow: flow_slug.into(),
            queue: queue.as_str().into(),
            listed,
        }),
        Some(_) => Ok(()),
    }
}
