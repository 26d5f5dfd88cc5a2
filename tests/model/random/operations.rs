//! Random operations. They are drawn while the model runs, so that most make sense, and some do not.

use super::Random;
use crate::random_model::json::Json;
use crate::random_model::operation::{
    Case, Message, Nudge, Operation, Report, TaskKey, Worker, SIDE_QUEUE,
};
use crate::random_model::rules::{Run, RunStatus, Spot, TaskStatus, World};

const MOST_RUNS: usize = 3;
/// What is done after every run has ended.
const LATE_OPERATIONS: usize = 5;

pub fn case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let has_second = random.chance(60);
    let other_queue = if has_second { "second" } else { SIDE_QUEUE };
    let mut flows = vec![random.flow("OrderFlow", 30, other_queue)];
    if has_second {
        flows.push(random.flow("second", 5, "orderflow"));
    }
    let steps: usize = flows.iter().map(|flow| flow.steps.len()).sum();
    let most = 25 + 6 * steps;
    let mut drawer = Drawer {
        runs: 1 + random.below(MOST_RUNS),
        world: World::new(flows.clone()),
        random,
    };
    let mut operations = Vec::new();
    let mut late = 0;
    while operations.len() < most && late < LATE_OPERATIONS {
        let operation = drawer.operation();
        drawer.world.apply(&operation);
        drawer.world.number_messages();
        operations.push(operation);
        late += usize::from(drawer.is_over());
    }
    Case { flows, operations }
}

#[derive(Clone, Copy)]
enum Kind {
    Start,
    Claim,
    OddClaim,
    Complete,
    CompleteMany,
    Fail,
    OddReport,
    Recover,
    Nudge,
    ForceSkip,
    Stray,
}

struct Drawer {
    random: Random,
    world: World,
    /// How many runs there are to be.
    runs: usize,
}

impl Drawer {
    fn is_over(&self) -> bool {
        let is_started = |run: &Run| run.status == RunStatus::Started;
        self.world.runs.len() >= self.runs && !self.world.runs.iter().any(is_started)
    }

    fn operation(&mut self) -> Operation {
        if self.world.runs.is_empty() {
            return self.start();
        }
        loop {
            let missing = self.world.runs.len() < self.runs;
            let kind = self.random.weighted(&[
                (if missing { 10 } else { 1 }, Kind::Start),
                (36, Kind::Claim),
                (8, Kind::OddClaim),
                (44, Kind::Complete),
                (6, Kind::CompleteMany),
                (14, Kind::Fail),
                (12, Kind::OddReport),
                (9, Kind::Recover),
                (3, Kind::Nudge),
                (1, Kind::ForceSkip),
                (2, Kind::Stray),
            ]);
            let drawn = match kind {
                Kind::Start => Some(self.start()),
                Kind::Claim => self.claim(),
                Kind::OddClaim => Some(self.odd_claim()),
                Kind::Complete => self.complete(),
                Kind::CompleteMany => self.complete_many(),
                Kind::Fail => self.fail(),
                Kind::OddReport => Some(self.odd_report()),
                Kind::Recover => self.recover(),
                Kind::Nudge => Some(self.nudge()),
                Kind::ForceSkip => self.force_skip(),
                Kind::Stray => Some(Operation::Stray {
                    queue: self.queue(),
                }),
            };
            if let Some(operation) = drawn {
                return operation;
            }
        }
    }

    /// A new run, or once in a while one whose number exists.
    fn start(&mut self) -> Operation {
        let known = self.world.runs.len();
        let run = match known < self.runs && self.random.chance(95) {
            true => known + 1,
            false => self.random.below(known) + 1,
        };
        let flow = self.random.below(self.world.flows.len());
        let flow = if self.random.chance(40) { flow } else { 0 };
        Operation::StartFlow {
            run,
            flow: self.world.flows[flow].slug.clone(),
            input: self.random.input(&self.world.flows[flow]),
        }
    }

    fn spots_with(&self, status: TaskStatus) -> Vec<Spot> {
        let spots = self.world.spots().into_iter();
        spots
            .filter(|at| self.world.task(*at).status == status)
            .collect()
    }

    fn queue(&mut self) -> String {
        let queues: Vec<_> = self
            .world
            .flows
            .iter()
            .map(|flow| flow.default_queue())
            .collect();
        match self.random.pick(&queues) {
            Some(queue) if self.random.chance(70) => queue.clone(),
            _ => SIDE_QUEUE.to_string(),
        }
    }

    fn worker(&mut self) -> Worker {
        self.random.weighted(&[
            (45, Worker::Registered(0)),
            (45, Worker::Registered(1)),
            (9, Worker::Nobody),
            (1, Worker::Unregistered),
        ])
    }

    /// As a worker does: messages of one queue, for the flow of the first of them.
    fn claim(&mut self) -> Option<Operation> {
        let queued = self.spots_with(TaskStatus::Queued);
        let first = *self.random.pick(&queued)?;
        let queue = self.world.task(first).queue.clone();
        let flow = self.world.flow(first.run).slug.clone();
        let mut spots = vec![first];
        if self.random.chance(70) {
            let same_queue = |at: &Spot| self.world.task(*at).queue == queue;
            let others: Vec<_> = queued.iter().copied().filter(same_queue).collect();
            spots.extend(self.random.some_of(&others, 60));
        }
        let mut messages: Vec<_> = spots
            .iter()
            .map(|at| Message::Of(self.world.key(*at)))
            .collect();
        if self.random.chance(10) {
            messages.push(self.message());
        }
        let queue = if queue == flow.to_lowercase() && self.random.chance(60) {
            None
        } else if self.random.chance(15) {
            Some(queue.to_uppercase())
        } else {
            Some(queue)
        };
        Some(Operation::Claim {
            flow,
            queue,
            messages,
            worker: self.worker(),
        })
    }

    /// Any messages, of any flow and queue.
    fn odd_claim(&mut self) -> Operation {
        let count = self.random.below(5);
        let messages = (0..count).map(|_| self.message()).collect();
        let flow = match self.random.pick(&self.world.flows) {
            Some(flow) if self.random.chance(90) => flow.slug.clone(),
            _ => "nobody".to_string(),
        };
        Operation::Claim {
            flow,
            queue: self.random.chance(75).then(|| self.queue()),
            messages,
            worker: self.worker(),
        }
    }

    fn message(&mut self) -> Message {
        match self.random.below(10) {
            0 => Message::Id(9_007_199_254_740_993),
            1 => Message::Id(self.random.below(4) as i64),
            2 => Message::Stray(self.random.below(self.world.strays.len())),
            _ => Message::Of(self.any_task()),
        }
    }

    /// A task of whatever status, or one that does not exist.
    fn any_task(&mut self) -> TaskKey {
        let spots = self.world.spots();
        let mut key = match self.random.pick(&spots) {
            Some(at) => self.world.key(*at),
            None => TaskKey {
                run: 1,
                step: "nobody".to_string(),
                index: 0,
            },
        };
        match self.random.below(30) {
            0 => key.run = 200,
            1 => key.step = "nobody".to_string(),
            2 => key.index += 1,
            _ => {}
        }
        key
    }

    fn complete(&mut self) -> Option<Operation> {
        let started = self.spots_with(TaskStatus::Started);
        let key = self.world.key(*self.random.pick(&started)?);
        let output = self.output(&key);
        Some(Operation::Report(key, Report::Completed(output)))
    }

    fn complete_many(&mut self) -> Option<Operation> {
        let started = self.spots_with(TaskStatus::Started);
        let mut keys: Vec<_> = started.into_iter().map(|at| self.world.key(at)).collect();
        if keys.is_empty() {
            return None;
        }
        keys = self.random.some_of(&keys, 50);
        if self.random.chance(30) {
            keys.push(self.any_task());
        }
        let reports = keys.into_iter().map(|key| {
            let output = self.output(&key);
            (key, output)
        });
        Some(Operation::CompleteMany(reports.collect()))
    }

    /// An array where a map waits for one, mostly.
    fn output(&mut self, key: &TaskKey) -> Option<Json> {
        let waits = self.world.position(key.run).is_some_and(|run| {
            let flow = self.world.flow(run);
            let step = flow.position(&key.step);
            let dependents = step.map(|step| flow.dependents(step)).unwrap_or_default();
            dependents.iter().any(|step| flow.steps[*step].is_map)
        });
        if waits && self.random.chance(92) {
            return Some(self.random.elements());
        }
        (!self.random.chance(5)).then(|| self.random.value())
    }

    fn fail(&mut self) -> Option<Operation> {
        let started = self.spots_with(TaskStatus::Started);
        let key = self.world.key(*self.random.pick(&started)?);
        Some(Operation::Report(key, self.failure()))
    }

    fn failure(&mut self) -> Report {
        let texts = [
            Some("handler broke"),
            Some("it's 100% \"broken\""),
            Some(""),
            None,
        ];
        Report::Failed(
            self.random
                .weighted(&texts.map(|text| (1, text)))
                .map(str::to_string),
        )
    }

    fn odd_report(&mut self) -> Operation {
        let key = self.any_task();
        let report = match self.random.chance(50) {
            true => Report::Completed(self.output(&key)),
            false => self.failure(),
        };
        match self.random.chance(50) {
            true => Operation::Report(key, report),
            false => Operation::ReportWithMessage(key, report),
        }
    }

    /// Mostly those that were requeued most often, so that some are given up.
    fn recover(&mut self) -> Option<Operation> {
        let started = self.spots_with(TaskStatus::Started);
        let requeued = |at: &Spot| self.world.task(*at).requeued;
        let most = started.iter().map(requeued).max()?;
        let percent = if self.random.chance(50) { 100 } else { 40 };
        let mut stalled = Vec::new();
        let mut almost = Vec::new();
        for at in started {
            let key = self.world.key(at);
            let is_candidate = self.world.task(at).requeued == most || self.random.chance(30);
            match is_candidate && self.random.chance(percent) {
                true => stalled.push(key),
                false if self.random.chance(50) => almost.push(key),
                false => {}
            }
        }
        Some(Operation::Recover { stalled, almost })
    }

    fn nudge(&mut self) -> Operation {
        let run = self.random.below(self.world.runs.len()) + 1;
        let nudges = [
            Nudge::Conditions,
            Nudge::Taskless,
            Nudge::ReadySteps,
            Nudge::Completion,
        ];
        Operation::Nudge(run, self.random.weighted(&nudges.map(|nudge| (1, nudge))))
    }

    fn force_skip(&mut self) -> Option<Operation> {
        let is_started = |run: &&Run| run.status == RunStatus::Started;
        let started: Vec<_> = self.world.runs.iter().filter(is_started).collect();
        let run = self.random.pick(&started)?;
        let step = self.random.pick(&self.world.flows[run.flow].steps)?;
        Some(Operation::ForceSkip {
            run: run.number,
            step: step.slug.clone(),
        })
    }
}

impl World {
    /// Gives messages the ids that PGMQ will probably give them.
    fn number_messages(&mut self) {
        for at in self.spots() {
            if self.task(at).message.is_none() {
                let id = self.next_id(&self.task(at).queue.clone());
                self.learn(at, id);
            }
        }
        for at in 0..self.strays.len() {
            if self.strays[at].message.is_none() {
                self.strays[at].message = Some(self.next_id(&self.strays[at].queue.clone()));
            }
        }
    }

    fn next_id(&self, queue: &str) -> i64 {
        let of_tasks = self.spots().into_iter().filter_map(|at| {
            let task = self.task(at);
            task.message.filter(|_| task.queue == queue)
        });
        let of_strays = self
            .strays
            .iter()
            .filter_map(|stray| stray.message.filter(|_| stray.queue == queue));
        of_tasks.chain(of_strays).max().unwrap_or_default() + 1
    }
}
