//! What a call does to queues, done last and once for each queue: messages archived, and messages sent for new tasks.

use crate::error::Error;
use crate::model::{MessageRef, QueueName, StartedStep};
use crate::queue;
use crate::store::step_tasks;

#[derive(Default)]
pub struct Outbox {
    pub retired: Vec<MessageRef>,
    pub started: Vec<StartedStep>,
}

impl Outbox {
    pub fn append(&mut self, other: Self) {
        self.retired.extend(other.retired);
        self.started.extend(other.started);
    }

    pub fn deliver(self) -> Result<(), Error> {
        queue::archive(self.retired)?;
        create_tasks(self.started)
    }
}

/// Creates the tasks of started steps: a message for each, sent once per queue and delay, then the rows.
pub fn create_tasks(started: Vec<StartedStep>) -> Result<(), Error> {
    for ((queue, delay), steps) in by_route(&started) {
        let ids = queue::send_tasks(queue, &steps, delay)?;
        step_tasks::insert(queue, &steps, ids)?;
    }
    Ok(())
}

type Route<'a> = (&'a QueueName, i32);

/// Steps grouped by queue and start delay, in the order of each group's first step.
fn by_route(started: &[StartedStep]) -> Vec<(Route<'_>, Vec<&StartedStep>)> {
    let mut groups: Vec<(Route, Vec<&StartedStep>)> = Vec::new();
    for step in started {
        let route = (&step.queue, step.start_delay);
        match groups.iter_mut().find(|(known, _)| *known == route) {
            Some((_, steps)) => steps.push(step),
            None => groups.push((route, vec![step])),
        }
    }
    groups
}
