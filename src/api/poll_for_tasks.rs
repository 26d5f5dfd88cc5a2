//! `pgflow.poll_for_tasks(...)`: deprecated since workers read PGMQ themselves.

use pgrx::prelude::*;

use crate::datum::Row;

/// Raises a NOTICE and returns no rows. Use `pgmq.read_with_poll` and `pgflow.start_tasks`.
#[pg_extern(sql = false)]
fn poll_for_tasks(
    _queue_name: Option<&str>,
    _vt: Option<i32>,
    _qty: Option<i32>,
    _max_poll_seconds: Option<i32>,
    _poll_interval_ms: Option<i32>,
) -> SetOfIterator<'static, Row> {
    notice!("pgflow.poll_for_tasks is deprecated and returns nothing: read with PGMQ's read_with_poll, claim with pgflow.start_tasks");
    SetOfIterator::empty()
}
