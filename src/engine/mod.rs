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
//! 1. flow row (only definition and deletion lock it),
//! 2. run rows by run_id,
//! 3. step states by step_slug,
//! 4. tasks by (run_id, step_slug, task_index),
//! 5. PGMQ's queue rows.
//!
//! Whoever reports or ends something locks the run first, so step states and the creation of tasks are serialised
//! by it. Claiming and requeueing lock tasks without the run; everyone takes tasks in the same order. A status
//! decides only when it was read under its row's lock, or by the guard of the UPDATE that changes it.

pub mod advance;
pub mod compile;
pub mod definition;
pub mod failure;
pub mod report;
pub mod skip;
pub mod start;

use crate::error::Error;
use crate::events;
use crate::model::{MessageRef, RunStatus};
use crate::queue;
use crate::store::runs::{self, LockedRun};

/// One call's work on a locked run. Collects what is written last: messages to archive and the run's counter.
pub struct RunUpdate {
    pub run: LockedRun,
    ended_steps: i32,
    retired: Vec<MessageRef>,
}

impl RunUpdate {
    pub fn new(run: LockedRun) -> Self {
        Self {
            run,
            ended_steps: 0,
            retired: Vec::new(),
        }
    }

    /// Counts steps as ended; dependents are told separately.
    pub fn end_steps(&mut self, count: usize) {
        self.ended_steps += count as i32;
        self.run.remaining_steps -= count as i32;
    }

    /// Has messages archived when the call ends: nothing will be done about them any more.
    pub fn retire(&mut self, messages: impl IntoIterator<Item = MessageRef>) {
        self.retired.extend(messages);
    }

    /// Archives what was retired and writes the run's counter.
    pub fn save(self) -> Result<(), Error> {
        queue::archive(self.retired)?;
        if self.run.status == RunStatus::Started && self.ended_steps > 0 {
            runs::write_remaining_steps(&self.run)?;
        }
        Ok(())
    }

    /// As `save`, and completes the run when no step remains.
    pub fn finish(self) -> Result<(), Error> {
        if self.run.status != RunStatus::Started || self.run.remaining_steps > 0 {
            return self.save();
        }
        queue::archive(self.retired)?;
        runs::complete(&self.run)?;
        events::run_completed(self.run.run_id)
    }
}
