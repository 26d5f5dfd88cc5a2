//! `pgflow.flows`, and the lock under which a flow's definition changes.

use crate::datum::Row;
use crate::db::{param, Statement};
use crate::error::Error;

/// Serialises create_flow, add_step, compilation and deletion of one flow, whatever spelling of its slug they
/// were given; held to the transaction's end.
pub fn lock_definition(flow_slug: Option<&str>) -> Result<(), Error> {
    static LOCK: Statement = Statement::new("select pg_advisory_xact_lock(1, hashtext(lower($1)))");
    LOCK.run(&[param(flow_slug)])
}

/// Inserts a flow that is new under this exact slug. False when it exists already. A slug that differs from
/// another flow's only in case violates `idx_flows_normalized_slug`.
pub fn insert_new(
    flow_slug: Option<&str>,
    max_attempts: Option<i32>,
    base_delay: Option<i32>,
    timeout: Option<i32>,
) -> Result<bool, Error> {
    static INSERT: Statement = Statement::new(
        "insert into pgflow.flows (flow_slug, opt_max_attempts, opt_base_delay, opt_timeout)
         values ($1, coalesce($2, 3), coalesce($3, 5), coalesce($4, 60))
         on conflict (flow_slug) do nothing",
    );
    static EXISTS: Statement = Statement::new("select from pgflow.flows where flow_slug = $1");
    if EXISTS.row(&[param(flow_slug)])?.is_some() {
        return Ok(false);
    }
    INSERT.run(&[
        param(flow_slug),
        param(max_attempts),
        param(base_delay),
        param(timeout),
    ])?;
    Ok(true)
}

pub fn row(flow_slug: Option<&str>) -> Result<Option<Row>, Error> {
    static SELECT: Statement =
        Statement::new("select f from pgflow.flows f where f.flow_slug = $1");
    Ok(SELECT
        .row(&[param(flow_slug)])?
        .and_then(|record| record.keep(1)))
}
