//! `pgflow.ensure_workers()`: calls the functions that should have a worker and have none.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::api::is_local::supabase_is_local;
use crate::http;
use crate::store;

/// POSTs through pg_net to enabled worker functions of start_mode `http`: locally to all; else to those past their
/// debounce without a live worker, with the project and key that Vault holds (nothing is sent without them).
/// Returns a row for each POST and sets its `last_invoked_at`. Error 42704 where pg_net, or Vault when it is
/// needed, is not installed.
#[pg_extern(sql = false)]
fn ensure_workers() -> Result<
    TableIterator<
        'static,
        (
            name!(function_name, String),
            name!(invoked, bool),
            name!(request_id, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    let posts = store::connect(|| {
        if supabase_is_local() {
            http::post_to_local()
        } else {
            http::post_to_project()
        }
    })?;
    Ok(TableIterator::new(
        posts
            .into_iter()
            .map(|post| (post.function_name, true, post.request_id)),
    ))
}
