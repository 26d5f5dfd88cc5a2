//! The model's rows and messages as lines of text, the same as SQL prints the engine's.

use crate::random_model::json::{number, object, text, Json};
use crate::random_model::rules::{
    run_id, Answer, Claimed, Event, RunStatus, Spot, StepStatus, TaskStatus, World,
};

fn or_null<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map_or("NULL".to_string(), T::to_string)
}

/// The names of the times that are set, each after a space.
fn times<const N: usize>(times: [(bool, &str); N]) -> String {
    let set = times.into_iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, name)| format!(" {name}")).collect()
}

fn lower(status: impl std::fmt::Debug) -> String {
    format!("{status:?}").to_lowercase()
}

impl World {
    fn two_digits(&self, run: usize) -> String {
        format!("{:02x}", self.runs[run].number)
    }

    pub fn run_line(&self, at: usize) -> String {
        let run = &self.runs[at];
        format!(
            "run {} {} {} output {} remaining_steps {}{}",
            self.two_digits(at),
            self.flow(at).slug,
            lower(run.status),
            or_null(&run.output),
            run.remaining_steps,
            times([
                (run.status == RunStatus::Completed, "completed_at"),
                (run.status == RunStatus::Failed, "failed_at"),
            ])
        )
    }

    fn step_line(&self, run: usize, at: usize) -> String {
        let step = &self.runs[run].steps[at];
        format!(
            "step {} {} {} deps {} tasks {} of {} output {} error {} reason {}{}",
            self.two_digits(run),
            self.flow(run).steps[at].slug,
            lower(step.status),
            step.remaining_deps,
            or_null(&step.remaining_tasks),
            or_null(&step.initial_tasks),
            or_null(&step.output),
            or_null(&step.error_message),
            or_null(&step.skip_reason),
            times([
                (step.has_started_at, "started_at"),
                (step.status == StepStatus::Completed, "completed_at"),
                (step.status == StepStatus::Failed, "failed_at"),
                (step.status == StepStatus::Skipped, "skipped_at"),
            ])
        )
    }

    pub fn task_line(&self, at: Spot) -> String {
        let task = self.task(at);
        format!(
            "task {} {}[{}] {} attempts {} requeued {} worker {} message {} {} output {} error {}{}",
            self.two_digits(at.run),
            self.flow(at.run).steps[at.step].slug,
            at.task,
            lower(task.status),
            task.attempts,
            task.requeued,
            or_null(&task.worker),
            task.queue,
            or_null(&task.message),
            or_null(&task.output),
            or_null(&task.error_message),
            times([
                (task.has_started_at, "started_at"),
                (task.status == TaskStatus::Completed, "completed_at"),
                (task.status == TaskStatus::Failed, "failed_at"),
                (task.requeued > 0, "last_requeued_at"),
                (task.permanently_stalled, "permanently_stalled_at"),
            ])
        )
    }

    fn body(&self, at: Spot) -> Json {
        let key = self.key(at);
        object([
            ("flow_slug".to_string(), text(&self.flow(at.run).slug)),
            ("run_id".to_string(), text(&run_id(key.run))),
            ("step_slug".to_string(), text(&key.step)),
            ("task_index".to_string(), number(key.index)),
        ])
    }

    /// Every row and every message.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (run, of_run) in self.runs.iter().enumerate() {
            lines.push(self.run_line(run));
            lines.extend((0..of_run.steps.len()).map(|step| self.step_line(run, step)));
        }
        for at in self.spots() {
            let task = self.task(at);
            lines.push(self.task_line(at));
            let place = if task.archived { "archived" } else { "live" };
            lines.push(format!(
                "{place} message {} {} {}",
                task.queue,
                or_null(&task.message),
                self.body(at)
            ));
        }
        for stray in &self.strays {
            lines.push(format!(
                "live message {} {} {{}}",
                stray.queue,
                or_null(&stray.message)
            ));
        }
        lines
    }

    /// What a call's query returns; none when that says nothing.
    pub fn answer_lines(&self, answer: &Answer) -> Option<Vec<String>> {
        Some(match answer {
            Answer::NotApplicable | Answer::Refused | Answer::Unseen => return None,
            Answer::Run(at) => vec![self.run_line(*at)],
            Answer::Task(at) => at.iter().map(|at| self.task_line(*at)).collect(),
            Answer::Claimed(claimed) => claimed.iter().map(|row| self.claimed_line(row)).collect(),
            Answer::Count(count) => vec![count.to_string()],
            Answer::Bool(value) => vec![value.to_string()],
        })
    }

    fn claimed_line(&self, row: &Claimed) -> String {
        format!(
            "claimed {} {} {}[{}] message {} input {} flow_input {}",
            self.flow(row.at.run).slug,
            self.two_digits(row.at.run),
            self.flow(row.at.run).steps[row.at.step].slug,
            row.at.task,
            or_null(&self.task(row.at).message),
            row.input,
            or_null(&row.flow_input)
        )
    }
}

impl Event {
    /// The event's name.
    pub fn name(&self) -> String {
        match &self.step {
            Some(step) => format!("step:{step}:{}", self.kind),
            None => format!("run:{}", self.kind),
        }
    }

    pub fn is_skipped_with_a_dependency(&self) -> bool {
        let payload = self.payload.to_string();
        payload.contains("\"skip_reason\": \"dependency_skipped\"")
    }

    /// Topic, whether it is private, name and payload.
    pub fn line(&self) -> String {
        format!(
            "pgflow:run:{} f {} {}",
            run_id(self.run),
            self.name(),
            self.payload
        )
    }
}
