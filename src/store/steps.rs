//! `pgflow.steps` and `pgflow.deps`: a flow's definition.

use std::collections::HashMap;

use crate::datum::{Jsonb, Row};
use crate::db::{param, Record, Rows, Statement};
use crate::error::Error;
use crate::model::{GraphState, GraphStep, QueueName};

/// A step as add_step defines it; `None` means the flow's option applies, or the default.
pub struct NewStep<'a> {
    pub flow_slug: Option<&'a str>,
    pub step_slug: Option<&'a str>,
    pub max_attempts: Option<i32>,
    pub base_delay: Option<i32>,
    pub timeout: Option<i32>,
    pub start_delay: Option<i32>,
    pub step_type: &'a str,
    pub required_input_pattern: Option<Jsonb>,
    pub forbidden_input_pattern: Option<Jsonb>,
    pub when_unmet: Option<&'a str>,
    pub when_exhausted: Option<&'a str>,
}

pub fn row(flow_slug: Option<&str>, step_slug: Option<&str>) -> Result<Option<Row>, Error> {
    static SELECT: Statement =
        Statement::new("select s from pgflow.steps s where s.flow_slug = $1 and s.step_slug = $2");
    Ok(SELECT
        .row(&[param(flow_slug), param(step_slug)])?
        .and_then(|record| record.keep(1)))
}

/// Inserts a step after the flow's last one, routed to `queue`.
pub fn insert(step: &NewStep, deps_count: i32, queue: Option<&QueueName>) -> Result<(), Error> {
    static INSERT: Statement = Statement::new(
        "insert into pgflow.steps
           (flow_slug, step_slug, step_type, step_index, deps_count, opt_max_attempts, opt_base_delay, opt_timeout,
            opt_start_delay, required_input_pattern, forbidden_input_pattern, when_unmet, when_exhausted, queue_name)
         values
           ($1, $2, $3, (select coalesce(max(s.step_index) + 1, 0) from pgflow.steps s where s.flow_slug = $1),
            $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    );
    INSERT.run(&[
        param(step.flow_slug),
        param(step.step_slug),
        param(step.step_type),
        param(deps_count),
        param(step.max_attempts),
        param(step.base_delay),
        param(step.timeout),
        param(step.start_delay),
        param(step.required_input_pattern),
        param(step.forbidden_input_pattern),
        param(step.when_unmet),
        param(step.when_exhausted),
        param(queue.map(QueueName::as_str)),
    ])
}

/// Inserts one dependency for each slug.
pub fn insert_deps(
    flow_slug: Option<&str>,
    step_slug: Option<&str>,
    deps: Vec<Option<String>>,
) -> Result<(), Error> {
    static INSERT: Statement = Statement::new(
        "insert into pgflow.deps (flow_slug, dep_slug, step_slug)
         select $1, d.slug, $2 from unnest($3) as d (slug)",
    );
    INSERT.run(&[param(flow_slug), param(step_slug), param(deps)])
}

/// The distinct queues that the steps of a flow are routed to.
pub fn routes(flow_slug: &str) -> Result<Vec<QueueName>, Error> {
    static SELECT: Statement = Statement::new(
        "select distinct s.queue_name from pgflow.steps s where s.flow_slug = $1 order by 1",
    );
    SELECT
        .rows(&[param(flow_slug)])?
        .collect(|record| Ok(QueueName::stored(record.get(1)?)))
}

/// The stored definition as a shape, without options; no steps for an unknown flow.
pub fn shape(flow_slug: &str) -> Result<Jsonb, Error> {
    static SELECT: Statement = Statement::new(
        "select jsonb_build_object('steps', coalesce(jsonb_agg(jsonb_build_object(
           'slug', s.step_slug, 'stepType', s.step_type,
           'dependencies', (select coalesce(jsonb_agg(d.dep_slug order by d.dep_slug collate \"C\"), '[]')
                            from pgflow.deps d where d.flow_slug = s.flow_slug and d.step_slug = s.step_slug),
           'whenUnmet', s.when_unmet, 'whenExhausted', s.when_exhausted,
           'requiredInputPattern', case when s.required_input_pattern is null then '{\"defined\": false}'::jsonb
             else jsonb_build_object('defined', true, 'value', s.required_input_pattern) end,
           'forbiddenInputPattern', case when s.forbidden_input_pattern is null then '{\"defined\": false}'::jsonb
             else jsonb_build_object('defined', true, 'value', s.forbidden_input_pattern) end
         ) order by s.step_index), '[]'))
         from pgflow.steps s where s.flow_slug = $1",
    );
    SELECT
        .row(&[param(flow_slug)])?
        .and_then(|record| record.keep(1))
        .ok_or(Error::Internal {
            what: "an aggregate gave no row",
        })
}

/// The steps of a flow as its picture shows them, in the order of the definition; none for an unknown flow.
pub fn graph(flow_slug: &str) -> Result<Option<Vec<GraphStep>>, Error> {
    static SELECT: Statement = Statement::new(
        "select s.step_index, s.step_slug, s.step_type,
                case when num_nonnulls(s.required_input_pattern, s.forbidden_input_pattern) > 0 then s.when_unmet end,
                f.flow_slug
         from pgflow.flows f
         left join pgflow.steps s on s.flow_slug = f.flow_slug
         where f.flow_slug = $1
         order by s.step_index",
    );
    let rows = SELECT.rows(&[param(flow_slug)])?;
    graph_steps(&rows, |_| Ok(None))
}

/// The slugs that each step of a flow depends on. Read at once: how one step's are found is up to statistics.
fn dependencies(flow_slug: &str) -> Result<HashMap<String, Vec<String>>, Error> {
    static SELECT: Statement =
        Statement::new("select d.step_slug, d.dep_slug from pgflow.deps d where d.flow_slug = $1");
    let mut dependencies: HashMap<_, Vec<_>> = HashMap::new();
    for record in SELECT.rows(&[param(flow_slug)])?.iter() {
        dependencies
            .entry(record.get(1)?)
            .or_default()
            .push(record.get(2)?);
    }
    Ok(dependencies)
}

/// The steps in rows whose columns 1 to 5 are as in `graph`; `state` reads the others. A row without a step stands for
/// a flow or run without steps; no rows for one that is unknown.
pub fn graph_steps(
    rows: &Rows,
    state: impl Fn(&Record) -> Result<Option<GraphState>, Error>,
) -> Result<Option<Vec<GraphStep>>, Error> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let dependencies = dependencies(first.get::<String>(5)?.as_str())?;
    let indexes: HashMap<String, i32> = rows
        .iter()
        .filter_map(|record| Some((record.nullable(2)?, record.nullable(1)?)))
        .collect();
    let indexes_of_dependencies = |step_slug: &str| {
        let slugs = dependencies.get(step_slug).into_iter().flatten();
        let mut found: Vec<_> = slugs
            .filter_map(|slug| indexes.get(slug).copied())
            .collect();
        found.sort_unstable();
        found
    };
    let steps = rows.collect(|record| {
        let Some(step_index) = record.nullable(1) else {
            return Ok(None);
        };
        Ok(Some(GraphStep {
            step_index,
            deps: indexes_of_dependencies(&record.get::<String>(2)?),
            step_slug: record.get(2)?,
            step_type: record.get::<String>(3)?.parse()?,
            condition: record
                .nullable::<String>(4)
                .map(|when_unmet| when_unmet.parse())
                .transpose()?,
            state: state(record)?,
        }))
    })?;
    Ok(Some(steps.into_iter().flatten().collect()))
}
