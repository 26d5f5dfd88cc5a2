//! `pgflow.runs`.

use pgrx::Uuid;

use crate::datum::{Jsonb, Row};
use crate::db::{param, Record, Statement};
use crate::error::Error;
use crate::model::{GraphState, GraphStep, RunStatus};
use crate::store::step_states::Released;
use crate::store::steps;

/// A run whose row this transaction has locked, and how many of its steps have not ended. Ended steps are
/// counted here and written with the run's next update: each run row is written once per call.
pub struct LockedRun {
    pub run_id: Uuid,
    pub flow_slug: String,
    pub status: RunStatus,
    pub remaining_steps: i32,
}

impl LockedRun {
    /// Columns 1 to 4 of a statement that locked the run: run_id, flow_slug, status, remaining_steps.
    pub fn from_record(record: &Record) -> Result<Self, Error> {
        Ok(Self {
            run_id: record.get(1)?,
            flow_slug: record.get(2)?,
            status: record.get::<String>(3)?.parse()?,
            remaining_steps: record.get(4)?,
        })
    }
}

/// Creates a run and the state of each of its steps. Starts the steps without dependencies, unless one of them has
/// a condition or is a map without elements: then none starts here. An error when one is a map and the input is no
/// array.
pub fn insert(
    flow_slug: Option<&str>,
    input: Option<Jsonb>,
    run_id: Option<Uuid>,
) -> Result<(LockedRun, Released), Error> {
    static INSERT: Statement = Statement::new(
        "with definition as materialized (
           select s.step_slug, s.step_index, s.deps_count, s.queue_name, coalesce(s.opt_start_delay, 0) as start_delay,
                  s.required_input_pattern is not null or s.forbidden_input_pattern is not null as conditional,
                  case when s.step_type = 'single' then 1
                       when s.deps_count = 0 and jsonb_typeof($2) = 'array' then jsonb_array_length($2) end as tasks
           from pgflow.steps s where s.flow_slug = $1
         ), root as materialized (
           select coalesce(bool_and(not conditional and coalesce(tasks, 0) > 0), false) as plain from definition where deps_count = 0
         ), run as (
           insert into pgflow.runs (run_id, flow_slug, input, remaining_steps)
           values (coalesce($3, gen_random_uuid()), $1, $2, (select count(*) from definition))
           returning run_id, flow_slug, status, remaining_steps
         ), states as (
           insert into pgflow.step_states (flow_slug, run_id, step_slug, remaining_deps, initial_tasks, status,
                                           remaining_tasks, started_at)
           select $1, run.run_id, d.step_slug, d.deps_count, d.tasks,
                  case when d.deps_count = 0 and root.plain then 'started' else 'created' end,
                  case when d.deps_count = 0 and root.plain then d.tasks end,
                  case when d.deps_count = 0 and root.plain then greatest(clock_timestamp(), now()) end
           from definition d, run, root
           returning step_slug, status, remaining_deps
         )
         select run.run_id, run.flow_slug, run.status, run.remaining_steps, d.step_slug, d.tasks, d.step_index,
                d.conditional, states.status, states.remaining_deps, d.queue_name, d.start_delay
         from run
         left join states on states.remaining_deps = 0
         left join definition d on d.step_slug = states.step_slug",
    );
    let rows = INSERT.rows(&[param(flow_slug), param(input), param(run_id)])?;
    let run = rows.first().ok_or(Error::Internal {
        what: "an insert gave no row",
    })?;
    let run = LockedRun::from_record(&run)?;
    // A map that knows no number of tasks; the first by step_index is named.
    let root_maps = rows.iter().filter_map(|record| {
        let step_slug = record.nullable::<String>(5)?;
        let is_unknown = record.nullable::<i32>(6).is_none();
        is_unknown.then(|| (record.nullable::<i32>(7), step_slug))
    });
    if let Some((_, map_step)) = root_maps.min() {
        return Err(Error::InputNotArray {
            flow: run.flow_slug,
            map_step,
            found: input.map_or_else(String::new, Jsonb::type_name),
        });
    }
    let released = Released::from_rows(&run, &rows, 5)?;
    Ok((run, released))
}

/// Locks a run against every other call that reports or ends something in it.
pub fn lock(run_id: Uuid) -> Result<Option<LockedRun>, Error> {
    static LOCK: Statement = Statement::new(
        "select r.run_id, r.flow_slug, r.status, r.remaining_steps
         from pgflow.runs r where r.run_id = $1 for no key update",
    );
    LOCK.row(&[param(run_id)])?
        .map(|record| LockedRun::from_record(&record))
        .transpose()
}

/// As `lock`, for several runs; by run_id, in which order they are locked.
pub fn lock_many(run_ids: Vec<Uuid>) -> Result<Vec<LockedRun>, Error> {
    static LOCK: Statement = Statement::new(
        "select r.run_id, r.flow_slug, r.status, r.remaining_steps
         from pgflow.runs r where r.run_id = any($1) order by r.run_id for no key update",
    );
    LOCK.rows(&[param(run_ids)])?
        .collect(LockedRun::from_record)
}

/// Locks every run of a flow against reports.
pub fn lock_all(flow_slug: &str) -> Result<(), Error> {
    static LOCK: Statement = Statement::new(
        "select from pgflow.runs r where r.flow_slug = $1 order by r.run_id for update",
    );
    LOCK.run(&[param(flow_slug)])
}

pub fn write_remaining_steps(run: &LockedRun) -> Result<(), Error> {
    static UPDATE: Statement =
        Statement::new("update pgflow.runs set remaining_steps = $2 where run_id = $1");
    UPDATE.run(&[param(run.run_id), param(run.remaining_steps)])
}

/// Completes a run: its output is the object of the outputs of completed steps that nothing depends on.
pub fn complete(run: &LockedRun) -> Result<(), Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.runs r
         set status = 'completed', remaining_steps = 0,
             completed_at = greatest(clock_timestamp(), r.started_at),
             output = (
               select jsonb_object_agg(s.step_slug, s.output)
               from pgflow.step_states s
               where s.run_id = r.run_id and s.status = 'completed'
                 and not exists (select from pgflow.deps d
                                 where d.flow_slug = s.flow_slug and d.dep_slug = s.step_slug))
         where r.run_id = $1",
    );
    UPDATE.run(&[param(run.run_id)])
}

pub fn fail(run: &LockedRun) -> Result<(), Error> {
    static UPDATE: Statement = Statement::new(
        "update pgflow.runs r
         set status = 'failed', remaining_steps = $2, failed_at = greatest(clock_timestamp(), r.started_at)
         where r.run_id = $1",
    );
    UPDATE.run(&[param(run.run_id), param(run.remaining_steps)])
}

pub fn row(run_id: Uuid) -> Result<Option<Row>, Error> {
    static SELECT: Statement = Statement::new("select r from pgflow.runs r where r.run_id = $1");
    Ok(SELECT
        .row(&[param(run_id)])?
        .and_then(|record| record.keep(1)))
}

/// The run and its step states, in the order of the definition, as one JSON object.
pub fn with_states(run_id: Uuid) -> Result<Option<Jsonb>, Error> {
    static SELECT: Statement = Statement::new(
        "select jsonb_build_object(
                  'run', to_jsonb(r),
                  'steps', coalesce(
                    (select jsonb_agg(to_jsonb(s) order by d.step_index)
                     from pgflow.step_states s
                     join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
                     where s.run_id = r.run_id), '[]'))
         from pgflow.runs r where r.run_id = $1",
    );
    Ok(SELECT
        .row(&[param(run_id)])?
        .and_then(|record| record.keep(1)))
}

/// The steps of a run as its picture shows them, in the order of the definition; none for an unknown run.
pub fn graph(run_id: Uuid) -> Result<Option<Vec<GraphStep>>, Error> {
    static SELECT: Statement = Statement::new(
        "select p.step_index, p.step_slug, p.step_type,
                case when num_nonnulls(s.required_input_pattern, s.forbidden_input_pattern) > 0 then s.when_unmet end,
                r.flow_slug,
                p.status, p.skip_reason, p.total_tasks, p.completed_tasks, p.retries_count,
                extract(epoch from p.duration)::double precision
         from pgflow.runs r
         left join pgflow.step_progress p on p.run_id = r.run_id
         left join pgflow.steps s on s.flow_slug = p.flow_slug and s.step_slug = p.step_slug
         where r.run_id = $1
         order by p.step_index",
    );
    let rows = SELECT.rows(&[param(run_id)])?;
    steps::graph_steps(&rows, |record| {
        Ok(Some(GraphState {
            status: record.get::<String>(6)?.parse()?,
            skip_reason: record.nullable(7),
            total_tasks: record.nullable(8),
            completed_tasks: record.get(9)?,
            retries_count: record.get(10)?,
            seconds: record.nullable(11),
        }))
    })
}
