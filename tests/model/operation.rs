//! What a case does, one call or a few after the other. Operations name tasks, not message ids, so that a case can be
//! replayed after others were taken out of it.

use crate::random_model::flow::Flow;
use crate::random_model::json::Json;

/// Two flows at most and what is done with them.
#[derive(Clone, Debug)]
pub struct Case {
    pub flows: Vec<Flow>,
    pub operations: Vec<Operation>,
}

/// A queue that is no flow's own; steps of several flows are routed to it.
pub const SIDE_QUEUE: &str = "side";

impl Case {
    pub fn queues(&self) -> Vec<String> {
        let own = self.flows.iter().map(Flow::default_queue);
        own.chain([SIDE_QUEUE.to_string()]).collect()
    }
}

/// A task that may or may not exist.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskKey {
    pub run: usize,
    pub step: String,
    pub index: usize,
}

#[derive(Clone, Debug)]
pub enum Message {
    /// The message of a task; nothing when there is no such task.
    Of(TaskKey),
    /// A message that no task knows, by the order in which they were sent.
    Stray(usize),
    /// Whatever has this id in the queue, if anything.
    Id(i64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Worker {
    Nobody,
    Registered(usize),
    Unregistered,
}

#[derive(Clone, Debug)]
pub enum Report {
    /// `None` is SQL NULL.
    Completed(Option<Json>),
    Failed(Option<String>),
}

/// The moves that every call makes by itself: by hand they find nothing to do.
#[derive(Clone, Copy, Debug)]
pub enum Nudge {
    Conditions,
    Taskless,
    ReadySteps,
    Completion,
}

#[derive(Clone, Debug)]
pub enum Operation {
    StartFlow {
        flow: String,
        run: usize,
        input: Json,
    },
    /// start_tasks; without a queue the call has three arguments.
    Claim {
        flow: String,
        queue: Option<String>,
        messages: Vec<Message>,
        worker: Worker,
    },
    Report(TaskKey, Report),
    /// A report whose message is back in the queue first, if the report comes too late.
    ReportWithMessage(TaskKey, Report),
    /// complete_tasks, or complete_task one by one where the former does not exist.
    CompleteMany(Vec<(TaskKey, Option<Json>)>),
    /// Some started tasks are made to look stalled, some almost, then requeue_stalled_tasks is called.
    Recover {
        stalled: Vec<TaskKey>,
        almost: Vec<TaskKey>,
    },
    Nudge(usize, Nudge),
    /// _cascade_force_skip_steps and maybe_complete_run, on a started run.
    ForceSkip {
        run: usize,
        step: String,
    },
    /// A message that pgflow did not send.
    Stray {
        queue: String,
    },
}
