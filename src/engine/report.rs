//! How a worker's report about a task is taken.

use crate::datum::{Jsonb, Row};
use crate::engine::{advance, failure, RunUpdate};
use crate::error::Error;
use crate::events::Event;
use crate::model::{StepType, TaskKey};
use crate::queue;
use crate::rules::callback::is_late;
use crate::store::runs::LockedRun;
use crate::store::step_states;
use crate::store::step_tasks::{self, ReportedTask};

/// Locks run and step state and has `accept` act on the report, unless it comes too late: then only the message is
/// archived. `accept` gives the row it changed, or none when the task is not started any more. Returns the task's row
/// in every case, none for a task that does not exist.
pub fn take(
    key: TaskKey,
    accept: impl FnOnce(ReportedTask) -> Result<Option<Row>, Error>,
) -> Result<Option<Row>, Error> {
    let Some(task) = step_tasks::lock_for_report(key)? else {
        return Ok(None);
    };
    let changed = if is_late(task.run.status, task.step_status) {
        queue::archive(task.message.into_iter().collect())?;
        None
    } else {
        accept(task)?
    };
    changed.map_or_else(|| step_tasks::row(key), |row| Ok(Some(row)))
}

/// Completes a step whose last task has just been completed with `output`, and lets its dependents go on.
pub fn complete_step(
    update: &mut RunUpdate,
    step_slug: &str,
    step_type: StepType,
    tasks: Option<i32>,
    output: Option<Jsonb>,
) -> Result<(), Error> {
    let elements = match step_type {
        StepType::Map => tasks.unwrap_or_default(),
        StepType::Single => output.map_or(0, Jsonb::array_length),
    };
    update.tell(Event::StepCompleted(step_slug.to_string()));
    update.end_steps(1);
    let released = step_states::complete(&update.run, step_slug, step_type, output, elements)?;
    advance::advance(update, released)
}

/// The map step that waits for an array from this single step, when the output is none.
pub fn violated_map_step(
    run: &LockedRun,
    step_slug: &str,
    step_type: StepType,
    output: Option<Jsonb>,
) -> Result<Option<String>, Error> {
    if step_type == StepType::Map || output.is_some_and(Jsonb::is_array) {
        return Ok(None);
    }
    step_states::waiting_map_dependent(run, step_slug)
}

/// The output is no array although a map step waits for it: task, step and run fail. The task's row, or none when it
/// is not started any more; then nothing has changed.
pub fn violate_type(
    update: &mut RunUpdate,
    key: TaskKey,
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
    failure::by_type(update, key.step_slug, &of_step)?;
    Ok(Some(row))
}
