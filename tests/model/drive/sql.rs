//! Operations and flows as SQL: what the engine is told, and what a failing case is printed as.

use crate::random_model::flow::{Flow, StepDefinition};
use crate::random_model::json::Json;
use crate::random_model::operation::{Case, Nudge, Operation, Report, TaskKey, Worker, SIDE_QUEUE};
use crate::random_model::rules::{run_id, World};

/// SQL over a row `t`, printing it as `lines` prints the model's.
pub const RUN_LINE: &str =
    "format('run %s %s %s output %s remaining_steps %s%s%s', right(t.run_id::text, 2), \
    t.flow_slug, t.status, coalesce(t.output::text, 'NULL'), t.remaining_steps, \
    case when t.completed_at is not null then ' completed_at' end, \
    case when t.failed_at is not null then ' failed_at' end)";
pub const STEP_LINE: &str = "format('step %s %s %s deps %s tasks %s of %s output %s error %s reason %s%s%s%s%s', \
    right(t.run_id::text, 2), t.step_slug, t.status, t.remaining_deps, coalesce(t.remaining_tasks::text, 'NULL'), \
    coalesce(t.initial_tasks::text, 'NULL'), coalesce(t.output::text, 'NULL'), coalesce(t.error_message, 'NULL'), \
    coalesce(t.skip_reason, 'NULL'), case when t.started_at is not null then ' started_at' end, \
    case when t.completed_at is not null then ' completed_at' end, \
    case when t.failed_at is not null then ' failed_at' end, \
    case when t.skipped_at is not null then ' skipped_at' end)";
pub const TASK_LINE: &str = "format('task %s %s[%s] %s attempts %s requeued %s worker %s message %s %s output %s \
    error %s%s%s%s%s%s', right(t.run_id::text, 2), t.step_slug, t.task_index, t.status, t.attempts_count, \
    t.requeued_count, coalesce(right(t.last_worker_id::text, 1), 'NULL'), t.queue_name, \
    coalesce(t.message_id::text, 'NULL'), coalesce(t.output::text, 'NULL'), coalesce(t.error_message, 'NULL'), \
    case when t.started_at is not null then ' started_at' end, \
    case when t.completed_at is not null then ' completed_at' end, \
    case when t.failed_at is not null then ' failed_at' end, \
    case when t.last_requeued_at is not null then ' last_requeued_at' end, \
    case when t.permanently_stalled_at is not null then ' permanently_stalled_at' end)";
const CLAIMED_LINE: &str = "format('claimed %s %s %s[%s] message %s input %s flow_input %s', t.flow_slug, \
    right(t.run_id::text, 2), t.step_slug, t.task_index, t.msg_id, coalesce(t.input::text, 'NULL'), \
    coalesce(t.flow_input::text, 'NULL'))";

pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn or_null<T>(value: &Option<T>, print: impl Fn(&T) -> String) -> String {
    value.as_ref().map_or("NULL".to_string(), print)
}

fn jsonb(value: &Json) -> String {
    format!("{}::jsonb", quoted(&value.to_string()))
}

fn worker_id(worker: usize) -> String {
    format!("'00000000-0000-0000-0000-00000000000{worker}'")
}

/// Flows, queues and workers, a statement each.
pub fn definition(case: &Case) -> Vec<String> {
    let mut statements = vec![
        format!("select pgmq.create('{SIDE_QUEUE}')"),
        format!(
            "insert into pgflow.workers (worker_id, queue_name, function_name) \
             select id::uuid, 'any', 'test' from unnest(array[{}, {}]) id",
            worker_id(0),
            worker_id(1)
        ),
    ];
    for flow in &case.flows {
        statements.push(format!(
            "select pgflow.create_flow('{}', {}, {}, {})",
            flow.slug, flow.max_attempts, flow.base_delay, flow.timeout
        ));
        statements.extend(flow.steps.iter().map(|step| add_step(flow, step)));
        statements.extend(flow.steps.iter().filter_map(|step| {
            let queue = step.queue.as_ref()?;
            Some(format!(
                "update pgflow.steps set queue_name = '{queue}' where flow_slug = '{}' and step_slug = '{}'",
                flow.slug, step.slug
            ))
        }));
    }
    statements
}

fn add_step(flow: &Flow, step: &StepDefinition) -> String {
    let mut arguments = format!("'{}', '{}'", flow.slug, step.slug);
    let mut add = |argument: String| arguments.push_str(&format!(", {argument}"));
    if !step.deps.is_empty() {
        add(format!("array['{}']", step.deps.join("', '")));
    }
    if step.is_map {
        add("step_type => 'map'".to_string());
    }
    for (name, value) in [
        ("max_attempts", step.max_attempts),
        ("base_delay", step.base_delay),
        ("timeout", step.timeout),
        ("start_delay", step.start_delay),
    ] {
        if let Some(value) = value {
            add(format!("{name} => {value}"));
        }
    }
    for (name, pattern) in [("required", &step.required), ("forbidden", &step.forbidden)] {
        if let Some(pattern) = pattern {
            add(format!("{name}_input_pattern => {}", jsonb(pattern)));
        }
    }
    if step.has_condition() {
        add(format!("when_unmet => '{}'", step.when_unmet.name()));
    }
    add(format!(
        "when_exhausted => '{}'",
        step.when_exhausted.name()
    ));
    format!("select pgflow.add_step({arguments})")
}

/// What an operation does first, and the query whose rows are its answer.
pub struct Call {
    pub before: Vec<String>,
    pub query: String,
}

impl From<String> for Call {
    fn from(query: String) -> Self {
        Self {
            before: Vec::new(),
            query,
        }
    }
}

/// An operation on the state that `world` is in.
pub fn call(operation: &Operation, world: &World, has_complete_tasks: bool) -> Call {
    match operation {
        Operation::StartFlow { flow, run, input } => format!(
            "select {RUN_LINE} from pgflow.start_flow('{flow}', {}, '{}') t",
            jsonb(input),
            run_id(*run)
        )
        .into(),
        Operation::Claim {
            flow,
            queue,
            messages,
            worker,
        } => claim(flow, queue.as_deref(), &world.ids(messages), *worker).into(),
        Operation::Report(key, report) => take_report(key, report).into(),
        Operation::ReportWithMessage(key, report) => Call {
            before: bring_back(key, world),
            query: take_report(key, report),
        },
        Operation::CompleteMany(reports) => complete_many(reports, has_complete_tasks),
        Operation::Recover { stalled, almost } => Call {
            before: [(stalled, LONG_AGO), (almost, NOT_QUITE)]
                .into_iter()
                .flat_map(|(keys, age)| keys.iter().map(move |key| make_older(key, age)))
                .collect(),
            query: "select pgflow.requeue_stalled_tasks()".to_string(),
        },
        Operation::Nudge(run, nudge) => {
            let function = match nudge {
                Nudge::Conditions => "cascade_resolve_conditions",
                Nudge::Taskless => "cascade_complete_taskless_steps",
                Nudge::ReadySteps => "start_ready_steps",
                Nudge::Completion => "maybe_complete_run",
            };
            format!("select pgflow.{function}('{}')", run_id(*run)).into()
        }
        Operation::ForceSkip { run, step } => {
            let id = run_id(*run);
            Call {
                before: Vec::new(),
                query: format!(
                    "with skipped as materialized \
                     (select pgflow._cascade_force_skip_steps('{id}', '{step}', 'condition_unmet') as n) \
                     select n from skipped cross join lateral pgflow.maybe_complete_run(case when n >= 0 then '{id}'::uuid end)"
                ),
            }
        }
        Operation::Stray { queue } => format!("select pgmq.send('{queue}', '{{}}')").into(),
    }
}

fn claim(flow: &str, queue: Option<&str>, ids: &[i64], worker: Worker) -> String {
    let ids: Vec<_> = ids.iter().map(i64::to_string).collect();
    let worker = match worker {
        Worker::Nobody => "NULL".to_string(),
        Worker::Registered(worker) => worker_id(worker),
        Worker::Unregistered => worker_id(9),
    };
    let queue = queue
        .map(|queue| format!(", '{queue}'"))
        .unwrap_or_default();
    format!(
        "select {CLAIMED_LINE} from pgflow.start_tasks('{flow}', array[{}]::bigint[], {worker}{queue}) t",
        ids.join(", ")
    )
}

fn task_arguments(key: &TaskKey) -> String {
    format!("'{}', '{}', {}", run_id(key.run), key.step, key.index)
}

fn take_report(key: &TaskKey, report: &Report) -> String {
    let task = task_arguments(key);
    let call = match report {
        Report::Completed(output) => format!("complete_task({task}, {})", or_null(output, jsonb)),
        Report::Failed(error) => {
            format!("fail_task({task}, {})", or_null(error, |text| quoted(text)))
        }
    };
    format!("select {TASK_LINE} from pgflow.{call} t")
}

fn complete_many(reports: &[(TaskKey, Option<Json>)], has_complete_tasks: bool) -> Call {
    let outputs = reports.iter().map(|(_, output)| or_null(output, jsonb));
    if has_complete_tasks {
        let list = |print: &dyn Fn(&TaskKey) -> String| {
            let texts: Vec<_> = reports.iter().map(|(key, _)| print(key)).collect();
            texts.join(", ")
        };
        return format!(
            "select from pgflow.complete_tasks(array[{}]::uuid[], array[{}]::text[], array[{}]::integer[], \
             array[{}]::jsonb[])",
            list(&|key| quoted(&run_id(key.run))),
            list(&|key| quoted(&key.step)),
            list(&|key| key.index.to_string()),
            outputs.collect::<Vec<_>>().join(", ")
        )
        .into();
    }
    let mut calls: Vec<_> = reports
        .iter()
        .zip(outputs)
        .map(|((key, _), output)| {
            format!(
                "select from pgflow.complete_task({}, {output})",
                task_arguments(key)
            )
        })
        .collect();
    let query = calls.pop().unwrap_or_else(|| "select".to_string());
    Call {
        before: calls,
        query,
    }
}

/// The message of a late report as if it had not been archived.
fn bring_back(key: &TaskKey, world: &World) -> Vec<String> {
    let late = world.find(key).filter(|at| world.is_late(*at));
    let Some(task) = late.map(|at| world.task(at)) else {
        return Vec::new();
    };
    let (queue, id) = (&task.queue, task.message.unwrap_or_default());
    vec![format!(
        "with gone as (delete from pgmq.a_{queue} where msg_id = {id} returning msg_id, read_ct, enqueued_at, vt, message) \
         insert into pgmq.q_{queue} (msg_id, read_ct, enqueued_at, vt, message) overriding system value \
         select * from gone"
    )]
}

/// Stalled by the transaction's clock and by the wall clock.
const LONG_AGO: &str = "now() - make_interval(secs => timeout + 31)";
/// Not stalled by either, as long as the calls of one seed take less than 20 s.
const NOT_QUITE: &str = "clock_timestamp() - make_interval(secs => timeout + 10)";

fn make_older(key: &TaskKey, started_at: &str) -> String {
    format!(
        "update pgflow.step_tasks t set started_at = {started_at}, queued_at = least(queued_at, {started_at}) \
         from (select s.flow_slug, s.step_slug, coalesce(s.opt_timeout, f.opt_timeout) as timeout \
               from pgflow.steps s join pgflow.flows f using (flow_slug)) o \
         where o.flow_slug = t.flow_slug and o.step_slug = t.step_slug and t.run_id = '{}' \
           and t.step_slug = '{}' and t.task_index = {} and t.status = 'started'",
        run_id(key.run),
        key.step,
        key.index
    )
}
