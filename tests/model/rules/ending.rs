//! How steps are skipped and runs fail, with the tasks and messages that this ends.

use super::{Answer, RunStatus, Spot, StepStatus, TaskStatus, World};

pub const CONDITION_UNMET: &str = "condition_unmet";
pub const HANDLER_FAILED: &str = "handler_failed";
const DEPENDENCY_SKIPPED: &str = "dependency_skipped";

impl World {
    /// Skips one step with its unfinished tasks. Its dependents are not told.
    pub fn skip(&mut self, run: usize, step: usize, reason: &'static str, error: Option<String>) {
        let state = self.step(run, step);
        state.status = StepStatus::Skipped;
        state.remaining_tasks = None;
        state.skip_reason = Some(reason);
        state.error_message = error;
        self.runs[run].remaining_steps -= 1;
        self.end_tasks(run, Some(step), TaskStatus::Skipped);
        self.tell_step_skipped(run, step);
    }

    /// Skips a step and its transitive dependents, as far as they have not ended; returns how many.
    pub fn skip_cascade(&mut self, run: usize, root: usize, reason: &'static str) -> usize {
        let mut affected = vec![root];
        for step in root + 1..self.runs[run].steps.len() {
            let deps = &self.flow(run).steps[step].deps;
            if affected
                .iter()
                .any(|at| deps.contains(&self.flow(run).steps[*at].slug))
            {
                affected.push(step);
            }
        }
        affected.retain(|step| {
            let status = self.runs[run].steps[*step].status;
            matches!(status, StepStatus::Created | StepStatus::Started)
        });
        for step in &affected {
            let reason = if *step == root {
                reason
            } else {
                DEPENDENCY_SKIPPED
            };
            self.skip(run, *step, reason, None);
        }
        affected.len()
    }

    /// Only a started run: engine.md does not say what becomes of the unfinished steps of a failed one.
    pub fn force_skip(&mut self, run: usize, step: &str) -> Answer {
        let Some(run) = self.position(run) else {
            return Answer::NotApplicable;
        };
        let Some(step) = self.flow(run).position(step) else {
            return Answer::NotApplicable;
        };
        if self.runs[run].status != RunStatus::Started {
            return Answer::NotApplicable;
        }
        let skipped = self.skip_cascade(run, step, CONDITION_UNMET);
        self.complete_run(run);
        Answer::Count(skipped)
    }

    pub fn fail_by_condition(&mut self, run: usize, step: usize) {
        self.fail_run_and_step(run, step, Some("Condition not met".to_string()));
    }

    pub fn fail_run_and_step(&mut self, run: usize, step: usize, error: Option<String>) {
        self.fail_step(run, step, error.clone());
        self.tell_step_failed(run, step);
        self.fail_run(run);
        self.tell_run_failed(run, &error);
    }

    pub fn fail_step(&mut self, run: usize, step: usize, error: Option<String>) {
        let state = self.step(run, step);
        state.status = StepStatus::Failed;
        state.error_message = error;
    }

    /// Cancels what is unfinished in the run; other step states and the counters stay as they are.
    pub fn fail_run(&mut self, run: usize) {
        self.runs[run].status = RunStatus::Failed;
        self.end_tasks(run, None, TaskStatus::Cancelled);
    }

    /// Ends the queued and started tasks of a step, or of all, and archives their messages.
    fn end_tasks(&mut self, run: usize, step: Option<usize>, status: TaskStatus) {
        let unfinished = |at: &Spot| {
            at.run == run
                && step.is_none_or(|step| at.step == step)
                && matches!(
                    self.task(*at).status,
                    TaskStatus::Queued | TaskStatus::Started
                )
        };
        for at in self
            .spots()
            .into_iter()
            .filter(unfinished)
            .collect::<Vec<_>>()
        {
            let task = self.task_mut(at);
            task.status = status;
            task.archived = true;
        }
    }
}
