//! The model: what must be true of runs, steps, tasks and messages after each call, by engine.md alone. Knows no SQL
//! and nothing of `src/`.

mod advance;
mod claim;
mod ending;
mod events;
mod recover;
mod report;

pub use claim::Claimed;
pub use events::{run_id, Event};

use crate::random_model::flow::Flow;
use crate::random_model::json::Json;
use crate::random_model::operation::{Message, Nudge, Operation, TaskKey};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunStatus {
    Started,
    Completed,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepStatus {
    Created,
    Started,
    Completed,
    Failed,
    Skipped,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TaskStatus {
    Queued,
    Started,
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

pub struct Run {
    pub number: usize,
    pub flow: usize,
    pub input: Json,
    pub status: RunStatus,
    pub output: Option<Json>,
    pub remaining_steps: usize,
    pub steps: Vec<Step>,
}

pub struct Step {
    pub status: StepStatus,
    pub remaining_deps: usize,
    pub remaining_tasks: Option<usize>,
    /// NULL while a map's array is not known.
    pub initial_tasks: Option<usize>,
    pub output: Option<Json>,
    pub error_message: Option<String>,
    pub skip_reason: Option<&'static str>,
    pub has_started_at: bool,
    /// Its condition is met, or it has none.
    pub cleared: bool,
    pub tasks: Vec<Task>,
}

pub struct Task {
    pub status: TaskStatus,
    pub attempts: u32,
    pub requeued: u32,
    pub output: Option<Json>,
    pub error_message: Option<String>,
    pub worker: Option<usize>,
    pub has_started_at: bool,
    pub permanently_stalled: bool,
    /// Started so long ago that a recovery takes it.
    pub stalled: bool,
    pub queue: String,
    /// PGMQ chooses the id: learned after the call that made the task.
    pub message: Option<i64>,
    pub archived: bool,
}

/// A message of nobody's.
pub struct Stray {
    pub queue: String,
    pub message: Option<i64>,
}

/// Where an existing task is: positions in `runs`, `steps`, `tasks`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    pub run: usize,
    pub step: usize,
    pub task: usize,
}

/// What a call returns.
pub enum Answer {
    /// The operation makes no sense here and is left out.
    NotApplicable,
    /// An error; nothing changes.
    Refused,
    /// What is returned says nothing.
    Unseen,
    Run(usize),
    /// The task's row; no row for a task that does not exist.
    Task(Option<Spot>),
    Claimed(Vec<Claimed>),
    Count(usize),
    Bool(bool),
}

#[derive(Default)]
pub struct World {
    pub flows: Vec<Flow>,
    pub runs: Vec<Run>,
    pub strays: Vec<Stray>,
    /// What the last operation sent.
    pub events: Vec<Event>,
    /// Messages whose visibility the last operation set, and the seconds until they are visible.
    pub hidden: Vec<(Spot, u64)>,
    /// Message ids of the last claim without a task, and of tasks of other flows: a WARNING for each kind.
    pub warned: [Vec<i64>; 2],
}

impl World {
    pub fn new(flows: Vec<Flow>) -> Self {
        Self {
            flows,
            ..Self::default()
        }
    }

    pub fn apply(&mut self, operation: &Operation) -> Answer {
        self.events.clear();
        self.hidden.clear();
        self.warned = Default::default();
        match operation {
            Operation::StartFlow { flow, run, input } => self.start_flow(flow, *run, input),
            Operation::Claim {
                flow,
                queue,
                messages,
                worker,
            } => self.start_tasks(flow, queue.as_deref(), &self.ids(messages), *worker),
            Operation::Report(key, report) | Operation::ReportWithMessage(key, report) => {
                self.report(key, report)
            }
            Operation::CompleteMany(reports) => {
                for (key, output) in reports {
                    self.complete_task(key, output);
                }
                Answer::Unseen
            }
            Operation::Recover { stalled, .. } => {
                self.make_stalled(stalled);
                self.requeue_stalled_tasks()
            }
            Operation::Nudge(run, nudge) => match (self.position(*run), nudge) {
                (None, _) => Answer::NotApplicable,
                (Some(at), Nudge::Conditions) => {
                    Answer::Bool(self.runs[at].status != RunStatus::Failed)
                }
                (Some(_), Nudge::Taskless) => Answer::Count(0),
                (Some(_), Nudge::ReadySteps | Nudge::Completion) => Answer::Unseen,
            },
            Operation::ForceSkip { run, step } => self.force_skip(*run, step),
            Operation::Stray { queue } => {
                self.strays.push(Stray {
                    queue: queue.clone(),
                    message: None,
                });
                Answer::Unseen
            }
        }
    }

    pub fn position(&self, run: usize) -> Option<usize> {
        self.runs.iter().position(|known| known.number == run)
    }

    pub fn find(&self, key: &TaskKey) -> Option<Spot> {
        let run = self.position(key.run)?;
        let step = self.flow(run).position(&key.step)?;
        let task = key.index;
        self.runs[run].steps[step].tasks.get(task)?;
        Some(Spot { run, step, task })
    }

    pub fn key(&self, at: Spot) -> TaskKey {
        TaskKey {
            run: self.runs[at.run].number,
            step: self.flow(at.run).steps[at.step].slug.clone(),
            index: at.task,
        }
    }

    /// The flow of a run.
    pub fn flow(&self, run: usize) -> &Flow {
        &self.flows[self.runs[run].flow]
    }

    pub fn step(&mut self, run: usize, step: usize) -> &mut Step {
        &mut self.runs[run].steps[step]
    }

    pub fn task(&self, at: Spot) -> &Task {
        &self.runs[at.run].steps[at.step].tasks[at.task]
    }

    fn task_mut(&mut self, at: Spot) -> &mut Task {
        &mut self.runs[at.run].steps[at.step].tasks[at.task]
    }

    /// PGMQ has given a task's message this id.
    pub fn learn(&mut self, at: Spot, id: i64) {
        self.task_mut(at).message = Some(id);
    }

    /// Every task of every run.
    pub fn spots(&self) -> Vec<Spot> {
        let mut spots = Vec::new();
        for (run, of_run) in self.runs.iter().enumerate() {
            for (step, of_step) in of_run.steps.iter().enumerate() {
                spots.extend((0..of_step.tasks.len()).map(|task| Spot { run, step, task }));
            }
        }
        spots
    }

    /// The ids that stand for messages; those of tasks that do not exist are left out.
    pub fn ids(&self, messages: &[Message]) -> Vec<i64> {
        messages
            .iter()
            .filter_map(|message| match message {
                Message::Of(key) => self.find(key).and_then(|at| self.task(at).message),
                Message::Stray(at) => self.strays.get(*at).and_then(|stray| stray.message),
                Message::Id(id) => Some(*id),
            })
            .collect()
    }
}
