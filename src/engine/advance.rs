//! The single path after steps have become ready: conditions, then steps without tasks, until neither changes
//! anything; then the remaining ready steps start.

use crate::engine::{failure, skip, RunUpdate};
use crate::error::Error;
use crate::events::Event;
use crate::model::Mode;
use crate::store::step_states::{self, ReadyStep, Released};

/// Takes steps that have become ready as far as they go. Ends early when a condition fails the run.
pub fn advance(update: &mut RunUpdate, released: Released) -> Result<(), Error> {
    update.create_tasks(released.started);
    let mut ready = released.ready;
    let mut startable = Vec::new();
    while !ready.is_empty() {
        let Some(cleared) = resolve_conditions(update, ready)? else {
            return Ok(());
        };
        let (taskless, with_tasks): (Vec<_>, Vec<_>) =
            cleared.into_iter().partition(|step| step.tasks == 0);
        startable.extend(with_tasks);
        ready = complete_taskless(update, taskless)?.released;
    }
    start(update, &startable)
}

/// Judges the conditions of ready steps and acts on those not met, also of steps that become ready by a skip.
/// Returns the ready steps that may go on, or None when a condition failed the run.
pub fn resolve_conditions(
    update: &mut RunUpdate,
    mut ready: Vec<ReadyStep>,
) -> Result<Option<Vec<ReadyStep>>, Error> {
    let mut cleared = Vec::new();
    loop {
        let (mut judged, free): (Vec<_>, Vec<_>) =
            ready.into_iter().partition(|step| step.unjudged);
        cleared.extend(free);
        if judged.is_empty() {
            return Ok(Some(cleared));
        }
        judged.sort_by_key(|step| step.step_index);
        let unmet = clear_met(update, judged, &mut cleared)?;
        if let Some((step, _)) = unmet.iter().find(|(_, mode)| *mode == Mode::Fail) {
            failure::by_condition(update, &step.step_slug)?;
            return Ok(None);
        }
        let of_mode = |wanted| {
            unmet
                .iter()
                .filter(move |(_, mode)| *mode == wanted)
                .map(|(step, _)| step.step_slug.as_str())
                .collect::<Vec<_>>()
        };
        ready = skip::unmet(update, &of_mode(Mode::Skip))?;
        skip::cascade(
            update,
            &of_mode(Mode::SkipCascade),
            Some(skip::CONDITION_UNMET),
        )?;
    }
}

/// Moves the steps whose condition is met to `cleared`; returns the others with what is to be done.
fn clear_met(
    update: &RunUpdate,
    steps: Vec<ReadyStep>,
    cleared: &mut Vec<ReadyStep>,
) -> Result<Vec<(ReadyStep, Mode)>, Error> {
    let verdicts = step_states::judge(&update.run, &steps)?;
    let mut unmet = Vec::new();
    for (mut step, verdict) in steps.into_iter().zip(verdicts) {
        if verdict.met {
            step.unjudged = false;
            cleared.push(step);
        } else {
            unmet.push((step, verdict.when_unmet));
        }
    }
    Ok(unmet)
}

/// The ready steps of a run whose condition is met or absent, for calls that do not act on unmet ones.
pub fn cleared(update: &RunUpdate) -> Result<Vec<ReadyStep>, Error> {
    let (judged, mut cleared): (Vec<_>, Vec<_>) = step_states::ready(&update.run)?
        .into_iter()
        .partition(|step| step.unjudged);
    if !judged.is_empty() {
        clear_met(update, judged, &mut cleared)?;
    }
    Ok(cleared)
}

pub struct Taskless {
    pub completed: i32,
    /// Steps that became ready and have tasks, or a condition that nobody has judged.
    pub released: Vec<ReadyStep>,
}

/// Completes steps without tasks, and those without tasks and condition that become ready by it.
pub fn complete_taskless(
    update: &mut RunUpdate,
    mut wave: Vec<ReadyStep>,
) -> Result<Taskless, Error> {
    let mut result = Taskless {
        completed: 0,
        released: Vec::new(),
    };
    while !wave.is_empty() {
        step_states::complete_taskless(&update.run, &wave)?;
        let slugs = step_states::slugs(&wave);
        for slug in &slugs {
            update.tell(Event::TasklessStepCompleted(slug.to_string()));
        }
        update.end_steps(slugs.len());
        result.completed += slugs.len() as i32;
        let released = step_states::release_dependents(&update.run, &slugs)?;
        let (next, others) = released
            .into_iter()
            .partition(|step| step.tasks == 0 && !step.unjudged);
        result.released.extend::<Vec<_>>(others);
        wave = next;
    }
    Ok(result)
}

/// Starts ready steps; their tasks are created when the call ends.
pub fn start(update: &mut RunUpdate, steps: &[ReadyStep]) -> Result<(), Error> {
    if !steps.is_empty() {
        let started = step_states::start(&update.run, steps)?;
        update.create_tasks(started);
    }
    Ok(())
}
