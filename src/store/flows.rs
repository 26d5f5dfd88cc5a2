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

/// A flow's options: attempts, and seconds. `None` is the default.
pub struct FlowOptions {
    pub max_attempts: Option<i32>,
    pub base_delay: Option<i32>,
    pub timeout: Option<i32>,
}

pub fn exists(flow_slug: &str) -> Result<bool, Error> {
    static SELECT: Statement = Statement::new("select from pgflow.flows where flow_slug = $1");
    Ok(SELECT.row(&[param(flow_slug)])?.is_some())
}

/// Inserts a flow that is new under this exact slug. False when it exists already. A slug that differs from
/// another flow's only in case violates `idx_flows_normalized_slug`.
pub fn insert_new(flow_slug: Option<&str>, options: FlowOptions) -> Result<bool, Error> {
    static INSERT: Statement = Statement::new(
        "insert into pgflow.flows (flow_slug, opt_max_attempts, opt_base_delay, opt_timeout)
         values ($1, coalesce($2, 3), coalesce($3, 5), coalesce($4, 60))",
    );
    if let Some(flow_slug) = flow_slug {
        if exists(flow_slug)? {
            return Ok(false);
        }
    }
    INSERT.run(&[
        param(flow_slug),
        param(options.max_attempts),
        param(options.base_delay),
        param(options.timeout),
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

/// Locks the flow of exactly this slug against other deletions. False when there is none. New tasks, whose foreign keys
/// lock it too, can still come: whoever is reporting may have to create some before it gives its run free.
pub fn lock(flow_slug: &str) -> Result<bool, Error> {
    static LOCK: Statement =
        Statement::new("select from pgflow.flows where flow_slug = $1 for no key update");
    Ok(LOCK.row(&[param(flow_slug)])?.is_some())
}

/// Locks a flow against new runs, and waits for those that are being started.
pub fn lock_against_runs(flow_slug: &str) -> Result<(), Error> {
    static LOCK: Statement =
        Statement::new("select from pgflow.flows where flow_slug = $1 for update");
    LOCK.run(&[param(flow_slug)])
}

/// Deletes every row of a flow, dependents first.
pub fn delete_rows(flow_slug: &str) -> Result<(), Error> {
    static DELETES: [Statement; 6] = [
        Statement::new(
            "delete from pgflow.step_tasks t using pgflow.runs r where r.flow_slug = $1 and t.run_id = r.run_id",
        ),
        Statement::new("delete from pgflow.step_states where flow_slug = $1"),
        Statement::new("delete from pgflow.runs where flow_slug = $1"),
        Statement::new("delete from pgflow.deps where flow_slug = $1"),
        Statement::new("delete from pgflow.steps where flow_slug = $1"),
        Statement::new("delete from pgflow.flows where flow_slug = $1"),
    ];
    DELETES
        .iter()
        .try_for_each(|delete| delete.run(&[param(flow_slug)]))
}
