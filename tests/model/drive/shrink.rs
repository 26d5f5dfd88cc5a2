//! Makes a failing case smaller: operations, flows and steps are left out as long as engine and model still differ.

use super::{play, Difference};
use crate::random_model::operation::Case;

/// How many smaller cases are tried at most; each takes as long as a seed.
const MOST_TRIES: usize = 400;

/// The smallest failing case found, and how it fails.
pub fn smallest(mut case: Case, mut difference: Difference) -> (Case, Difference) {
    case.operations.truncate(difference.operations);
    let mut tries = 0;
    let mut size = case.operations.len();
    while size > 0 && tries < MOST_TRIES {
        let mut any = false;
        for candidate in smaller(&case, size) {
            tries += 1;
            if let Err(found) = play(&candidate) {
                case = candidate;
                case.operations.truncate(found.operations);
                difference = found;
                any = true;
                break;
            }
            if tries == MOST_TRIES {
                break;
            }
        }
        if !any {
            size /= 2;
        }
    }
    (case, difference)
}

/// The case without any `size` consecutive operations, last ones first; at size 1 also without a flow or a step that
/// nothing depends on.
fn smaller(case: &Case, size: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for start in (0..case.operations.len()).step_by(size).rev() {
        let mut without = case.clone();
        let end = (start + size).min(without.operations.len());
        without.operations.drain(start..end);
        cases.push(without);
    }
    if size > 1 {
        return cases;
    }
    for (at, flow) in case.flows.iter().enumerate() {
        for step in (0..flow.steps.len()).rev() {
            if flow.dependents(step).is_empty() {
                let mut without = case.clone();
                without.flows[at].steps.remove(step);
                cases.push(without);
            }
        }
    }
    let is_routed_to = |queue: &String| {
        let mut steps = case.flows.iter().flat_map(|flow| &flow.steps);
        steps.any(|step| step.queue.as_ref() == Some(queue))
    };
    if case.flows.len() > 1 && !is_routed_to(&case.flows[1].default_queue()) {
        let mut without = case.clone();
        without.flows.pop();
        cases.push(without);
    }
    cases
}
