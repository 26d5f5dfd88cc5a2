//! Recovery of stalled tasks.

use super::message;
use crate::db::{param, Statement};
use crate::error::Error;
use crate::model::{MessageRef, QueueName};

/// What became of stalled tasks.
pub struct Recovered {
    /// How many were queued again, and the messages of those that have one.
    pub requeued_count: i32,
    pub requeued: Vec<MessageRef>,
    /// Messages of tasks that stalled too often.
    pub given_up: Vec<MessageRef>,
}

/// Queues in which messages of stalled tasks should be, or of tasks that may be.
pub fn queues_of_stalled(grace_seconds: i32) -> Result<Vec<QueueName>, Error> {
    static SELECT: Statement = Statement::new(
        "select distinct t.queue_name from pgflow.step_tasks t
         where t.status = 'started' and t.permanently_stalled_at is null and t.message_id is not null
           and t.started_at < statement_timestamp() - make_interval(secs => $1)",
    );
    SELECT
        .rows(&[param(grace_seconds)])?
        .collect(|record| Ok(QueueName::stored(record.get(1)?)))
}

/// Queues stalled tasks again, up to `most` times each, or marks them permanently stalled; not those in the queues
/// `missing`. Rows that others have locked are passed over: whoever holds them is about to decide.
pub fn recover_stalled(
    grace_seconds: i32,
    most: i32,
    missing: &[QueueName],
) -> Result<Recovered, Error> {
    static UPDATE: Statement = Statement::new(
        "with stalled as materialized (
           select t.run_id, t.step_slug, t.task_index, t.requeued_count < $2 as again
           from pgflow.step_tasks t
           join pgflow.runs r on r.run_id = t.run_id
           join pgflow.step_states s on s.run_id = t.run_id and s.step_slug = t.step_slug
           join pgflow.steps d on d.flow_slug = t.flow_slug and d.step_slug = t.step_slug
           join pgflow.flows f on f.flow_slug = t.flow_slug
           where t.status = 'started' and t.permanently_stalled_at is null
             and r.status = 'started' and s.status = 'started'
             and (t.message_id is null or t.queue_name <> all($3))
             and t.started_at < statement_timestamp() - make_interval(secs => $1)
             and t.started_at < statement_timestamp()
                 - make_interval(secs => coalesce(d.opt_timeout, f.opt_timeout)::double precision + $1)
           order by t.run_id, t.step_slug, t.task_index
           for no key update of t skip locked
         )
         update pgflow.step_tasks t
         set status = case when k.again then 'queued' else t.status end,
             started_at = case when k.again then null else t.started_at end,
             last_worker_id = case when k.again then null else t.last_worker_id end,
             requeued_count = t.requeued_count + k.again::integer,
             last_requeued_at = case when k.again then clock_timestamp() else t.last_requeued_at end,
             permanently_stalled_at = case when k.again then null else clock_timestamp() end
         from stalled k
         where t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
         returning t.queue_name, t.message_id, k.again",
    );
    let mut recovered = Recovered {
        requeued_count: 0,
        requeued: Vec::new(),
        given_up: Vec::new(),
    };
    let missing = missing.iter().map(QueueName::as_str).collect::<Vec<_>>();
    let params = [param(grace_seconds), param(most), param(missing)];
    for record in UPDATE.rows(&params)?.iter() {
        let message = message(&record, 1)?;
        if record.get(3)? {
            recovered.requeued_count += 1;
            recovered.requeued.extend(message);
        } else {
            recovered.given_up.extend(message);
        }
    }
    Ok(recovered)
}
