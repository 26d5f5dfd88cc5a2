//! `pgflow.complete_tasks(run_ids, step_slugs, task_indexes, outputs)`: a worker reports several results at once.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::datum::{Jsonb, Row};
use crate::engine::batch::{self, Report};
use crate::error::Error;
use crate::model::TaskKey;
use crate::store;

/// Completes the tasks (`run_ids[n]`, `step_slugs[n]`, `task_indexes[n]`) with `outputs[n]`, with the same effect as
/// `complete_task` on each in this order, but with the work shared: each step and run is written once, each queue
/// served once.
///
/// Returns the tasks' rows as they are afterwards, in input order; none for an element that is NULL or has no task. A
/// task given twice counts once. NULL or empty arrays: no rows. Errors: 22023 arrays that differ in length. Locks runs
/// by run_id, those of the tasks that are started, then queue rows.
#[pg_extern(sql = false)]
fn complete_tasks(
    run_ids: Option<Array<Uuid>>,
    step_slugs: Option<Array<&str>>,
    task_indexes: Option<Array<i32>>,
    outputs: Option<Array<Jsonb>>,
) -> Result<SetOfIterator<'static, Row>, ErrorReport> {
    let arrays = vec![
        ("run_ids", run_ids.as_ref().map_or(0, Array::len)),
        ("step_slugs", step_slugs.as_ref().map_or(0, Array::len)),
        ("task_indexes", task_indexes.as_ref().map_or(0, Array::len)),
        ("outputs", outputs.as_ref().map_or(0, Array::len)),
    ];
    if arrays.iter().any(|(_, length)| *length != arrays[0].1) {
        return Err(Error::UnequalArrays { arrays }.into());
    }
    let (Some(run_ids), Some(step_slugs), Some(task_indexes), Some(outputs)) =
        (&run_ids, &step_slugs, &task_indexes, &outputs)
    else {
        return Ok(SetOfIterator::empty());
    };
    let keys = run_ids
        .iter()
        .zip(step_slugs.iter())
        .zip(task_indexes.iter());
    let reports: Vec<_> = keys
        .zip(outputs.iter())
        .filter_map(|(((run_id, step_slug), task_index), output)| {
            let key = TaskKey::new(run_id, step_slug, task_index)?;
            Some(Report { key, output })
        })
        .collect();
    if reports.is_empty() {
        return Ok(SetOfIterator::empty());
    }
    let rows = store::connect(|| batch::complete(&reports))?;
    Ok(SetOfIterator::new(rows))
}
