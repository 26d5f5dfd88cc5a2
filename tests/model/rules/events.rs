//! Events, section 7 of engine.md: one for each transition. Times are the text `TIME`.

use super::World;
use crate::random_model::json::{number, object, or_null, text, Json};

pub struct Event {
    /// The run's number.
    pub run: usize,
    /// The step's slug; none for a run's own events.
    pub step: Option<String>,
    pub kind: &'static str,
    pub payload: Json,
}

fn time() -> Json {
    text("TIME")
}

/// The identifier of a run by its number; numbers are below 256.
pub fn run_id(number: usize) -> String {
    format!("00000000-0000-0000-0000-0000000000{number:02x}")
}

fn message(value: &Option<String>) -> Json {
    value.as_deref().map_or(Json::Null, text)
}

impl World {
    fn send_run_event<const N: usize>(
        &mut self,
        run: usize,
        kind: &'static str,
        details: [(&str, Json); N],
    ) {
        let number = self.runs[run].number;
        let common = [
            ("event_type", text(&format!("run:{kind}"))),
            ("run_id", text(&run_id(number))),
            ("status", text(kind)),
            ("flow_slug", text(&self.flow(run).slug)),
        ];
        self.events.push(Event {
            run: number,
            step: None,
            kind,
            payload: payload(common, details),
        });
    }

    fn send_step_event<const N: usize>(
        &mut self,
        run: usize,
        step: usize,
        kind: &'static str,
        details: [(&str, Json); N],
    ) {
        let number = self.runs[run].number;
        let slug = self.flow(run).steps[step].slug.clone();
        let common = [
            ("event_type", text(&format!("step:{kind}"))),
            ("run_id", text(&run_id(number))),
            ("status", text(kind)),
            ("step_slug", text(&slug)),
        ];
        self.events.push(Event {
            run: number,
            step: Some(slug),
            kind,
            payload: payload(common, details),
        });
    }

    pub fn tell_run_started(&mut self, run: usize) {
        let details = [
            ("input", self.runs[run].input.clone()),
            ("remaining_steps", number(self.runs[run].remaining_steps)),
            ("started_at", time()),
        ];
        self.send_run_event(run, "started", details);
    }

    pub fn tell_run_completed(&mut self, run: usize) {
        let output = or_null(&self.runs[run].output);
        self.send_run_event(
            run,
            "completed",
            [("output", output), ("completed_at", time())],
        );
    }

    pub fn tell_run_failed(&mut self, run: usize, error: &Option<String>) {
        let details = [("error_message", message(error)), ("failed_at", time())];
        self.send_run_event(run, "failed", details);
    }

    pub fn tell_run_failed_by_type(&mut self, run: usize) {
        self.send_run_event(run, "failed", [("failed_at", time())]);
    }

    pub fn tell_step_started(&mut self, run: usize, step: usize) {
        let state = self.step(run, step);
        let details = [
            ("started_at", time()),
            ("remaining_tasks", number(state.tasks.len())),
            ("remaining_deps", number(state.remaining_deps)),
        ];
        self.send_step_event(run, step, "started", details);
    }

    pub fn tell_step_completed(&mut self, run: usize, step: usize) {
        let output = or_null(&self.step(run, step).output);
        let details = [("output", output), ("completed_at", time())];
        self.send_step_event(run, step, "completed", details);
    }

    pub fn tell_taskless_step_completed(&mut self, run: usize, step: usize) {
        let details = [
            ("output", or_null(&self.step(run, step).output)),
            ("completed_at", time()),
            ("started_at", time()),
            ("remaining_tasks", number(0)),
            ("remaining_deps", number(0)),
        ];
        self.send_step_event(run, step, "completed", details);
    }

    pub fn tell_step_failed(&mut self, run: usize, step: usize) {
        let error = message(&self.step(run, step).error_message);
        let details = [("error_message", error), ("failed_at", time())];
        self.send_step_event(run, step, "failed", details);
    }

    /// The message is sent only where a handler failed, even when the handler gave none.
    pub fn tell_step_skipped(&mut self, run: usize, step: usize) {
        let flow = text(&self.flow(run).slug);
        let state = self.step(run, step);
        let reason = state.skip_reason.unwrap_or_default();
        let error = message(&state.error_message);
        let details = [
            ("flow_slug", flow),
            ("skip_reason", text(reason)),
            ("skipped_at", time()),
        ];
        if reason == super::ending::HANDLER_FAILED {
            let [flow, reason, at] = details;
            let details = [flow, reason, at, ("error_message", error)];
            self.send_step_event(run, step, "skipped", details);
        } else {
            self.send_step_event(run, step, "skipped", details);
        }
    }
}

fn payload<const N: usize>(common: [(&str, Json); 4], details: [(&str, Json); N]) -> Json {
    let pairs = common.into_iter().chain(details);
    object(pairs.map(|(key, value)| (key.to_string(), value)))
}
