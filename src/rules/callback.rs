//! What a worker's report about a task counts for, by the statuses read under lock.

use crate::model::{RunStatus, StepStatus, TaskStatus};

#[derive(Debug, PartialEq, Eq)]
pub enum Callback {
    /// The run failed or the step is not running: only the message is put away.
    Late,
    /// The task is not being worked on: a repeated report, or one by a worker that lost the task.
    Ignored,
    Accepted,
}

pub fn judge(run: RunStatus, step: StepStatus, task: TaskStatus) -> Callback {
    if run == RunStatus::Failed || step != StepStatus::Started {
        Callback::Late
    } else if task != TaskStatus::Started {
        Callback::Ignored
    } else {
        Callback::Accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_started_task_of_a_started_step_of_a_run_that_did_not_fail_is_accepted() {
        use RunStatus as R;
        use StepStatus as S;
        use TaskStatus as T;
        assert_eq!(
            judge(R::Started, S::Started, T::Started),
            Callback::Accepted
        );
        assert_eq!(judge(R::Failed, S::Started, T::Started), Callback::Late);
        for step in [S::Created, S::Completed, S::Failed, S::Skipped] {
            assert_eq!(judge(R::Started, step, T::Started), Callback::Late);
        }
        for task in [T::Queued, T::Completed, T::Failed, T::Skipped, T::Cancelled] {
            assert_eq!(judge(R::Started, S::Started, task), Callback::Ignored);
        }
    }
}
