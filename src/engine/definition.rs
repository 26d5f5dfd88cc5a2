//! How flows come and go: what `create_flow`, `add_step`, compilation and deletion share. Every move here is made
//! under the lock of the flow's definition.

use crate::datum::Row;
use crate::error::Error;
use crate::model::QueueName;
use crate::queue;
use crate::store::flows::{self, FlowOptions};
use crate::store::steps::{self, NewStep};
use crate::store::{runs, step_tasks};

/// Creates a flow and its queue, or the queue alone when PGMQ lists none of a known flow. Returns the flow's row.
pub fn create_flow(flow_slug: Option<&str>, options: FlowOptions) -> Result<Option<Row>, Error> {
    flows::lock_definition(flow_slug)?;
    let is_new = flows::insert_new(flow_slug, options)?;
    if let Some(flow_slug) = flow_slug {
        provision_queue(flow_slug, is_new)?;
    }
    flows::row(flow_slug)
}

/// A new flow needs a queue name that nobody has; a known flow takes its queue under whatever spelling.
fn provision_queue(flow_slug: &str, is_new: bool) -> Result<(), Error> {
    let queue = QueueName::normalized(flow_slug);
    match queue::listed(&queue)?.pop() {
        None if queue.is_too_long() => Err(Error::QueueNameTooLong {
            flow: flow_slug.into(),
            queue: queue.as_str().into(),
        }),
        None => queue::create(&queue),
        Some(listed) if is_new => Err(Error::QueueTaken {
            flow: flow_slug.into(),
            queue: queue.as_str().into(),
            drop_call: queue::drop_call(&listed),
            listed,
        }),
        Some(_) => Ok(()),
    }
}

/// Adds a step with its dependencies, routed to the flow's default queue; a known step stays as it is. Returns the
/// step's row. `deps` are distinct.
pub fn add_step(step: &NewStep, deps: Vec<Option<String>>) -> Result<Option<Row>, Error> {
    flows::lock_definition(step.flow_slug)?;
    if let Some(existing) = steps::row(step.flow_slug, step.step_slug)? {
        return Ok(Some(existing));
    }
    if step.step_type == "map" && deps.len() > 1 {
        return Err(Error::MapWithManyDeps {
            flow: step.flow_slug.unwrap_or_default().into(),
            step: step.step_slug.unwrap_or_default().into(),
            count: deps.len(),
        });
    }
    let queue = step.flow_slug.map(QueueName::normalized);
    steps::insert(step, deps.len() as i32, queue.as_ref())?;
    if !deps.is_empty() {
        steps::insert_deps(step.flow_slug, step.step_slug, deps)?;
    }
    steps::row(step.flow_slug, step.step_slug)
}

/// Deletes a flow, everything that ran of it, and the queues its steps are routed to. Nothing for a slug that is not
/// exactly a flow's. Takes the rows that callbacks and claims hold before it drops the queues they wait for.
pub fn delete_flow(flow_slug: &str) -> Result<(), Error> {
    flows::lock_definition(Some(flow_slug))?;
    if !flows::lock(flow_slug)? {
        return Ok(());
    }
    // Reports first, then new runs, then those that were started meanwhile: the other way round, a report that holds
    // its run and creates tasks would wait for the flow, and the deletion for the run.
    runs::lock_all(flow_slug)?;
    flows::lock_against_runs(flow_slug)?;
    runs::lock_all(flow_slug)?;
    step_tasks::lock_unfinished_of_flow(flow_slug)?;
    drop_queues(flow_slug)?;
    flows::delete_rows(flow_slug)
}

/// Drops the queues of a flow's steps, or its default queue, each under its listed spelling; all or none.
fn drop_queues(flow_slug: &str) -> Result<(), Error> {
    let mut routes = steps::routes(flow_slug)?;
    if routes.is_empty() {
        routes.push(QueueName::normalized(flow_slug));
    }
    let mut spellings = Vec::new();
    for route in &routes {
        let mut listed = queue::listed(route)?;
        if listed.len() > 1 {
            return Err(Error::QueueAmbiguous {
                flow: flow_slug.into(),
                queue: route.as_str().into(),
                listed,
            });
        }
        match listed.pop() {
            Some(spelling) => spellings.push(spelling),
            None => pgrx::notice!(
                "queue \"{}\" of flow \"{flow_slug}\" is not listed by PGMQ; nothing to drop",
                route.as_str()
            ),
        }
    }
    for spelling in spellings {
        if !queue::drop_queue(&spelling)? {
            return Err(Error::QueueNotDropped {
                flow: flow_slug.into(),
                queue: spelling,
            });
        }
    }
    Ok(())
}
