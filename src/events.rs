//! Realtime events: the only file that names `realtime`. Where `realtime.send(jsonb, text, text, boolean)` does
//! not exist, nothing is sent and nothing is read.
//!
//! Owns topics, names and payloads. An event is sent in the transaction of the transition that it tells of.

use pgrx::{pg_sys, Uuid};

use crate::db::{param, Statement};
use crate::error::Error;
use crate::trust;

/// A transition of a run, or of the step with this slug.
pub enum Event {
    RunStarted {
        remaining_steps: i32,
    },
    RunCompleted,
    RunFailed {
        error_message: Option<String>,
    },
    /// The run failed because a step returned what its dependent cannot map over: the step's event says why.
    RunFailedByType,
    StepStarted(String),
    StepCompleted(String),
    TasklessStepCompleted(String),
    StepFailed(String),
    StepSkipped(String),
    /// The step is skipped because its handler used up its attempts.
    StepSkippedAfterFailure(String),
}

impl Event {
    /// The new status, which is the end of the event's name.
    fn status(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } | Self::StepStarted(_) => "started",
            Self::RunCompleted | Self::StepCompleted(_) | Self::TasklessStepCompleted(_) => {
                "completed"
            }
            Self::RunFailed { .. } | Self::RunFailedByType | Self::StepFailed(_) => "failed",
            Self::StepSkipped(_) | Self::StepSkippedAfterFailure(_) => "skipped",
        }
    }

    /// What the statement below knows its payload by.
    fn payload(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run started",
            Self::RunCompleted => "run completed",
            Self::RunFailed { .. } => "run failed",
            Self::RunFailedByType => "run failed by type",
            Self::StepStarted(_) => "step started",
            Self::StepCompleted(_) => "step completed",
            Self::TasklessStepCompleted(_) => "taskless step completed",
            Self::StepFailed(_) => "step failed",
            Self::StepSkipped(_) => "step skipped",
            Self::StepSkippedAfterFailure(_) => "step skipped after failure",
        }
    }

    fn step(&self) -> Option<&str> {
        match self {
            Self::RunStarted { .. }
            | Self::RunCompleted
            | Self::RunFailed { .. }
            | Self::RunFailedByType => None,
            Self::StepStarted(step)
            | Self::StepCompleted(step)
            | Self::TasklessStepCompleted(step)
            | Self::StepFailed(step)
            | Self::StepSkipped(step)
            | Self::StepSkippedAfterFailure(step) => Some(step),
        }
    }
}

/// Sends the events of one call about one run, in order. Values come from the rows as they are now: what an event
/// tells does not change any more within the call, but for the two parameters. One statement, because PostgreSQL
/// prepares `realtime.send` anew for each one.
pub fn send(run_id: Uuid, events: &[Event]) -> Result<(), Error> {
    static SEND: Statement = Statement::new(
        "select realtime.send(e.payload, e.name, e.topic, false)
         from (
           select case when k.step is null then concat('run:', k.status) else concat('step:', k.step, ':', k.status) end,
                  concat('pgflow:run:', r.run_id),
                  case when k.step is null
                    then jsonb_build_object('event_type', concat('run:', k.status), 'run_id', r.run_id,
                                            'status', k.status, 'flow_slug', r.flow_slug)
                    else jsonb_build_object('event_type', concat('step:', k.status), 'run_id', r.run_id,
                                            'status', k.status, 'step_slug', k.step)
                  end || case k.payload
                    when 'run started' then jsonb_build_object(
                      'input', r.input, 'remaining_steps', $5, 'started_at', r.started_at)
                    when 'run completed' then jsonb_build_object('output', r.output, 'completed_at', r.completed_at)
                    when 'run failed' then jsonb_build_object('error_message', $6, 'failed_at', r.failed_at)
                    when 'run failed by type' then jsonb_build_object('failed_at', r.failed_at)
                    when 'step started' then jsonb_build_object(
                      'started_at', s.started_at, 'remaining_tasks', s.initial_tasks, 'remaining_deps', s.remaining_deps)
                    when 'step completed' then jsonb_build_object('output', s.output, 'completed_at', s.completed_at)
                    when 'taskless step completed' then jsonb_build_object(
                      'output', s.output, 'completed_at', s.completed_at, 'started_at', s.started_at,
                      'remaining_tasks', 0, 'remaining_deps', 0)
                    when 'step failed' then jsonb_build_object('error_message', s.error_message, 'failed_at', s.failed_at)
                    when 'step skipped' then jsonb_build_object(
                      'flow_slug', s.flow_slug, 'skip_reason', s.skip_reason, 'skipped_at', s.skipped_at)
                    when 'step skipped after failure' then jsonb_build_object(
                      'flow_slug', s.flow_slug, 'skip_reason', s.skip_reason, 'skipped_at', s.skipped_at,
                      'error_message', s.error_message)
                  end
           from unnest($2, $3, $4) with ordinality as k (payload, status, step, position)
           join pgflow.runs r on r.run_id = $1
           left join pgflow.step_states s on s.run_id = $1 and s.step_slug = k.step
           order by k.position
           offset 0
         ) as e (name, topic, payload)",
    );
    if events.is_empty() || !enabled()? {
        return Ok(());
    }
    let remaining_steps = events.iter().find_map(|event| match event {
        Event::RunStarted { remaining_steps } => Some(*remaining_steps),
        _ => None,
    });
    let error_message = events.iter().find_map(|event| match event {
        Event::RunFailed { error_message } => error_message.as_deref(),
        _ => None,
    });
    SEND.run(&[
        param(run_id),
        param(events.iter().map(Event::payload).collect::<Vec<_>>()),
        param(events.iter().map(Event::status).collect::<Vec<_>>()),
        param(events.iter().map(Event::step).collect::<Vec<_>>()),
        param(remaining_steps),
        param(error_message),
    ])
}

fn enabled() -> Result<bool, Error> {
    let arguments = [
        pg_sys::JSONBOID,
        pg_sys::TEXTOID,
        pg_sys::TEXTOID,
        pg_sys::BOOLOID,
    ];
    trust::function_exists(c"realtime", c"send", &arguments)
}
