//! `pgflow.complete_task(run_id, step_slug, task_index, output)`: a worker reports a result.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::datum::{Jsonb, Row};
use crate::engine::{report, RunUpdate};
use crate::error::Error;
use crate::model::TaskKey;
use crate::store;
use crate::store::step_states;
use crate::store::step_tasks::{self, ReportedTask};

/// Completes a started task; the last one of a step completes it and lets its dependents go on.
///
/// Returns the task's row in every case, none for a task that does not exist. A report that comes too late (the
/// run failed, the step is not started) archives the message and changes nothing else; a second one changes
/// nothing. A single step that a map waits for must return an array, else the run fails. Locks run, step state,
/// task, then queue rows.
#[pg_extern(sql = false)]
fn complete_task(
    run_id: Option<Uuid>,
    step_slug: Option<&str>,
    task_index: Option<i32>,
    output: Option<Jsonb>,
) -> Result<SetOfIterator<'static, Row>, ErrorReport> {
    let Some(key) = TaskKey::new(run_id, step_slug, task_index) else {
        return Ok(SetOfIterator::empty());
    };
    let accept = |task: ReportedTask| match report::violated_map_step(
        &task.run,
        key.step_slug,
        task.step_type,
        output,
    )? {
        Some(map_step) => violate_type(key, task, output, &map_step),
        None => complete(key, task, output),
    };
    Ok(SetOfIterator::new(store::connect(|| {
        report::take(key, accept)
    })?))
}

fn complete(key: TaskKey, task: ReportedTask, output: Option<Jsonb>) -> Result<Option<Row>, Error> {
    let Some(row) = step_tasks::complete(key, output)? else {
        return Ok(None);
    };
    let mut update = RunUpdate::new(task.run);
    update.retire(task.message);
    if task.remaining_tasks.is_some_and(|remaining| remaining > 1) {
        step_states::count_task_done(key.run_id, key.step_slug)?;
    } else {
        let (step_type, tasks) = (task.step_type, task.initial_tasks);
        report::complete_step(&mut update, key.step_slug, step_type, tasks, output)?;
    }
    update.finish()?;
    Ok(Some(row))
}

fn violate_type(
    key: TaskKey,
    task: ReportedTask,
    output: Option<Jsonb>,
    map_step: &str,
) -> Result<Option<Row>, Error> {
    let mut update = RunUpdate::new(task.run);
    let row = report::violate_type(&mut update, key, output, map_step)?;
    if row.is_some() {
        update.retire(task.message);
        update.finish()?;
    }
    Ok(row)
}
