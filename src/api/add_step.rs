//! `pgflow.add_step(...)`: defines a step of a flow, its dependencies and its route.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::datum::{Jsonb, Row};
use crate::engine::definition;
use crate::store;
use crate::store::steps::NewStep;

/// Adds a step after the flow's last one; returns its row.
///
/// `deps_slugs` names existing steps of the flow (a repeated one counts once). `max_attempts` counts attempts;
/// `base_delay`, `timeout` and `start_delay` are seconds; NULL means the flow's option (`start_delay`: 0).
/// `step_type` is `single` or `map`; a map has at most one dependency. Tasks will go to queue `lower(flow_slug)`.
/// Repeating it changes nothing, whatever the other arguments. Errors: 23503 unknown flow or dependency, 23514
/// invalid slug, option or self-dependency, 23502 NULL mode, 22023 a map with several dependencies. Locks the
/// flow's definition until the transaction ends.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments, reason = "the signature is contract")]
fn add_step(
    flow_slug: Option<&str>,
    step_slug: Option<&str>,
    deps_slugs: Option<Array<&str>>,
    max_attempts: Option<i32>,
    base_delay: Option<i32>,
    timeout: Option<i32>,
    start_delay: Option<i32>,
    step_type: Option<&str>,
    required_input_pattern: Option<Jsonb>,
    forbidden_input_pattern: Option<Jsonb>,
    when_unmet: Option<&str>,
    when_exhausted: Option<&str>,
) -> Result<Option<Row>, ErrorReport> {
    let deps = distinct(deps_slugs);
    let step = NewStep {
        flow_slug,
        step_slug,
        max_attempts,
        base_delay,
        timeout,
        start_delay,
        step_type: step_type.unwrap_or("single"),
        required_input_pattern,
        forbidden_input_pattern,
        when_unmet,
        when_exhausted,
    };
    Ok(store::connect(|| definition::add_step(&step, deps))?)
}

/// The array's elements, each once; a NULL stays in and is refused by the table.
fn distinct(slugs: Option<Array<&str>>) -> Vec<Option<String>> {
    let mut slugs: Vec<Option<String>> = slugs
        .into_iter()
        .flat_map(|array| {
            array
                .iter()
                .map(|slug| slug.map(str::to_string))
                .collect::<Vec<_>>()
        })
        .collect();
    slugs.sort();
    slugs.dedup();
    slugs
}
