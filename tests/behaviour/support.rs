//! What the tests say in one line: run SQL, read one value, expect an error, play a worker.

use pgrx::prelude::*;
use pgrx::{FromDatum, IntoDatum, Uuid};

/// Runs SQL for its effect.
pub fn run(sql: &str) {
    Spi::run(sql).unwrap();
}

/// The first column of the first row; panics when it is NULL or missing.
pub fn one<T: FromDatum + IntoDatum>(sql: &str) -> T {
    Spi::get_one::<T>(sql).unwrap().unwrap()
}

/// The first column of the first row as text, `NULL` for SQL NULL, `no rows` for none.
pub fn text(sql: &str) -> String {
    rows(sql)
        .into_iter()
        .next()
        .unwrap_or_else(|| "no rows".into())
}

/// The first column of every row as text.
pub fn rows(sql: &str) -> Vec<String> {
    let sql = format!(
        "select coalesce(array_agg(coalesce(v::text, 'NULL')), '{{}}') from ({sql}) as q (v)"
    );
    one::<Vec<Option<String>>>(&sql)
        .into_iter()
        .flatten()
        .collect()
}

/// What went wrong; empty texts where the error says nothing.
#[derive(Debug)]
pub struct Failure {
    pub code: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
}

/// Runs SQL that must fail, in a subtransaction, and returns its error.
pub fn failure(sql: &str) -> Failure {
    run("create or replace function pg_temp.failure(sql text) returns text[] language plpgsql as $$
         declare message text; detail text; hint text;
         begin
           execute sql;
           return null;
         exception when others then
           get stacked diagnostics message = message_text, detail = pg_exception_detail, hint = pg_exception_hint;
           return array[sqlstate, message, detail, hint];
         end $$");
    let found =
        Spi::get_one_with_args::<Vec<Option<String>>>("select pg_temp.failure($1)", &[sql.into()])
            .unwrap();
    let mut found = found
        .unwrap_or_else(|| panic!("this should have failed: {sql}"))
        .into_iter()
        .flatten();
    let mut next = || found.next().unwrap_or_default();
    Failure {
        code: next(),
        message: next(),
        detail: next(),
        hint: next(),
    }
}

/// A chain, diamond or map is written as SQL; this defines a flow from `add_step` argument lists.
pub fn flow(slug: &str, steps: &[&str]) {
    run(&format!(
        "select pgflow.create_flow('{slug}', base_delay => 1)"
    ));
    for step in steps {
        run(&format!("select pgflow.add_step('{slug}', {step})"));
    }
}

/// Starts a run and returns its id.
pub fn start(slug: &str, input: &str) -> Uuid {
    Spi::get_one_with_args(
        "select run_id from pgflow.start_flow($1, $2::text::jsonb)",
        &[slug.into(), input.into()],
    )
    .unwrap()
    .unwrap()
}

/// Registers a worker.
pub fn worker() -> Uuid {
    one(
        "insert into pgflow.workers (worker_id, queue_name, function_name)
         values (gen_random_uuid(), 'any', 'test') returning worker_id",
    )
}

/// Reads up to 1000 visible messages of the flow's default queue and claims them; `step[index] input` of each claimed task.
pub fn claim(slug: &str) -> Vec<String> {
    let worker = worker();
    rows(&format!(
        "select format('%s[%s] %s', t.step_slug, t.task_index, t.input)
         from pgflow.start_tasks('{slug}',
           (select coalesce(array_agg(m.msg_id), '{{}}') from pgmq.read('{slug}', 30, 1000) m), '{worker}') t
         order by t.step_slug, t.task_index"
    ))
}

/// Reports a result; the task's status afterwards.
pub fn complete(run_id: Uuid, step: &str, index: i32, output: &str) -> String {
    Spi::get_one_with_args(
        "select coalesce((select status from pgflow.complete_task($1, $2, $3, $4::text::jsonb)), 'no task')",
        &[run_id.into(), step.into(), index.into(), output.into()],
    )
    .unwrap()
    .unwrap()
}

/// Reports a failed attempt; the task's status afterwards.
pub fn fail(run_id: Uuid, step: &str, index: i32, message: &str) -> String {
    Spi::get_one_with_args(
        "select coalesce((select status from pgflow.fail_task($1, $2, $3, $4)), 'no task')",
        &[run_id.into(), step.into(), index.into(), message.into()],
    )
    .unwrap()
    .unwrap()
}

/// `step:status` of every step of a run, in the order of the definition.
pub fn steps(run_id: Uuid) -> Vec<String> {
    rows(&format!(
        "select s.step_slug || ':' || s.status
         from pgflow.step_states s join pgflow.steps d using (flow_slug, step_slug)
         where s.run_id = '{run_id}' order by d.step_index"
    ))
}

/// `step[index]:status` of every task of a run.
pub fn tasks(run_id: Uuid) -> Vec<String> {
    rows(&format!(
        "select format('%s[%s]:%s', step_slug, task_index, status) from pgflow.step_tasks
         where run_id = '{run_id}' order by step_slug, task_index"
    ))
}

/// `status output` of a run.
pub fn outcome(run_id: Uuid) -> String {
    text(&format!("select status || ' ' || coalesce(output::text, 'NULL') from pgflow.runs where run_id = '{run_id}'"))
}

/// Live and archived messages of a queue, as `live/archived`.
pub fn messages(queue: &str) -> String {
    text(&format!("select (select count(*) from pgmq.q_{queue}) || '/' || (select count(*) from pgmq.a_{queue})"))
}

/// Has every event recorded in `realtime.sent` from now on.
pub fn record_events() {
    run(include_str!("../fixtures/realtime.sql"));
}

/// `event payload` of every recorded event, in the order sent.
pub fn events() -> Vec<String> {
    rows("select event from realtime.sent order by id")
}

/// Fails when a rule that must hold between calls is broken.
pub fn invariants_hold() {
    run(include_str!("../fixtures/invariants.sql"));
    assert_eq!(
        rows("select * from pgflow_invariants.broken()"),
        Vec::<String>::new()
    );
}
