//! Several completions in one call, with the same effect as one by one in the order given.
//!
//! Runs do not see each other, so each is worked off by itself, its reports in order. Tasks that do not end their step
//! are written together with the next that does, or at the end: until a step ends nobody could tell. Runs are locked
//! by run_id before anything else, and queues are served once, at the very end.

use std::collections::{BTreeMap, BTreeSet};

use pgrx::Uuid;

use crate::datum::{Jsonb, Row};
use crate::engine::outbox::Outbox;
use crate::engine::{report, RunUpdate};
use crate::error::Error;
use crate::model::{StepStatus, TaskKey};
use crate::rules::callback::is_late;
use crate::store::runs::{self, LockedRun};
use crate::store::step_states;
use crate::store::step_tasks::{self, BatchTask};

/// A task is done, with this output.
pub struct Report<'a> {
    pub key: TaskKey<'a>,
    pub output: Option<Jsonb>,
}

/// Takes all reports; returns the tasks' rows as they are afterwards, in the order given.
pub fn complete(reports: &[Report]) -> Result<Vec<Row>, Error> {
    let keys: Vec<_> = reports.iter().map(|report| report.key).collect();
    let mut run_ids: Vec<_> = keys.iter().map(|key| key.run_id).collect();
    run_ids.sort_unstable();
    run_ids.dedup();
    let runs = runs::lock_many(run_ids)?;
    let mut of_run: BTreeMap<Uuid, Vec<BatchTask>> = BTreeMap::new();
    for task in step_tasks::lock_started(&keys)? {
        of_run.entry(task.run_id).or_default().push(task);
    }
    let mut outbox = Outbox::default();
    for run in runs {
        let tasks = of_run.remove(&run.run_id).unwrap_or_default();
        outbox.append(complete_in_run(run, tasks, reports)?);
    }
    outbox.deliver()?;
    step_tasks::rows(&keys)
}

fn complete_in_run(
    run: LockedRun,
    tasks: Vec<BatchTask>,
    reports: &[Report],
) -> Result<Outbox, Error> {
    let mut work = RunWork {
        update: RunUpdate::new(run),
        ended: BTreeMap::new(),
        counted: BTreeMap::new(),
        done: Vec::new(),
    };
    let mut taken = BTreeSet::new();
    for task in tasks {
        if let Some(report) = reports.get(task.position) {
            let is_first = taken.insert((report.key.step_slug, report.key.task_index));
            work.take(task, report, is_first)?;
        }
    }
    work.write_done()?;
    work.write_counts()?;
    work.update.finish_rows()
}

/// What is known of a locked run while its reports are taken.
struct RunWork<'a> {
    update: RunUpdate,
    /// Steps that ended in this call.
    ended: BTreeMap<&'a str, StepStatus>,
    /// Tasks done in each step that goes on, written at the end.
    counted: BTreeMap<&'a str, i32>,
    /// Completed tasks that are not written yet: the next step that ends needs them.
    done: Vec<&'a Report<'a>>,
}

impl<'a> RunWork<'a> {
    fn take(&mut self, task: BatchTask, report: &'a Report, is_first: bool) -> Result<(), Error> {
        let step = report.key.step_slug;
        let step_status = *self.ended.get(step).unwrap_or(&task.step_status);
        if is_late(self.update.run.status, step_status) {
            self.update.retire(task.message);
            return Ok(());
        }
        if !task.is_started || !is_first {
            return Ok(());
        }
        let (step_type, output) = (task.step_type, report.output);
        self.update.retire(task.message);
        if let Some(map_step) =
            report::violated_map_step(&self.update.run, step, step_type, output)?
        {
            self.write_done()?;
            report::violate_type(&mut self.update, report.key, output, &map_step)?;
            self.ended.insert(step, StepStatus::Failed);
            return Ok(());
        }
        self.done.push(report);
        let counted = self.counted.entry(step).or_default();
        *counted += 1;
        if task
            .remaining_tasks
            .is_some_and(|remaining| remaining > *counted)
        {
            return Ok(());
        }
        self.counted.remove(step);
        self.write_done()?;
        self.ended.insert(step, StepStatus::Completed);
        report::complete_step(
            &mut self.update,
            step,
            step_type,
            task.initial_tasks,
            output,
        )
    }

    fn write_done(&mut self) -> Result<(), Error> {
        let done = std::mem::take(&mut self.done);
        if done.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = done.iter().map(|report| report.key).collect();
        step_tasks::complete_many(&keys, done.iter().map(|report| report.output).collect())
    }

    fn write_counts(&mut self) -> Result<(), Error> {
        let (steps, counts): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.counted).into_iter().unzip();
        if steps.is_empty() {
            return Ok(());
        }
        step_states::count_tasks_done(self.update.run.run_id, steps, counts)
    }
}
