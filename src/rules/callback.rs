//! What a worker's report about a task counts for.

use crate::model::{RunStatus, StepStatus};

/// Whether a report comes too late to change anything but its message's place, by the statuses read under lock. One
/// that does not still needs its task to be started: a repeated report, or one by a worker that lost the task, finds
/// it otherwise.
pub fn is_late(run: RunStatus, step: StepStatus) -> bool {
    run == RunStatus::Failed || step != StepStatus::Started
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_in_time_only_on_a_started_step_of_a_run_that_did_not_fail() {
        assert!(!is_late(RunStatus::Started, StepStatus::Started));
        assert!(is_late(RunStatus::Failed, StepStatus::Started));
        for step in [
            StepStatus::Created,
            StepStatus::Completed,
            StepStatus::Failed,
            StepStatus::Skipped,
        ] {
            assert!(is_late(RunStatus::Started, step));
        }
    }
}
