//! Skipping steps: one by one with their dependents going on, or with everything downstream.

use crate::engine::RunUpdate;
use crate::error::Error;
use crate::events::Event;
use crate::model::TaskStatus;
use crate::store::step_states::{self, ReadyStep};
use crate::store::step_tasks;

pub const CONDITION_UNMET: &str = "condition_unmet";
const HANDLER_FAILED: &str = "handler_failed";

/// Skips steps whose condition is not met; returns the dependents that became ready.
pub fn unmet(update: &mut RunUpdate, steps: &[&str]) -> Result<Vec<ReadyStep>, Error> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    step_states::skip(&update.run, steps, CONDITION_UNMET, None)?;
    tell_skipped(update, steps);
    update.end_steps(steps.len());
    step_states::release_dependents(&update.run, steps)
}

/// Skips a step whose handler used up its attempts, with its unfinished tasks. Its dependents are not told.
pub fn exhausted(
    update: &mut RunUpdate,
    step_slug: &str,
    error_message: Option<&str>,
) -> Result<(), Error> {
    step_states::skip(&update.run, &[step_slug], HANDLER_FAILED, error_message)?;
    update.tell(Event::StepSkippedAfterFailure(step_slug.to_string()));
    update.end_steps(1);
    skip_tasks(update, &[step_slug])
}

/// Skips steps and everything downstream that has not ended; returns how many steps that were.
pub fn cascade(update: &mut RunUpdate, roots: &[&str], reason: Option<&str>) -> Result<i32, Error> {
    if roots.is_empty() {
        return Ok(0);
    }
    let skipped = step_states::skip_cascade(&update.run, roots, reason)?;
    let slugs: Vec<&str> = skipped.iter().map(|step| step.step_slug.as_str()).collect();
    tell_skipped(update, &slugs);
    update.end_steps(slugs.len());
    let started: Vec<&str> = skipped
        .iter()
        .filter(|step| step.was_started)
        .map(|step| step.step_slug.as_str())
        .collect();
    skip_tasks(update, &started)?;
    Ok(skipped.len() as i32)
}

fn tell_skipped(update: &mut RunUpdate, steps: &[&str]) {
    for step in steps {
        update.tell(Event::StepSkipped(step.to_string()));
    }
}

fn skip_tasks(update: &mut RunUpdate, steps: &[&str]) -> Result<(), Error> {
    if !steps.is_empty() {
        let skipped =
            step_tasks::end_unfinished(update.run.run_id, Some(steps), TaskStatus::Skipped)?;
        update.retire(skipped);
    }
    Ok(())
}
