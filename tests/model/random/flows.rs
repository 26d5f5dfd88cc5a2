//! Random flows: up to 30 steps, most with fewer.

use super::Random;
use crate::random_model::flow::{Flow, Mode, StepDefinition};
use crate::random_model::json::Json;
use crate::random_model::operation::SIDE_QUEUE;

/// First letters of step slugs, so that alphabetical order is not the order of definition.
const LETTERS: [&str; 6] = ["m", "b", "Z", "a", "_", "sendMail"];

impl Random {
    /// `other_queue` is the queue of another flow.
    pub fn flow(&mut self, slug: &str, most_steps: usize, other_queue: &str) -> Flow {
        let most = self
            .weighted(&[(10, 2), (50, 7), (28, 14), (12, 30)])
            .min(most_steps);
        let count = self.below(most + 1);
        let has_root_maps = self.chance(40);
        let other_queues = if self.chance(50) { 35 } else { 0 };
        let mut steps: Vec<StepDefinition> = Vec::new();
        for index in 0..count {
            let mut step = self.step(index, &steps, has_root_maps);
            if self.chance(other_queues) {
                let queue = if self.chance(70) {
                    SIDE_QUEUE
                } else {
                    other_queue
                };
                step.queue = Some(queue.to_string());
            }
            steps.push(step);
        }
        Flow {
            slug: slug.to_string(),
            max_attempts: self.weighted(&[(2, 0), (3, 1), (5, 2), (3, 3)]),
            base_delay: self.weighted(&[(3, 5), (1, 0), (1, 2_000_000_000)]),
            timeout: self.weighted(&[(1, 60), (1, 20)]),
            steps,
        }
    }

    fn step(
        &mut self,
        index: usize,
        before: &[StepDefinition],
        has_root_maps: bool,
    ) -> StepDefinition {
        let is_map = self.chance(35) && (index > 0 || has_root_maps);
        let deps = self.deps(is_map, before, has_root_maps);
        let pattern = |random: &mut Self, percent| {
            random.chance(percent).then(|| match deps.is_empty() {
                true => random.input_pattern(),
                false => random.deps_pattern(&deps),
            })
        };
        let conditional = self.chance(35);
        let required = pattern(self, if conditional { 70 } else { 0 });
        let forbidden = pattern(self, if conditional { 50 } else { 0 });
        let modes = |fail| {
            [
                (fail, Mode::Fail),
                (40, Mode::Skip),
                (25, Mode::SkipCascade),
            ]
        };
        StepDefinition {
            slug: format!("{}{index}", LETTERS[self.below(LETTERS.len())]),
            is_map,
            deps,
            required,
            forbidden,
            when_unmet: self.weighted(&modes(12)),
            when_exhausted: self.weighted(&modes(25)),
            max_attempts: self.weighted(&[
                (5, None),
                (1, Some(0)),
                (2, Some(1)),
                (2, Some(2)),
                (2, Some(3)),
            ]),
            base_delay: self.weighted(&[(4, None), (1, Some(1)), (1, Some(0))]),
            timeout: self.weighted(&[(4, None), (1, Some(7)), (1, Some(100))]),
            start_delay: self.weighted(&[(5, None), (1, Some(0)), (1, Some(30))]),
            queue: None,
        }
    }

    /// Slugs of earlier steps, mostly of late ones.
    fn deps(
        &mut self,
        is_map: bool,
        before: &[StepDefinition],
        has_root_maps: bool,
    ) -> Vec<String> {
        let count = match is_map {
            true => self.weighted(&[(if has_root_maps { 2 } else { 0 }, 0), (8, 1)]),
            false => self.weighted(&[(3, 0), (9, 1), (6, 2), (3, 3)]),
        };
        let mut deps: Vec<String> = Vec::new();
        for _ in 0..count.min(before.len()) {
            let reach = if self.chance(70) { 4 } else { before.len() };
            let at = before.len() - 1 - self.below(reach.min(before.len()));
            if !deps.contains(&before[at].slug) {
                deps.push(before[at].slug.clone());
            }
        }
        deps
    }

    /// An input that fits the flow, mostly.
    pub fn input(&mut self, flow: &Flow) -> Json {
        match flow.has_root_map() {
            true if self.chance(95) => self.elements(),
            _ => self.value(),
        }
    }
}
