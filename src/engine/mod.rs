//! The moves that several verbs share.
//!
//! # States
//! - run: started → completed | failed
//! - step: created → started → completed | failed; created → completed (no tasks) | failed (unmet condition);
//!   created or started → skipped
//! - task: queued ⇄ started; started → completed | failed; queued or started → skipped | cancelled
//!
//! A terminal row never changes again. No queued or started task stays on a failed run or a skipped step.
//!
//! # Lock order
//! 1. flow row (deletion; the foreign keys of new runs, states and tasks lock it too, so deletion locks it against them
//!    only when it has the runs),
//! 2. run rows by run_id,
//! 3. step states by step_slug,
//! 4. tasks by (run_id, step_slug, task_index),
//! 5. PGMQ's queue rows.
//!
//! Whoever reports or ends something locks the run first, so step states and the creation of tasks are serialised
//! by it. Claiming and requeueing lock tasks without the run; everyone takes tasks in the same order. A status
//! decides only when it was read under its row's lock, or by the guard of the UPDATE that changes it.

pub mod advance;
pub mod batch;
pub mod compile;
pub mod definition;
pub mod failure;
pub mod outbox;
pub mod report;
pub mod skip;
pub mod start;

use crate::error::Error;
use crate::events::{self, Event};
use crate::model::{MessageRef, RunStatus, StartedStep};
use crate::store::runs::{self, LockedRun};
use outbox::Outbox;

/// One call's work on a locked run. Collects what is written last: the run's counter, events and messages.
pub struct RunUpdate {
    pub run: LockedRun,
    ended_steps: i32,
    events: Vec<Event>,
    outbox: Outbox,
}

impl RunUpdate {
    pub fn new(run: LockedRun) -> Self {
        Self {
            run,
            ended_steps: 0,
            events: Vec::new(),
            outbox: Outbox::default(),
        }
    }

    /// Counts steps as ended; dependents are told separately.
    pub fn end_steps(&mut self, count: usize) {
        self.ended_steps += count as i32;
        self.run.remaining_steps -= count as i32;
    }

    /// Has an event sent when the call ends, after those told before.
    pub fn tell(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Has the tasks of steps that have just started created when the call ends.
    pub fn create_tasks(&mut self, started: Vec<StartedStep>) {
        for step in &started {
            self.tell(Event::StepStarted(step.step_slug.clone()));
        }
        self.outbox.started.extend(started);
    }

    /// Creates at once the tasks that are due, because something is about to happen to all tasks of the run.
    pub fn create_tasks_now(&mut self) -> Result<(), Error> {
        outbox::create_tasks(std::mem::take(&mut self.outbox.started))
    }

    /// Has messages archived when the call ends: nothing will be done about them any more.
    pub fn retire(&mut self, messages: impl IntoIterator<Item = MessageRef>) {
        self.outbox.retired.extend(messages);
    }

    /// Ends the call's work on a run that stays as it is, though no step may remain.
    pub fn save(self) -> Result<(), Error> {
        self.write(false)?.deliver()
    }

    /// Ends the call's work on a run; completes the run when no step remains.
    pub fn finish(self) -> Result<(), Error> {
        self.write(true)?.deliver()
    }

    /// As `finish`, but for the queues: what is to be done there is returned.
    pub fn finish_rows(self) -> Result<Outbox, Error> {
        self.write(true)
    }

    fn write(mut self, completes: bool) -> Result<Outbox, Error> {
        if self.run.status == RunStatus::Started {
            if completes && self.run.remaining_steps == 0 {
                runs::complete(&self.run)?;
                self.tell(Event::RunCompleted);
            } else if self.ended_steps > 0 {
                runs::write_remaining_steps(&self.run)?;
            }
        }
        events::send(self.run.run_id, &self.events)?;
        Ok(self.outbox)
    }
}
