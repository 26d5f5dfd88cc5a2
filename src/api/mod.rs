//! The SQL surface: one file per public function, named like it. Each says what PostgreSQL users may rely on:
//! effect, arguments and units, errors, idempotence, locks. The declarations are in `sql/functions_*.sql`.
//!
//! Functions are not STRICT: NULL arguments arrive as `None`. Results leave through `datum`, errors as
//! `ErrorReport`.

mod _archive_task_message;
mod _cascade_force_skip_steps;
mod add_step;
mod calculate_retry_delay;
mod cascade_complete_taskless_steps;
mod cascade_resolve_conditions;
mod complete_task;
mod create_flow;
mod fail_task;
mod get_run_with_states;
mod is_valid_queue_name;
mod is_valid_slug;
mod maybe_complete_run;
mod poll_for_tasks;
mod set_vt_batch;
mod start_flow;
mod start_flow_with_states;
mod start_ready_steps;
mod start_tasks;
