//! `pgflow.step_states`. Every statement here runs under the lock of the run's row.

use pgrx::Uuid;

use crate::datum::Jsonb;
use crate::db::{param, Record, Rows, Statement};
use crate::error::Error;
use crate::model::{Mode, QueueName, StartedStep, StepStatus, StepType};
use crate::store::runs::LockedRun;

/// A created step whose dependencies have all ended.
#[derive(Clone, Debug)]
pub struct ReadyStep {
    pub step_slug: String,
    pub tasks: i32,
    pub step_index: i32,
    /// It has a condition that this call has not found met.
    pub unjudged: bool,
}

impl ReadyStep {
    /// Four columns from `first` on: step_slug, initial_tasks, step_index, whether it has a pattern.
    pub fn from_columns(record: &Record, first: i32) -> Result<Self, Error> {
        Ok(Self {
            step_slug: record.get(first)?,
            tasks: record.get(first + 1)?,
            step_index: record.get(first + 2)?,
            unjudged: record.get(first + 3)?,
        })
    }
}

pub fn slugs(steps: &[ReadyStep]) -> Vec<&str> {
    steps.iter().map(|step| step.step_slug.as_str()).collect()
}

/// Steps that have become ready: those that started at once, or, where one of them has a condition or no tasks,
/// all of them, still to be looked at.
#[derive(Default)]
pub struct Released {
    pub started: Vec<StartedStep>,
    pub ready: Vec<ReadyStep>,
}

impl From<Vec<ReadyStep>> for Released {
    fn from(ready: Vec<ReadyStep>) -> Self {
        Self {
            started: Vec::new(),
            ready,
        }
    }
}

impl Released {
    /// Rows by step_index. Eight columns from `first` on: four of [`ReadyStep::from_columns`], status, remaining_deps,
    /// queue_name, start delay.
    pub fn from_rows(run: &LockedRun, rows: &Rows, first: i32) -> Result<Self, Error> {
        let mut released = Self::default();
        for record in rows.iter() {
            let Some(status) = record.nullable::<String>(first + 4) else {
                continue;
            };
            let step = ReadyStep::from_columns(&record, first)?;
            if status.parse::<StepStatus>()? == StepStatus::Started {
                released.started.push(StartedStep {
                    run_id: run.run_id,
                    flow_slug: run.flow_slug.clone(),
                    step_slug: step.step_slug,
                    tasks: step.tasks,
                    step_index: step.step_index,
                    queue: QueueName::stored(record.get(first + 6)?),
                    start_delay: record.get(first + 7)?,
                });
            } else if record.get::<i32>(first + 5)? == 0 {
                released.ready.push(step);
            }
        }
        released.started.sort_by_key(|step| step.step_index);
        released.ready.sort_by_key(|step| step.step_index);
        Ok(released)
    }
}

/// All created steps of a run that wait for nothing and know their tasks, by step_index.
pub fn ready(run: &LockedRun) -> Result<Vec<ReadyStep>, Error> {
    static SELECT: Statement = Statement::new(
        "select s.step_slug, s.initial_tasks, d.step_index,
                d.required_input_pattern is not null or d.forbidden_input_pattern is not null
         from pgflow.step_states s
         join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
         where s.run_id = $1 and s.status = 'created' and s.remaining_deps = 0 and s.initial_tasks is not null
         order by d.step_index",
    );
    SELECT
        .rows(&[param(run.run_id)])?
        .collect(|record| ReadyStep::from_columns(record, 1))
}

/// Starts ready steps; by step_index, with the stored route of each.
pub fn start(run: &LockedRun, steps: &[ReadyStep]) -> Result<Vec<StartedStep>, Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_states s
         set status = 'started', remaining_tasks = s.initial_tasks,
             started_at = greatest(clock_timestamp(), s.created_at)
         from unnest($2) as k (step_slug), pgflow.steps d
         where s.run_id = $1 and s.step_slug = k.step_slug and s.status = 'created'
           and d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
         returning s.step_slug, s.initial_tasks, d.step_index, false, s.status, s.remaining_deps, d.queue_name,
                   coalesce(d.opt_start_delay, 0)",
    );
    let rows = UPDATE.rows(&[param(run.run_id), param(slugs(steps))])?;
    Ok(Released::from_rows(run, &rows, 1)?.started)
}

/// Counts tasks of some steps as done.
pub fn count_tasks_done(run_id: Uuid, steps: Vec<&str>, counts: Vec<i32>) -> Result<(), Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_states s set remaining_tasks = s.remaining_tasks - k.tasks
         from unnest($2, $3) as k (step_slug, tasks)
         where s.run_id = $1 and s.step_slug = k.step_slug",
    );
    UPDATE.run(&[param(run_id), param(steps), param(counts)])
}

/// Counts one task of a step as done.
pub fn count_task_done(run_id: Uuid, step_slug: &str) -> Result<(), Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_states set remaining_tasks = remaining_tasks - 1 where run_id = $1 and step_slug = $2",
    );
    UPDATE.run(&[param(run_id), param(step_slug)])
}

/// Completes a step whose tasks are all done: a single step with its task's output, a map with the array of its
/// tasks' outputs by task_index. Tells its dependents, one dependency less each, and starts those that now wait for
/// nothing, unless one of them has a condition or is a map without elements: then none starts here. All in one UPDATE,
/// since PostgreSQL prepares a table's CHECK constraints anew for each one.
pub fn complete(
    run: &LockedRun,
    step_slug: &str,
    step_type: StepType,
    output: Option<Jsonb>,
    elements: i32,
) -> Result<Released, Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_states s
         set status = case when k.ended then 'completed'
                           when k.plain and s.remaining_deps = 1 then 'started'
                           else 'created' end,
             output = case when k.ended and $5 then (select jsonb_agg(t.output order by t.task_index)
                                                     from pgflow.step_tasks t where t.run_id = $1 and t.step_slug = $3)
                           when k.ended then $4 end,
             remaining_deps = s.remaining_deps - k.deps,
             initial_tasks = coalesce(k.tasks, s.initial_tasks),
             remaining_tasks = case when k.ended then 0
                                    when k.plain and s.remaining_deps = 1 then coalesce(k.tasks, s.initial_tasks) end,
             started_at = case when k.ended then s.started_at
                               when k.plain and s.remaining_deps = 1 then greatest(clock_timestamp(), s.created_at) end,
             completed_at = case when k.ended then greatest(clock_timestamp(), s.started_at) end
         from (
           select d.step_slug, d.step_index, d.conditional, d.queue_name, d.start_delay, false, 1, d.tasks,
                  bool_and(not d.conditional and d.tasks is distinct from 0) over ()
           from (
             select c.step_slug, c.step_index, c.queue_name, coalesce(c.opt_start_delay, 0) as start_delay,
                    c.required_input_pattern is not null or c.forbidden_input_pattern is not null as conditional,
                    case when c.step_type = 'map' then $6 end as tasks
             from pgflow.deps e
             join pgflow.steps c on c.flow_slug = e.flow_slug and c.step_slug = e.step_slug
             where e.flow_slug = $2 and e.dep_slug = $3
           ) d
           union all
           select $3, null, null, null, null, true, 0, null, null
         ) as k (step_slug, step_index, conditional, queue_name, start_delay, ended, deps, tasks, plain)
         where s.run_id = $1 and s.step_slug = k.step_slug and (k.ended or s.status = 'created')
         returning s.step_slug, s.initial_tasks, k.step_index, k.conditional, case when not k.ended then s.status end,
                   s.remaining_deps, k.queue_name, k.start_delay",
    );
    let rows = UPDATE.rows(&[
        param(run.run_id),
        param(run.flow_slug.as_str()),
        param(step_slug),
        param(output),
        param(step_type == StepType::Map),
        param(elements),
    ])?;
    Released::from_rows(run, &rows, 1)
}

/// Completes ready steps that have no task to run: a map gives an empty array.
pub fn complete_taskless(run: &LockedRun, steps: &[ReadyStep]) -> Result<(), Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_states s
         set status = 'completed', remaining_tasks = 0,
             started_at = greatest(clock.at, s.created_at), completed_at = greatest(clock.at, s.created_at),
             output = case when d.step_type = 'map' then '[]'::jsonb end
         from unnest($2) as k (step_slug), pgflow.steps d, (select clock_timestamp() as at) as clock
         where s.run_id = $1 and s.step_slug = k.step_slug and s.status = 'created'
           and d.flow_slug = s.flow_slug and d.step_slug = s.step_slug",
    );
    UPDATE.run(&[param(run.run_id), param(slugs(steps))])
}

/// Tells the dependents of ended steps: one dependency less each, and a map learns how many tasks it has.
/// Returns those that now wait for nothing, by step_index.
pub fn release_dependents(run: &LockedRun, ended: &[&str]) -> Result<Vec<ReadyStep>, Error> {
    static UPDATE: Statement = Statement::new(
        "with released as (
           select d.step_slug, count(*)::integer as deps_ended, min(d.dep_slug) as only_dep
           from unnest($3) as k (dep_slug)
           join pgflow.deps d on d.flow_slug = $2 and d.dep_slug = k.dep_slug
           group by d.step_slug
         )
         update pgflow.step_states s
         set remaining_deps = s.remaining_deps - released.deps_ended,
             initial_tasks = case
               when child.step_type = 'single' then s.initial_tasks
               when dep.status = 'skipped' then 0
               when parent.step_type = 'map' then dep.initial_tasks
               else coalesce(jsonb_array_length(dep.output), 0) end
         from released
         join pgflow.steps child on child.flow_slug = $2 and child.step_slug = released.step_slug
         join pgflow.steps parent on parent.flow_slug = $2 and parent.step_slug = released.only_dep
         join pgflow.step_states dep on dep.run_id = $1 and dep.step_slug = released.only_dep
         where s.run_id = $1 and s.step_slug = released.step_slug and s.status = 'created'
         returning s.step_slug, s.initial_tasks, child.step_index,
                   child.required_input_pattern is not null or child.forbidden_input_pattern is not null,
                   s.remaining_deps",
    );
    let rows = UPDATE.rows(&[
        param(run.run_id),
        param(run.flow_slug.as_str()),
        param(ended.to_vec()),
    ])?;
    let mut ready = Vec::new();
    for record in rows.iter() {
        if record.get::<i32>(5)? == 0 {
            ready.push(ReadyStep::from_columns(&record, 1)?);
        }
    }
    ready.sort_by_key(|step| step.step_index);
    Ok(ready)
}

/// What a step's condition came to.
pub struct Verdict {
    pub met: bool,
    pub when_unmet: Mode,
}

/// Judges the conditions of ready steps, in the order given: a root step sees the run input, another the outputs
/// of its completed dependencies by slug.
pub fn judge(run: &LockedRun, steps: &[ReadyStep]) -> Result<Vec<Verdict>, Error> {
    static SELECT: Statement = Statement::new(
        "select (d.required_input_pattern is null or seen.input @> d.required_input_pattern)
                and (d.forbidden_input_pattern is null or not seen.input @> d.forbidden_input_pattern),
                d.when_unmet
         from unnest($2) with ordinality as k (step_slug, position)
         join pgflow.runs r on r.run_id = $1
         join pgflow.steps d on d.flow_slug = r.flow_slug and d.step_slug = k.step_slug
         cross join lateral (
           select case when d.deps_count = 0 then r.input else (
             select coalesce(jsonb_object_agg(p.step_slug, p.output), '{}')
             from pgflow.deps e
             join pgflow.step_states p on p.run_id = r.run_id and p.step_slug = e.dep_slug
             where e.flow_slug = d.flow_slug and e.step_slug = d.step_slug and p.status = 'completed') end
         ) as seen (input)
         order by k.position",
    );
    SELECT
        .rows(&[param(run.run_id), param(slugs(steps))])?
        .collect(|record| {
            Ok(Verdict {
                met: record.get(1)?,
                when_unmet: record.get::<String>(2)?.parse()?,
            })
        })
}

/// Skips steps that are created or started, for one reason.
pub fn skip(
    run: &LockedRun,
    steps: &[&str],
    reason: &str,
    error_message: Option<&str>,
) -> Result<(), Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_states s
         set status = 'skipped', skip_reason = $3, error_message = $4, remaining_tasks = null,
             skipped_at = greatest(clock_timestamp(), s.created_at)
         from unnest($2) as k (step_slug)
         where s.run_id = $1 and s.step_slug = k.step_slug and s.status in ('created', 'started')",
    );
    UPDATE.run(&[
        param(run.run_id),
        param(steps.to_vec()),
        param(reason),
        param(error_message),
    ])
}

/// A step that a cascade has just skipped.
pub struct SkippedStep {
    pub step_slug: String,
    pub step_index: i32,
    pub was_started: bool,
}

/// Skips steps with everything downstream of them that has not ended; dependents for the reason
/// `dependency_skipped`. Returns the skipped ones in topological order, which step_index is.
pub fn skip_cascade(
    run: &LockedRun,
    roots: &[&str],
    reason: Option<&str>,
) -> Result<Vec<SkippedStep>, Error> {
    static UPDATE: Statement = Statement::new(
        "with recursive downstream as (
           select k.step_slug from unnest($3) as k (step_slug)
           union
           select d.step_slug
           from downstream
           join pgflow.deps d on d.flow_slug = $2 and d.dep_slug = downstream.step_slug
         )
         update pgflow.step_states s
         set status = 'skipped', remaining_tasks = null,
             skip_reason = case when s.step_slug = any($3) then $4 else 'dependency_skipped' end,
             skipped_at = greatest(clock_timestamp(), s.created_at)
         from downstream
         join pgflow.steps d on d.flow_slug = $2 and d.step_slug = downstream.step_slug
         where s.run_id = $1 and s.step_slug = downstream.step_slug and s.status in ('created', 'started')
         returning s.step_slug, d.step_index, s.started_at is not null",
    );
    let params = [
        param(run.run_id),
        param(run.flow_slug.as_str()),
        param(roots.to_vec()),
        param(reason),
    ];
    let mut skipped = UPDATE.rows(&params)?.collect(|record| {
        Ok(SkippedStep {
            step_slug: record.get(1)?,
            step_index: record.get(2)?,
            was_started: record.get(3)?,
        })
    })?;
    skipped.sort_by_key(|step| step.step_index);
    Ok(skipped)
}

/// Fails a step.
pub fn fail(run_id: Uuid, step_slug: &str, error_message: Option<&str>) -> Result<(), Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.step_states s
         set status = 'failed', error_message = $3,
             failed_at = greatest(clock_timestamp(), s.started_at, s.created_at)
         where s.run_id = $1 and s.step_slug = $2",
    );
    UPDATE.run(&[param(run_id), param(step_slug), param(error_message)])
}

/// A created map step that waits for the output of a single step: it needs an array.
pub fn waiting_map_dependent(run: &LockedRun, step_slug: &str) -> Result<Option<String>, Error> {
    static SELECT: Statement = Statement::new(
        "select d.step_slug
         from pgflow.deps e
         join pgflow.steps d on d.flow_slug = e.flow_slug and d.step_slug = e.step_slug
         join pgflow.step_states s on s.run_id = $1 and s.step_slug = e.step_slug
         where e.flow_slug = $2 and e.dep_slug = $3 and d.step_type = 'map' and s.status = 'created'
         order by d.step_index limit 1",
    );
    SELECT
        .row(&[
            param(run.run_id),
            param(run.flow_slug.as_str()),
            param(step_slug),
        ])?
        .map(|record| record.get(1))
        .transpose()
}
