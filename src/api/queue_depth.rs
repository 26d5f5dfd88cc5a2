//! `pgflow.queue_depth(flow_slug)`: how full the queues are.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::queue;
use crate::store::{self, step_tasks};

type DepthRow = (
    String,
    String,
    Option<i64>,
    Option<i64>,
    Option<i32>,
    Option<i32>,
    Option<i64>,
    i64,
    i64,
);

/// A row for each flow and queue that its steps are routed to, or that its unfinished tasks were sent to, and for its
/// default queue: what `pgmq.metrics` measures (ages in seconds; NULL where PGMQ does not list the queue), how many
/// unfinished tasks should have a message there, and how many live workers poll it.
///
/// NULL means all flows; no rows for an unknown one. Errors: 42501 without the right to read pgflow's and PGMQ's tables,
/// 42P01 when a listed queue's table is gone. Reads the unfinished work, and each queue once. Locks nothing.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity, reason = "pgrx wants the columns spelled out")]
fn queue_depth(
    flow_slug: Option<&str>,
) -> Result<
    TableIterator<
        'static,
        (
            name!(flow_slug, String),
            name!(queue_name, String),
            name!(queue_length, Option<i64>),
            name!(queue_visible_length, Option<i64>),
            name!(oldest_msg_age_sec, Option<i32>),
            name!(newest_msg_age_sec, Option<i32>),
            name!(total_messages, Option<i64>),
            name!(unfinished_tasks, i64),
            name!(live_workers, i64),
        ),
    >,
    ErrorReport,
> {
    let rows = store::connect(|| {
        let work = step_tasks::by_queue(flow_slug)?;
        let measures = queue::measures(work.iter().map(|work| &work.queue))?;
        Ok(work
            .into_iter()
            .map(|work| {
                let of_queue = measures.get(&work.queue);
                (
                    work.flow_slug,
                    work.queue.as_str().to_string(),
                    of_queue.and_then(|queue| queue.length),
                    of_queue.and_then(|queue| queue.visible_length),
                    of_queue.and_then(|queue| queue.oldest_age),
                    of_queue.and_then(|queue| queue.newest_age),
                    of_queue.and_then(|queue| queue.total),
                    work.unfinished_tasks,
                    work.live_workers,
                )
            })
            .collect::<Vec<DepthRow>>())
    })?;
    Ok(TableIterator::new(rows))
}
