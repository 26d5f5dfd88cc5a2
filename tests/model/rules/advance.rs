//! How a run begins and goes on: section 3 of engine.md.

use super::{ending, Answer, Run, RunStatus, Spot, Step, StepStatus, Task, TaskStatus, World};
use crate::random_model::flow::Mode;
use crate::random_model::json::{object, or_null, Json};

impl World {
    pub fn start_flow(&mut self, slug: &str, number: usize, input: &Json) -> Answer {
        let Some(flow) = self.flows.iter().position(|flow| flow.slug == slug) else {
            return Answer::Refused;
        };
        let elements = input.elements().map(<[Json]>::len);
        if self.position(number).is_some()
            || (self.flows[flow].has_root_map() && elements.is_none())
        {
            return Answer::Refused;
        }
        let steps: Vec<_> = self.flows[flow]
            .steps
            .iter()
            .map(|step| Step {
                status: StepStatus::Created,
                remaining_deps: step.deps.len(),
                remaining_tasks: None,
                initial_tasks: match (step.is_map, step.deps.is_empty()) {
                    (false, _) => Some(1),
                    (true, true) => elements,
                    (true, false) => None,
                },
                output: None,
                error_message: None,
                skip_reason: None,
                has_started_at: false,
                cleared: !step.has_condition(),
                tasks: Vec::new(),
            })
            .collect();
        self.runs.push(Run {
            number,
            flow,
            input: input.clone(),
            status: RunStatus::Started,
            output: None,
            remaining_steps: steps.len(),
            steps,
        });
        let run = self.runs.len() - 1;
        self.tell_run_started(run);
        self.settle(run);
        Answer::Run(run)
    }

    /// Conditions and taskless steps in turn until neither changes anything; then ready steps start, and the run
    /// completes if nothing remains.
    pub fn settle(&mut self, run: usize) {
        loop {
            if !self.resolve_conditions(run) {
                return;
            }
            if !self.complete_taskless_steps(run) {
                break;
            }
        }
        self.start_ready_steps(run);
        self.complete_run(run);
    }

    fn ready_steps(&self, run: usize) -> Vec<usize> {
        let steps = &self.runs[run].steps;
        (0..steps.len())
            .filter(|at| steps[*at].status == StepStatus::Created && steps[*at].remaining_deps == 0)
            .collect()
    }

    /// False when the run fails. A round judges the steps that are ready when it begins; a step that becomes ready by
    /// a skip of this round is judged in the next one, whatever its mode (engine.md does not say, and this is the only
    /// reading in which `fail` always comes first).
    fn resolve_conditions(&mut self, run: usize) -> bool {
        loop {
            let mut unmet = Vec::new();
            for step in self.ready_steps(run) {
                if self.runs[run].steps[step].cleared {
                    continue;
                }
                if self.is_condition_met(run, step) {
                    self.step(run, step).cleared = true;
                } else {
                    unmet.push((step, self.flow(run).steps[step].when_unmet));
                }
            }
            if unmet.is_empty() {
                return true;
            }
            if let Some((step, _)) = unmet.iter().find(|(_, mode)| *mode == Mode::Fail) {
                self.fail_by_condition(run, *step);
                return false;
            }
            for (step, _) in unmet.iter().filter(|(_, mode)| *mode == Mode::Skip) {
                self.skip(run, *step, ending::CONDITION_UNMET, None);
                self.release_dependents(run, *step, 0);
            }
            for (step, _) in unmet.iter().filter(|(_, mode)| *mode == Mode::SkipCascade) {
                self.skip_cascade(run, *step, ending::CONDITION_UNMET);
            }
        }
    }

    fn is_condition_met(&self, run: usize, step: usize) -> bool {
        let definition = &self.flow(run).steps[step];
        let input = match definition.deps.is_empty() {
            true => self.runs[run].input.clone(),
            false => self.outputs_of_deps(run, step),
        };
        let has = |pattern: &Json| input.contains(pattern);
        definition.required.as_ref().is_none_or(has)
            && !definition.forbidden.as_ref().is_some_and(has)
    }

    /// `{dep_slug: output}` over the completed dependencies.
    pub fn outputs_of_deps(&self, run: usize, step: usize) -> Json {
        let flow = self.flow(run);
        let deps = flow.steps[step].deps.iter().filter_map(|dep| {
            let state = &self.runs[run].steps[flow.position(dep)?];
            (state.status == StepStatus::Completed).then(|| (dep.clone(), or_null(&state.output)))
        });
        object(deps)
    }

    /// Whether any completed. Those with a condition wait until it has been judged.
    fn complete_taskless_steps(&mut self, run: usize) -> bool {
        let mut any = false;
        loop {
            let taskless: Vec<_> = self
                .ready_steps(run)
                .into_iter()
                .filter(|at| {
                    let step = &self.runs[run].steps[*at];
                    step.cleared && step.initial_tasks == Some(0)
                })
                .collect();
            if taskless.is_empty() {
                return any;
            }
            any = true;
            for step in taskless {
                let is_map = self.flow(run).steps[step].is_map;
                self.step(run, step).has_started_at = true;
                self.complete_step(run, step, is_map.then(|| Json::Array(Vec::new())));
                self.tell_taskless_step_completed(run, step);
                self.release_dependents(run, step, 0);
            }
        }
    }

    pub fn complete_step(&mut self, run: usize, step: usize, output: Option<Json>) {
        let state = self.step(run, step);
        state.status = StepStatus::Completed;
        state.remaining_tasks = Some(0);
        state.output = output;
        self.runs[run].remaining_steps -= 1;
    }

    /// Tells dependents that a step has ended; a map among them learns the number of its tasks.
    pub fn release_dependents(&mut self, run: usize, step: usize, tasks: usize) {
        for dependent in self.flow(run).dependents(step) {
            let is_map = self.flow(run).steps[dependent].is_map;
            let state = self.step(run, dependent);
            if state.status == StepStatus::Created {
                state.remaining_deps -= 1;
                if is_map {
                    state.initial_tasks = Some(tasks);
                }
            }
        }
    }

    fn start_ready_steps(&mut self, run: usize) {
        for step in self.ready_steps(run) {
            let count = self.runs[run].steps[step].initial_tasks.unwrap_or_default();
            let queue = self.flow(run).queue_of(step);
            let delay = self.flow(run).steps[step].start_delay.unwrap_or_default();
            let state = self.step(run, step);
            state.status = StepStatus::Started;
            state.has_started_at = true;
            state.remaining_tasks = Some(count);
            state.tasks = (0..count).map(|_| Task::queued(&queue)).collect();
            self.tell_step_started(run, step);
            for task in 0..count {
                self.hidden.push((Spot { run, step, task }, delay.into()));
            }
        }
    }

    pub fn complete_run(&mut self, run: usize) {
        if self.runs[run].status != RunStatus::Started || self.runs[run].remaining_steps > 0 {
            return;
        }
        let flow = self.flow(run);
        let leaves: Vec<_> = (0..flow.steps.len())
            .filter(|step| flow.dependents(*step).is_empty())
            .map(|step| (flow.steps[step].slug.clone(), &self.runs[run].steps[step]))
            .filter(|(_, state)| state.status == StepStatus::Completed)
            .map(|(slug, state)| (slug, or_null(&state.output)))
            .collect();
        let of_run = &mut self.runs[run];
        of_run.status = RunStatus::Completed;
        of_run.output = (!leaves.is_empty()).then(|| object(leaves));
        self.tell_run_completed(run);
    }
}

impl Task {
    fn queued(queue: &str) -> Self {
        Self {
            status: TaskStatus::Queued,
            attempts: 0,
            requeued: 0,
            output: None,
            error_message: None,
            worker: None,
            has_started_at: false,
            permanently_stalled: false,
            stalled: false,
            queue: queue.to_string(),
            message: None,
            archived: false,
        }
    }
}
