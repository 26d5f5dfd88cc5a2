//! Behaviour tests: a file per subject, a test per rule, named like the rule. Each test runs inside the backend in
//! a transaction of its own that is rolled back.

pub mod support;

mod add_step;
mod archive_task_message;
mod calculate_retry_delay;
mod cascade_complete_taskless_steps;
mod cascade_force_skip_steps;
mod cascade_resolve_conditions;
mod catalog;
mod compile;
mod complete_task;
mod complete_tasks;
mod composition;
mod conditions;
mod create_flow;
mod cron;
mod delete_flow;
mod events;
mod exhausted;
mod fail_task;
mod graphs;
mod late_callbacks;
mod maybe_complete_run;
mod poll_for_tasks;
mod progress;
mod queue_calls;
mod queue_depth;
mod queue_identity;
mod queue_mixed_case;
mod queue_snapshot;
mod queue_twins;
mod recovery;
mod run_with_states;
mod set_vt_batch;
mod shapes;
mod stalled;
mod start_flow;
mod start_ready_steps;
mod start_tasks;
mod task_inputs;
mod type_violation;
mod validators;
mod values;
mod workers;
