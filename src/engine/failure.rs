//! How a run fails: its step, then the run, then everything unfinished in it is cancelled.

use crate::engine::RunUpdate;
use crate::error::Error;
use crate::events::Event;
use crate::model::{RunStatus, TaskStatus};
use crate::store::{runs, step_states, step_tasks};

/// What a step and its run are told when a condition with `when_unmet = 'fail'` is not met.
const CONDITION_NOT_MET: &str = "Condition not met";

/// A condition that had to be met was not.
pub fn by_condition(update: &mut RunUpdate, step_slug: &str) -> Result<(), Error> {
    by_step(update, step_slug, Some(CONDITION_NOT_MET))
}

/// A task used up its attempts.
pub fn by_handler(
    update: &mut RunUpdate,
    step_slug: &str,
    error_message: Option<&str>,
) -> Result<(), Error> {
    by_step(update, step_slug, error_message)
}

/// A step returned what the map step that depends on it cannot map over.
pub fn by_type(update: &mut RunUpdate, step_slug: &str, error_message: &str) -> Result<(), Error> {
    step_states::fail(update.run.run_id, step_slug, Some(error_message))?;
    fail_run(update)?;
    update.tell(Event::RunFailedByType);
    update.tell(Event::StepFailed(step_slug.to_string()));
    Ok(())
}

fn by_step(
    update: &mut RunUpdate,
    step_slug: &str,
    error_message: Option<&str>,
) -> Result<(), Error> {
    step_states::fail(update.run.run_id, step_slug, error_message)?;
    fail_run(update)?;
    update.tell(Event::StepFailed(step_slug.to_string()));
    update.tell(Event::RunFailed {
        error_message: error_message.map(str::to_string),
    });
    Ok(())
}

fn fail_run(update: &mut RunUpdate) -> Result<(), Error> {
    update.create_tasks_now()?;
    update.run.status = RunStatus::Failed;
    runs::fail(&update.run)?;
    let cancelled = step_tasks::end_unfinished(update.run.run_id, None, TaskStatus::Cancelled)?;
    update.retire(cancelled);
    Ok(())
}
