//! The SQL surface: one file per public function, named like it. Each says what PostgreSQL users may rely on:
//! effect, arguments and units, errors, idempotence, locks. The declarations are in `sql/functions_*.sql`.
//!
//! Functions are not STRICT: NULL arguments arrive as `None`. Results leave through `datum`, errors as
//! `ErrorReport`.

mod _archive_task_message;
mod _cascade_force_skip_steps;
mod _compare_flow_shapes;
mod _create_flow_from_shape;
mod _get_flow_shape;
mod add_step;
mod calculate_retry_delay;
mod cascade_complete_taskless_steps;
mod cascade_resolve_conditions;
mod cleanup_ensure_workers_logs;
mod complete_task;
mod complete_tasks;
mod create_flow;
mod delete_flow_and_data;
mod ensure_flow_compiled;
mod ensure_workers;
mod fail_task;
mod flow_graph;
mod get_run_with_states;
mod is_local;
mod is_valid_queue_name;
mod is_valid_slug;
mod mark_worker_stopped;
mod maybe_complete_run;
mod poll_for_tasks;
mod queue_depth;
mod requeue_stalled_tasks;
mod run_graph;
mod set_vt_batch;
mod setup_ensure_workers_cron;
mod setup_requeue_stalled_tasks_cron;
mod start_flow;
mod start_flow_with_states;
mod start_ready_steps;
mod start_tasks;
mod track_worker_function;
