//! What the tests say in one line: run SQL, read one value, expect an error, play a worker.

use std::cell::RefCell;
use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{pg_sys, FromDatum, IntoDatum, Uuid};

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

/// An empty result of [`rows`].
pub const NONE: [&str; 0] = [];

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

thread_local! {
    static LOGGED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work`; the WARNINGs and NOTICEs that it raised, as `WARNING: text`.
pub fn logged(work: impl FnOnce()) -> Vec<String> {
    logged_whole(work)
        .iter()
        .map(|report| report.lines().next().unwrap_or_default().to_string())
        .collect()
}

/// As `logged`, with everything else that the reports say on further lines.
pub fn logged_whole(work: impl FnOnce()) -> Vec<String> {
    unsafe extern "C-unwind" fn keep(report: *mut pg_sys::ErrorData) {
        // SAFETY: PostgreSQL calls the hook with a report whose texts are C strings or null.
        let report = unsafe { &*report };
        let level = match report.elevel as u32 {
            pg_sys::WARNING => "WARNING",
            pg_sys::NOTICE => "NOTICE",
            _ => return,
        };
        let texts = [report.message, report.detail, report.hint, report.context]
            .into_iter()
            .filter(|text| !text.is_null())
            .map(|text| {
                unsafe { CStr::from_ptr(text) }
                    .to_string_lossy()
                    .into_owned()
            })
            .collect::<Vec<_>>();
        LOGGED.with_borrow_mut(|logged| logged.push(format!("{level}: {}", texts.join("\n"))));
    }
    run("set local log_min_messages = 'notice'");
    LOGGED.with_borrow_mut(Vec::clear);
    // SAFETY: the hook is a static function; this thread is the backend's only one.
    unsafe { pg_sys::emit_log_hook = Some(keep) };
    work();
    unsafe { pg_sys::emit_log_hook = None };
    LOGGED.take()
}

/// A chain, diamond or map is written as SQL; this defines a flow from `add_step` argument lists. From here on an
/// update that changes a terminal row is an error.
pub fn flow(slug: &str, steps: &[&str]) {
    run(include_str!("../fixtures/terminal_rows.sql"));
    run(&format!(
        "select pgflow.create_flow('{slug}', base_delay => 1)"
    ));
    for step in steps {
        run(&format!("select pgflow.add_step('{slug}', {step})"));
    }
}

/// `a` -> `b` and `c` -> `d`, all single steps.
pub const DIAMOND: [&str; 4] = [
    "'a'",
    "'b', array['a']",
    "'c', array['a']",
    "'d', array['b', 'c']",
];

/// Routes a step of a flow to another queue, which is created when nobody has: no public call can do this.
pub fn route(slug: &str, step: &str, queue: &str) {
    run(&format!(
        "select pgmq.create('{queue}') where not exists (select from pgmq.list_queues() where queue_name = '{queue}');
         update pgflow.steps set queue_name = '{queue}' where flow_slug = '{slug}' and step_slug = '{step}'"
    ));
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

/// Reads up to 1000 visible messages of the flow's default queue and claims them; `step[index] input` of each
/// claimed task.
pub fn claim(slug: &str) -> Vec<String> {
    claim_ids(
        slug,
        &format!("select msg_id from pgmq.read('{slug}', 30, 1000)"),
    )
}

/// As `claim`, for every message of the default queue, visible or not.
pub fn claim_hidden(slug: &str) -> Vec<String> {
    claim_ids(
        slug,
        &format!("select msg_id from pgmq.q_{}", slug.to_lowercase()),
    )
}

/// As `claim`, for the message ids that a query gives.
pub fn claim_ids(slug: &str, ids: &str) -> Vec<String> {
    let worker = worker();
    rows(&format!(
        "select format('%s[%s] %s', t.step_slug, t.task_index, t.input)
         from pgflow.start_tasks('{slug}', array({ids}), '{worker}') t
         order by t.step_slug, t.task_index"
    ))
}

/// As `claim`, from a queue that is not the flow's default.
pub fn claim_from(slug: &str, queue: &str) -> Vec<String> {
    let worker = worker();
    rows(&format!(
        "select format('%s[%s] %s', t.step_slug, t.task_index, t.input)
         from pgflow.start_tasks('{slug}', array(select msg_id from pgmq.read('{queue}', 30, 1000)), '{worker}', '{queue}') t
         order by t.step_slug, t.task_index"
    ))
}

/// Reports a result (`None` is SQL NULL); the task's status afterwards.
pub fn complete<'a>(
    run_id: Uuid,
    step: &str,
    index: i32,
    output: impl Into<Option<&'a str>>,
) -> String {
    let output: Option<&str> = output.into();
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

/// An SQL expression over a run's row.
pub fn of_run(run_id: Uuid, expression: &str) -> String {
    text(&format!(
        "select {expression} from pgflow.runs where run_id = '{run_id}'"
    ))
}

/// An SQL expression over a step's state.
pub fn of_step(run_id: Uuid, step: &str, expression: &str) -> String {
    text(&format!(
        "select {expression} from pgflow.step_states where run_id = '{run_id}' and step_slug = '{step}'"
    ))
}

/// An SQL expression over a task.
pub fn of_task(run_id: Uuid, step: &str, index: i32, expression: &str) -> String {
    text(&format!(
        "select {expression} from pgflow.step_tasks
         where run_id = '{run_id}' and step_slug = '{step}' and task_index = {index}"
    ))
}

/// Everything stored about a run, to see that nothing changed.
pub fn snapshot(run_id: Uuid) -> Vec<String> {
    rows(&format!(
        "select to_jsonb(r) from pgflow.runs r where run_id = '{run_id}'
         union all (select to_jsonb(s) from pgflow.step_states s where run_id = '{run_id}' order by step_slug)
         union all (select to_jsonb(t) from pgflow.step_tasks t where run_id = '{run_id}' order by step_slug, task_index)"
    ))
}

/// `status output` of a run.
pub fn outcome(run_id: Uuid) -> String {
    of_run(run_id, "status || ' ' || coalesce(output::text, 'NULL')")
}

/// Live and archived messages of a queue, as `live/archived`.
pub fn messages(queue: &str) -> String {
    text(&format!(
        "select (select count(*) from pgmq.q_{queue}) || '/' || (select count(*) from pgmq.a_{queue})"
    ))
}

/// Seconds until a message of a queue becomes visible, rounded up; 0 or less when it is.
pub fn visible_in(queue: &str, message_id: i64) -> i64 {
    one(&format!(
        "select ceil(extract(epoch from vt - clock_timestamp()))::bigint from pgmq.q_{queue} where msg_id = {message_id}"
    ))
}

/// Puts archived messages back, as if whoever ended their tasks had not archived them.
pub fn unarchive(queue: &str) {
    run(&format!(
        "with gone as (delete from pgmq.a_{queue} returning msg_id, read_ct, enqueued_at, vt, message)
         insert into pgmq.q_{queue} (msg_id, read_ct, enqueued_at, vt, message) overriding system value
         select * from gone"
    ));
}

/// Has every event recorded in `realtime.sent` from now on.
pub fn record_events() {
    run(include_str!("../fixtures/realtime.sql"));
}

/// The name of every recorded event, in the order sent.
pub fn events() -> Vec<String> {
    rows("select event from realtime.sent order by id")
}

/// How many pages of tables and indexes a query touches.
pub fn pages_of(query: &str) -> f64 {
    let plan = one::<pgrx::Json>(&format!("explain (analyze, buffers, format json) {query}"));
    plan.0[0]["Plan"]["Shared Hit Blocks"].as_f64().unwrap()
}

/// Fails when a rule that must hold between calls is broken.
pub fn invariants_hold() {
    run(include_str!("../fixtures/invariants.sql"));
    assert_eq!(rows("select * from pgflow_invariants.broken()"), NONE);
}
