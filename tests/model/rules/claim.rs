//! Claiming: section 4 of engine.md.

use super::{Answer, RunStatus, Spot, StepStatus, TaskStatus, World};
use crate::random_model::json::{object, Json};
use crate::random_model::operation::Worker;

/// A message stays invisible for the step's timeout and this many seconds more.
const GRACE_SECONDS: u64 = 2;

pub struct Claimed {
    pub at: Spot,
    pub input: Json,
    pub flow_input: Option<Json>,
}

impl World {
    pub fn start_tasks(
        &mut self,
        flow: &str,
        queue: Option<&str>,
        ids: &[i64],
        worker: Worker,
    ) -> Answer {
        let queue = queue.unwrap_or(flow).to_lowercase();
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let mut claimable = Vec::new();
        for id in ids {
            match self.task_of_message(&queue, id) {
                None => self.warned[0].push(id),
                Some(at) if self.flow(at.run).slug != flow => self.warned[1].push(id),
                Some(at) if self.is_claimable(at) => claimable.push(at),
                Some(_) => {}
            }
        }
        // A worker that nobody knows breaks a foreign key, which is there only where a task is claimed.
        let vanished = claimable.iter().any(|at| self.task(*at).archived);
        if !claimable.is_empty() && (worker == Worker::Unregistered || vanished) {
            self.warned = Default::default();
            return Answer::Refused;
        }
        for at in &claimable {
            let timeout = self.flow(at.run).timeout_of(at.step);
            let task = self.task_mut(*at);
            task.status = TaskStatus::Started;
            task.attempts += 1;
            task.has_started_at = true;
            task.stalled = false;
            task.worker = match worker {
                Worker::Registered(worker) => Some(worker),
                Worker::Nobody | Worker::Unregistered => None,
            };
            self.hidden.push((*at, u64::from(timeout) + GRACE_SECONDS));
        }
        Answer::Claimed(claimable.into_iter().map(|at| self.claimed(at)).collect())
    }

    fn task_of_message(&self, queue: &str, id: i64) -> Option<Spot> {
        self.spots().into_iter().find(|at| {
            let task = self.task(*at);
            task.queue == queue && task.message == Some(id)
        })
    }

    fn is_claimable(&self, at: Spot) -> bool {
        let run = &self.runs[at.run];
        run.status == RunStatus::Started
            && run.steps[at.step].status == StepStatus::Started
            && self.task(at).status == TaskStatus::Queued
    }

    fn claimed(&self, at: Spot) -> Claimed {
        let run = &self.runs[at.run];
        let flow = self.flow(at.run);
        let step = &flow.steps[at.step];
        let of_dep = |dep: &String| {
            flow.position(dep)
                .and_then(|dep| run.steps[dep].output.as_ref())
        };
        let array = step.deps.first().map_or(Some(&run.input), of_dep);
        let element = array
            .and_then(Json::elements)
            .and_then(|array| array.get(at.task));
        let is_root = step.deps.is_empty();
        Claimed {
            at,
            input: match (step.is_map, is_root) {
                (true, _) => element.cloned().unwrap_or(Json::Null),
                (false, true) => object([]),
                (false, false) => self.outputs_of_deps(at.run, at.step),
            },
            flow_input: (is_root && !step.is_map).then(|| run.input.clone()),
        }
    }
}
