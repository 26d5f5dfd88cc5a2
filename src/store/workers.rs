//! `pgflow.workers` and `pgflow.worker_functions`. Workers register and beat with plain SQL of their own.

use pgrx::Uuid;

use crate::db::{param, Statement};
use crate::error::Error;

pub fn track_function(function_name: Option<&str>, start_mode: Option<&str>) -> Result<(), Error> {
    static UPSERT: Statement = Statement::new(
        "insert into pgflow.worker_functions as f (function_name, start_mode) values ($1, $2)
         on conflict (function_name) do update set start_mode = excluded.start_mode, updated_at = clock_timestamp()",
    );
    UPSERT.run(&[param(function_name), param(start_mode)])
}

pub fn mark_stopped(worker_id: Option<Uuid>) -> Result<(), Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.workers set stopped_at = clock_timestamp() where worker_id = $1",
    );
    UPDATE.run(&[param(worker_id)])
}
