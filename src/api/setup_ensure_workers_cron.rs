//! `pgflow.setup_ensure_workers_cron(cron_interval)`: has pg_cron keep workers alive.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::cron;
use crate::db;

/// Schedules `pgflow_ensure_workers` every `cron_interval` and `pgflow_cleanup_logs` hourly, in place of earlier
/// jobs of these names; returns what it scheduled. Intervals in seconds need pg_cron 1.5. Error 42704 where pg_cron
/// is not installed. Security definer.
#[pg_extern(sql = false)]
fn setup_ensure_workers_cron(cron_interval: Option<&str>) -> Result<String, ErrorReport> {
    let interval = cron_interval.unwrap_or_default();
    let (ensure, cleanup) = db::connect(|| {
        Ok((
            cron::replace(
                "pgflow_ensure_workers",
                interval,
                "select pgflow.ensure_workers()",
            )?,
            cron::replace(
                "pgflow_cleanup_logs",
                "0 * * * *",
                "select pgflow.cleanup_ensure_workers_logs()",
            )?,
        ))
    })?;
    Ok(format!(
        "Scheduled pgflow_ensure_workers (every {interval}, job_id={ensure}) and pgflow_cleanup_logs (hourly, \
         job_id={cleanup})"
    ))
}
