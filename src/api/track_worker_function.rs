//! `pgflow.track_worker_function(function_name, start_mode)`: registers a function that runs workers.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::store::{self, workers};

/// Adds the function, or sets the start_mode of a known one; whether it is enabled and when it was last called stay.
/// `start_mode` is `http` (ensure_workers calls it) or `process` (it runs by itself). Errors: 23514 another
/// start_mode, 23502 a NULL.
#[pg_extern(sql = false)]
fn track_worker_function(
    function_name: Option<&str>,
    start_mode: Option<&str>,
) -> Result<(), ErrorReport> {
    Ok(store::connect(|| {
        workers::track_function(function_name, start_mode)
    })?)
}
