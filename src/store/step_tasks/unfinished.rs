//! What is to be done, queue by queue.

use crate::db::{param, Statement};
use crate::error::Error;
use crate::model::QueueName;

/// A flow's work in one queue.
pub struct QueueWork {
    pub flow_slug: String,
    pub queue: QueueName,
    /// Tasks that should have a message in the queue.
    pub unfinished_tasks: i64,
    pub live_workers: i64,
}

/// The queues of one flow, or of all: default queues, queues that steps are routed to, and queues that unfinished tasks
/// were sent to.
pub fn by_queue(flow_slug: Option<&str>) -> Result<Vec<QueueWork>, Error> {
    static SELECT: Statement = Statement::new(
        "select q.flow_slug, q.queue_name, sum(q.tasks),
                (select count(*) from pgflow.live_workers w where w.queue_name = q.queue_name)
         from (
           select f.flow_slug, lower(f.flow_slug) as queue_name, 0 as tasks
           from pgflow.flows f where f.flow_slug = coalesce($1, f.flow_slug)
           union all
           select d.flow_slug, d.queue_name, 0
           from pgflow.steps d where d.flow_slug = coalesce($1, d.flow_slug)
           union all
           select t.flow_slug, t.queue_name, 1
           from pgflow.runs r
           join pgflow.step_states s on s.run_id = r.run_id and s.status = 'started'
           join pgflow.step_tasks t on t.run_id = s.run_id and t.step_slug = s.step_slug
           where r.status = 'started' and r.flow_slug = coalesce($1, r.flow_slug)
             and t.status in ('queued', 'started') and t.message_id is not null and t.permanently_stalled_at is null
         ) q
         group by q.flow_slug, q.queue_name
         order by q.flow_slug, q.queue_name",
    );
    SELECT.rows(&[param(flow_slug)])?.collect(|record| {
        Ok(QueueWork {
            flow_slug: record.get(1)?,
            queue: QueueName::stored(record.get(2)?),
            unfinished_tasks: record.get(3)?,
            live_workers: record.get(4)?,
        })
    })
}
