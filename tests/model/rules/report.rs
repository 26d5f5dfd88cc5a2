//! Reporting: section 5 of engine.md.

use super::{ending, Answer, RunStatus, Spot, StepStatus, TaskStatus, World};
use crate::random_model::flow::Mode;
use crate::random_model::json::{or_null, Json};
use crate::random_model::operation::{Report, TaskKey};

impl World {
    pub fn report(&mut self, key: &TaskKey, report: &Report) -> Answer {
        match report {
            Report::Completed(output) => self.complete_task(key, output),
            Report::Failed(error) => self.fail_task(key, error),
        }
    }

    /// On a failed run, or about a step that is not started: only the message is archived.
    pub fn is_late(&self, at: Spot) -> bool {
        let run = &self.runs[at.run];
        run.status == RunStatus::Failed || run.steps[at.step].status != StepStatus::Started
    }

    /// The task of a report that is to be acted on; the answer of any other.
    fn accept(&mut self, key: &TaskKey) -> Result<Spot, Answer> {
        let Some(at) = self.find(key) else {
            return Err(Answer::Task(None));
        };
        if self.is_late(at) {
            self.task_mut(at).archived = true;
            return Err(Answer::Task(Some(at)));
        }
        match self.task(at).status {
            TaskStatus::Started => Ok(at),
            _ => Err(Answer::Task(Some(at))),
        }
    }

    pub fn complete_task(&mut self, key: &TaskKey, output: &Option<Json>) -> Answer {
        let at = match self.accept(key) {
            Ok(at) => at,
            Err(answer) => return answer,
        };
        let is_array = output.as_ref().and_then(Json::elements).is_some();
        match self.waiting_map(at) {
            Some(map) if !is_array => self.violate_type(at, map, output),
            _ => self.complete(at, output),
        }
        Answer::Task(Some(at))
    }

    fn complete(&mut self, at: Spot, output: &Option<Json>) {
        let Spot { run, step, .. } = at;
        let task = self.task_mut(at);
        task.status = TaskStatus::Completed;
        task.output = output.clone();
        task.archived = true;
        let is_map = self.flow(run).steps[step].is_map;
        let state = self.step(run, step);
        let remaining = state.remaining_tasks.unwrap_or_default() - 1;
        state.remaining_tasks = Some(remaining);
        if remaining > 0 {
            return;
        }
        let tasks = state.tasks.len();
        let (output, length) = if is_map {
            let outputs = state.tasks.iter().map(|task| or_null(&task.output));
            (Some(Json::Array(outputs.collect())), tasks)
        } else {
            let length = output.as_ref().and_then(Json::elements).map(<[Json]>::len);
            (output.clone(), length.unwrap_or_default())
        };
        self.complete_step(run, step, output);
        self.tell_step_completed(run, step);
        self.release_dependents(run, step, length);
        self.settle(run);
    }

    /// The map that waits for the output of a single step; of several the first by step_index, which engine.md leaves
    /// open. A condition of the map does not matter: it has not been judged yet.
    fn waiting_map(&self, at: Spot) -> Option<usize> {
        let flow = self.flow(at.run);
        if flow.steps[at.step].is_map {
            return None;
        }
        flow.dependents(at.step).into_iter().find(|step| {
            let status = self.runs[at.run].steps[*step].status;
            flow.steps[*step].is_map && status == StepStatus::Created
        })
    }

    fn violate_type(&mut self, at: Spot, map: usize, output: &Option<Json>) {
        let flow = self.flow(at.run);
        let found = output.as_ref().map_or("null", Json::type_name);
        let of_step = format!(
            "[TYPE_VIOLATION] Map step {} expects array input but dependency {} produced {found}",
            flow.steps[map].slug, flow.steps[at.step].slug
        );
        let task = self.task_mut(at);
        task.status = TaskStatus::Failed;
        task.output = output.clone();
        task.error_message = Some(format!(
            "[TYPE_VIOLATION] Produced {found} instead of array"
        ));
        task.archived = true;
        self.fail_step(at.run, at.step, Some(of_step));
        self.fail_run(at.run);
        self.tell_run_failed_by_type(at.run);
        self.tell_step_failed(at.run, at.step);
    }

    fn fail_task(&mut self, key: &TaskKey, error: &Option<String>) -> Answer {
        let at = match self.accept(key) {
            Ok(at) => at,
            Err(answer) => return answer,
        };
        let flow = self.flow(at.run);
        let (most, base) = (flow.max_attempts_of(at.step), flow.base_delay_of(at.step));
        let task = self.task_mut(at);
        if task.attempts >= most {
            task.status = TaskStatus::Failed;
            task.error_message = error.clone();
            task.archived = true;
            self.exhaust(at, error);
            return Answer::Task(Some(at));
        }
        task.status = TaskStatus::Queued;
        task.error_message = error.clone();
        task.has_started_at = false;
        task.stalled = false;
        // A permanently stalled task's message is archived: there is nothing to hide.
        if !task.archived {
            let delay = u64::from(base) << task.attempts.min(31);
            self.hidden.push((at, delay.min(i32::MAX as u64)));
        }
        Answer::Task(Some(at))
    }

    fn exhaust(&mut self, at: Spot, error: &Option<String>) {
        let Spot { run, step, .. } = at;
        match self.flow(run).steps[step].when_exhausted {
            Mode::Fail => self.fail_run_and_step(run, step, error.clone()),
            Mode::Skip => {
                self.skip(run, step, ending::HANDLER_FAILED, error.clone());
                self.release_dependents(run, step, 0);
                self.settle(run);
            }
            Mode::SkipCascade => {
                self.skip(run, step, ending::HANDLER_FAILED, error.clone());
                self.skip_cascade(run, step, ending::HANDLER_FAILED);
                self.complete_run(run);
            }
        }
    }
}
