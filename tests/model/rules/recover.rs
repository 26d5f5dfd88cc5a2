//! Recovery of stalled tasks: section 6 of engine.md.

use super::{Answer, RunStatus, StepStatus, TaskStatus, World};
use crate::random_model::operation::TaskKey;

/// A task is given back this often; the next time it is given up.
const MOST_REQUEUES: u32 = 3;

impl World {
    /// Started tasks among these were claimed long ago.
    pub fn make_stalled(&mut self, keys: &[TaskKey]) {
        for at in keys
            .iter()
            .filter_map(|key| self.find(key))
            .collect::<Vec<_>>()
        {
            let task = self.task_mut(at);
            task.stalled |= task.status == TaskStatus::Started;
        }
    }

    pub fn requeue_stalled_tasks(&mut self) -> Answer {
        let mut requeued = 0;
        for at in self.spots() {
            let run = &self.runs[at.run];
            let is_going_on = run.status == RunStatus::Started
                && run.steps[at.step].status == StepStatus::Started;
            let task = self.task_mut(at);
            if !is_going_on
                || task.status != TaskStatus::Started
                || !task.stalled
                || task.permanently_stalled
            {
                continue;
            }
            if task.requeued < MOST_REQUEUES {
                task.status = TaskStatus::Queued;
                task.has_started_at = false;
                task.stalled = false;
                task.worker = None;
                task.requeued += 1;
                requeued += 1;
                self.hidden.push((at, 0));
            } else {
                task.permanently_stalled = true;
                task.archived = true;
            }
        }
        Answer::Count(requeued)
    }
}
