//! `pgflow.complete_task(run_id, step_slug, task_index, output)`: a worker reports a result.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::datum::{AtMostOneRow, Jsonb, Row};
use crate::db;
use crate::engine::{advance, failure, report, RunUpdate};
use crate::error::Error;
use crate::events;
use crate::model::{StepType, TaskKey};
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
) -> Result<AtMostOneRow, ErrorReport> {
    let Some(key) = TaskKey::new(run_id, step_slug, task_index) else {
        return Ok(AtMostOneRow(None));
    };
    let accept = |task: ReportedTask| match violated_map_step(key, &task, output)? {
        Some(map_step) => violate_type(key, task, output, &map_step),
        None => complete(key, task, output),
    };
    Ok(AtMostOneRow(db::connect(|| report::take(key, accept))?))
}

fn complete(key: TaskKey, task: ReportedTask, output: Option<Jsonb>) -> Result<Option<Row>, Error> {
    let Some(row) = step_tasks::complete(key, output)? else {
        return Ok(None);
    };
    let mut update = RunUpdate::new(task.run);
    update.retire(task.message);
    if task.remaining_tasks.is_some_and(|remaining| remaining > 1) {
        step_states::count_task_done(key.run_id, key.step_slug)?;
        update.save()?;
        return Ok(Some(row));
    }
    match task.step_type {
        StepType::Single => step_states::complete_single(key.run_id, key.step_slug, output)?,
        StepType::Map => step_states::complete_map(key.run_id, key.step_slug)?,
    }
    events::step_completed(key.run_id, key.step_slug)?;
    update.end_steps(1);
    let ready = step_states::release_dependents(&update.run, &[key.step_slug])?;
    advance::advance(&mut update, ready)?;
    update.finish()?;
    Ok(Some(row))
}

/// The map step that waits for an array from this single step, when the output is none.
fn violated_map_step(
    key: TaskKey,
    task: &ReportedTask,
    output: Option<Jsonb>,
) -> Result<Option<String>, Error> {
    if task.step_type == StepType::Map || output.is_some_and(Jsonb::is_array) {
        return Ok(None);
    }
    step_states::waiting_map_dependent(&task.run, key.step_slug)
}

/// The output is no array although a map step waits for it: task, step and run fail.
fn violate_type(
    key: TaskKey,
    task: ReportedTask,
    output: Option<Jsonb>,
    map_step: &str,
) -> Result<Option<Row>, Error> {
    let found = output.map_or_else(|| "null".to_string(), Jsonb::type_name);
    let of_task = format!("[TYPE_VIOLATION] Produced {found} instead of array");
    let of_step = format!(
        "[TYPE_VIOLATION] Map step {map_step} expects array input but dependency {} produced {found}",
        key.step_slug
    );
    step_tasks::lock_unfinished_of_run(key.run_id)?;
    let Some(row) = step_tasks::fail(key, Some(&of_task), output)? else {
        return Ok(None);
    };
    let mut update = RunUpdate::new(task.run);
    update.retire(task.message);
    failure::by_type(&mut update, key.step_slug, &of_step)?;
    update.finish()?;
    Ok(Some(row))
}
