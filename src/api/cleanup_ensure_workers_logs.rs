//! `pgflow.cleanup_ensure_workers_logs(retention_hours)`: forgets old runs of pg_cron jobs.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::cron;
use crate::db;

/// Deletes the details of pg_cron runs, of whatever job, that ended more than `retention_hours` ago; returns how
/// many. Error 42704 where pg_cron is not installed. Security definer.
#[pg_extern(sql = false)]
fn cleanup_ensure_workers_logs(
    retention_hours: Option<i32>,
) -> Result<TableIterator<'static, (name!(cron_deleted, i64),)>, ErrorReport> {
    Ok(TableIterator::once((db::connect(|| {
        cron::delete_run_details(retention_hours)
    })?,)))
}
