//! Realtime events: the only file that names `realtime`. Where `realtime.send(jsonb, text, text, boolean)` does
//! not exist, nothing is sent and nothing is read.
//!
//! Owns topics, names and payloads. An event is sent in the transaction of the transition that it tells of.

use pgrx::{pg_sys, Uuid};

use crate::db::{function_exists, param, Statement};
use crate::error::Error;

fn enabled() -> bool {
    let arguments = [
        pg_sys::JSONBOID,
        pg_sys::TEXTOID,
        pg_sys::TEXTOID,
        pg_sys::BOOLOID,
    ];
    function_exists(c"realtime", c"send", &arguments)
}

/// Sends one run event; `$payload` is SQL over the run row `r` and, where it has one, the error message `$2`.
macro_rules! run_event {
    ($event:literal, $payload:literal) => {
        concat!(
            "select realtime.send(jsonb_build_object('event_type', '",
            $event,
            "', 'run_id', r.run_id, ",
            "'status', r.status, 'flow_slug', r.flow_slug) || jsonb_build_object(",
            $payload,
            "), ",
            "'",
            $event,
            "', concat('pgflow:run:', r.run_id), false) ",
            "from pgflow.runs r where r.run_id = $1"
        )
    };
}

/// Sends one event for each of the steps `$2`, in that order; `$payload` is SQL over the state row `s`.
macro_rules! step_event {
    ($event:literal, $payload:literal) => {
        concat!(
            "select realtime.send(e.payload, concat('step:', e.step_slug, ':",
            $event,
            "'), ",
            "concat('pgflow:run:', e.run_id), false) from (",
            "select s.run_id, s.step_slug, jsonb_build_object('event_type', 'step:",
            $event,
            "', ",
            "'run_id', s.run_id, 'step_slug', s.step_slug, 'status', s.status, ",
            $payload,
            ") as payload ",
            "from unnest($2) with ordinality as k (step_slug, position) ",
            "join pgflow.step_states s on s.run_id = $1 and s.step_slug = k.step_slug ",
            "order by k.position offset 0) e"
        )
    };
}

pub fn run_started(run_id: Uuid) -> Result<(), Error> {
    static SEND: Statement = Statement::new(run_event!(
        "run:started",
        "'input', r.input, 'remaining_steps', r.remaining_steps, 'started_at', r.started_at"
    ));
    for_run(&SEND, run_id)
}

pub fn run_completed(run_id: Uuid) -> Result<(), Error> {
    static SEND: Statement = Statement::new(run_event!(
        "run:completed",
        "'output', r.output, 'completed_at', r.completed_at"
    ));
    for_run(&SEND, run_id)
}

pub fn run_failed(run_id: Uuid, error_message: Option<&str>) -> Result<(), Error> {
    static SEND: Statement = Statement::new(run_event!(
        "run:failed",
        "'error_message', $2, 'failed_at', r.failed_at"
    ));
    if enabled() {
        SEND.run(&[param(run_id), param(error_message)])?;
    }
    Ok(())
}

/// A run that failed because a step returned what its dependent cannot map over: the step's event says why.
pub fn run_failed_by_type(run_id: Uuid) -> Result<(), Error> {
    static SEND: Statement = Statement::new(run_event!("run:failed", "'failed_at', r.failed_at"));
    for_run(&SEND, run_id)
}

pub fn steps_started(run_id: Uuid, steps: &[&str]) -> Result<(), Error> {
    static SEND: Statement = Statement::new(step_event!(
        "started",
        "'started_at', s.started_at, 'remaining_tasks', s.remaining_tasks, 'remaining_deps', s.remaining_deps"
    ));
    for_steps(&SEND, run_id, steps)
}

pub fn step_completed(run_id: Uuid, step_slug: &str) -> Result<(), Error> {
    static SEND: Statement = Statement::new(step_event!(
        "completed",
        "'output', s.output, 'completed_at', s.completed_at"
    ));
    for_steps(&SEND, run_id, &[step_slug])
}

pub fn taskless_steps_completed(run_id: Uuid, steps: &[&str]) -> Result<(), Error> {
    static SEND: Statement = Statement::new(step_event!(
        "completed",
        "'output', s.output, 'completed_at', s.completed_at, 'started_at', s.started_at, \
         'remaining_tasks', 0, 'remaining_deps', 0"
    ));
    for_steps(&SEND, run_id, steps)
}

pub fn step_failed(run_id: Uuid, step_slug: &str) -> Result<(), Error> {
    static SEND: Statement = Statement::new(step_event!(
        "failed",
        "'error_message', s.error_message, 'failed_at', s.failed_at"
    ));
    for_steps(&SEND, run_id, &[step_slug])
}

pub fn steps_skipped(run_id: Uuid, steps: &[&str]) -> Result<(), Error> {
    static SEND: Statement = Statement::new(step_event!(
        "skipped",
        "'flow_slug', s.flow_slug, 'skip_reason', s.skip_reason, 'skipped_at', s.skipped_at"
    ));
    for_steps(&SEND, run_id, steps)
}

/// A step that is skipped because its handler used up its attempts.
pub fn step_skipped_after_failure(run_id: Uuid, step_slug: &str) -> Result<(), Error> {
    static SEND: Statement = Statement::new(step_event!(
        "skipped",
        "'flow_slug', s.flow_slug, 'skip_reason', s.skip_reason, 'skipped_at', s.skipped_at, \
         'error_message', s.error_message"
    ));
    for_steps(&SEND, run_id, &[step_slug])
}

fn for_run(event: &'static Statement, run_id: Uuid) -> Result<(), Error> {
    if enabled() {
        event.run(&[param(run_id)])?;
    }
    Ok(())
}

fn for_steps(event: &'static Statement, run_id: Uuid, steps: &[&str]) -> Result<(), Error> {
    if !steps.is_empty() && enabled() {
        event.run(&[param(run_id), param(steps.to_vec())])?;
    }
    Ok(())
}
