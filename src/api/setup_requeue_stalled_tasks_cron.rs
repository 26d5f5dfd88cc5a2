//! `pgflow.setup_requeue_stalled_tasks_cron(cron_interval)`: has pg_cron recover stalled tasks.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::cron;
use crate::db;

/// Schedules `pgflow_requeue_stalled_tasks` every `cron_interval`, in place of an earlier job of this name; returns
/// what it scheduled. Intervals in seconds need pg_cron 1.5. Error 42704 where pg_cron is not installed. Security
/// definer.
#[pg_extern(sql = false)]
fn setup_requeue_stalled_tasks_cron(cron_interval: Option<&str>) -> Result<String, ErrorReport> {
    let interval = cron_interval.unwrap_or_default();
    let job = db::connect(|| {
        cron::replace(
            "pgflow_requeue_stalled_tasks",
            interval,
            "select pgflow.requeue_stalled_tasks()",
        )
    })?;
    Ok(format!(
        "Scheduled pgflow_requeue_stalled_tasks (every {interval}, job_id={job})"
    ))
}
