//! The PGMQ port: the only file that names `pgmq`. Its public functions only, except for `set_vt_batch`, which
//! gives each message its own visibility in one UPDATE.
//!
//! Owns how a message is sent, moved and archived. Must not know why. One task means PGMQ's single form, several
//! its batch form, once per queue.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::mem::ManuallyDrop;
use std::rc::Rc;

use crate::db::{self, param, Rows, Statement};
use crate::error::Error;
use crate::model::{MessageRef, QueueName, StartedStep};

/// The spellings under which PGMQ lists a queue: none, one, or more in a damaged installation.
pub fn listed(queue: &QueueName) -> Result<Vec<String>, Error> {
    static SELECT: Statement = Statement::new(
        "select q.queue_name::text from pgmq.list_queues() q where lower(q.queue_name) = $1 order by 1",
    );
    SELECT
        .rows(&[param(queue.as_str())])?
        .collect(|record| record.get(1))
}

/// What PGMQ measures of a queue. Ages are in seconds, and none without messages.
pub struct Measures {
    pub length: Option<i64>,
    pub visible_length: Option<i64>,
    pub oldest_age: Option<i32>,
    pub newest_age: Option<i32>,
    pub total: Option<i64>,
}

/// What PGMQ measures of those queues that it lists. Each is read from end to end.
pub fn measures<'a>(
    queues: impl Iterator<Item = &'a QueueName>,
) -> Result<BTreeMap<QueueName, Measures>, Error> {
    static SELECT: Statement = Statement::new(
        "select q.name, m.queue_length, m.queue_visible_length, m.oldest_msg_age_sec, m.newest_msg_age_sec, m.total_messages
         from (select distinct lower(l.queue_name) as name from pgmq.list_queues() l where lower(l.queue_name) = any($1)) q
         cross join lateral pgmq.metrics(q.name) m",
    );
    let names: Vec<_> = queues.map(QueueName::as_str).collect();
    let measures = SELECT.rows(&[param(names)])?.collect(|record| {
        let queue = QueueName::stored(record.get(1)?);
        let measures = Measures {
            length: record.nullable(2),
            visible_length: record.nullable(3),
            oldest_age: record.nullable(4),
            newest_age: record.nullable(5),
            total: record.nullable(6),
        };
        Ok((queue, measures))
    })?;
    Ok(measures.into_iter().collect())
}

/// Creates a queue; PGMQ judges the name.
pub fn create(queue: &QueueName) -> Result<(), Error> {
    static CREATE: Statement = Statement::new("select pgmq.create($1)");
    CREATE.run(&[param(queue.as_str())])
}

/// Drops a queue with its archive, by the spelling that PGMQ lists. Returns whether there was one.
pub fn drop_queue(spelling: &str) -> Result<bool, Error> {
    static DROP: Statement = Statement::new("select pgmq.drop_queue($1)");
    Ok(DROP
        .row(&[param(spelling)])?
        .and_then(|record| record.nullable(1))
        .unwrap_or(false))
}

/// The SQL with which a person drops a queue.
pub fn drop_call(spelling: &str) -> String {
    format!("select pgmq.drop_queue({})", db::quoted_literal(spelling))
}

/// Sends one message for each task of started steps, delayed by some seconds. Returns the message ids, step by step
/// in the order given, within a step by task_index.
pub fn send_tasks(
    queue: &QueueName,
    steps: &[&StartedStep],
    delay: i32,
) -> Result<Vec<i64>, Error> {
    static SEND: Statement = Statement::new(
        "select s.id
         from pgmq.send($1, jsonb_build_object('flow_slug', $2, 'run_id', $3, 'step_slug', $4, 'task_index', 0),
                        $5) as s (id)",
    );
    static SEND_BATCH: Statement = Statement::new(
        "select s.id
         from pgmq.send_batch($1, (
           select array_agg(jsonb_build_object('flow_slug', k.flow_slug, 'run_id', k.run_id, 'step_slug', k.step_slug,
                                               'task_index', i.task_index) order by k.position, i.task_index)
           from unnest($2, $3, $4, $5) with ordinality as k (flow_slug, run_id, step_slug, tasks, position)
           cross join lateral generate_series(0, k.tasks - 1) as i (task_index)
         ), $6) with ordinality as s (id, position)
         order by s.position",
    );
    let rows = match steps {
        [step] if step.tasks == 1 => SEND.rows(&[
            param(queue.as_str()),
            param(step.flow_slug.as_str()),
            param(step.run_id),
            param(step.step_slug.as_str()),
            param(delay),
        ])?,
        _ => {
            let texts = |of: fn(&StartedStep) -> &str| {
                steps.iter().map(|step| of(step)).collect::<Vec<_>>()
            };
            SEND_BATCH.rows(&[
                param(queue.as_str()),
                param(texts(|step| &step.flow_slug)),
                param(steps.iter().map(|step| step.run_id).collect::<Vec<_>>()),
                param(texts(|step| &step.step_slug)),
                param(steps.iter().map(|step| step.tasks).collect::<Vec<_>>()),
                param(delay),
            ])?
        }
    };
    rows.collect(|record| record.get(1))
}

/// Archives messages, each through its own queue. A message that is not in its queue any more is no error.
pub fn archive(messages: Vec<MessageRef>) -> Result<(), Error> {
    static ARCHIVE: Statement = Statement::new("select pgmq.archive($1, $2)");
    static ARCHIVE_BATCH: Statement = Statement::new("select count(*) from pgmq.archive($1, $2)");
    for (queue, ids) in by_queue(messages) {
        match ids[..] {
            [id] => ARCHIVE.run(&[param(queue.as_str()), param(id)])?,
            _ => ARCHIVE_BATCH.run(&[param(queue.as_str()), param(ids)])?,
        }
    }
    Ok(())
}

fn by_queue(messages: Vec<MessageRef>) -> BTreeMap<QueueName, Vec<i64>> {
    let mut queues: BTreeMap<QueueName, Vec<i64>> = BTreeMap::new();
    for message in messages {
        queues.entry(message.queue).or_default().push(message.id);
    }
    queues
}

/// Makes one message visible after some seconds. Returns whether it is in the queue.
pub fn set_visibility(message: &MessageRef, seconds: i32) -> Result<bool, Error> {
    static SET_VT: Statement = Statement::new("select from pgmq.set_vt($1, $2, $3)");
    let rows = SET_VT.rows(&[
        param(message.queue.as_str()),
        param(message.id),
        param(seconds),
    ])?;
    Ok(rows.len() > 0)
}

/// Those of some queues that do not exist.
pub fn missing(queues: Vec<QueueName>) -> Result<Vec<QueueName>, Error> {
    static SELECT: Statement = Statement::new(
        "select q from unnest($1) q
         where to_regclass(format('pgmq.%I', pgmq.format_table_name(q, 'q'))) is null",
    );
    if queues.is_empty() {
        return Ok(queues);
    }
    let names = queues.iter().map(QueueName::as_str).collect::<Vec<_>>();
    SELECT
        .rows(&[param(names)])?
        .collect(|record| Ok(QueueName::stored(record.get(1)?)))
}

/// Makes messages visible at once, each in its own queue. One that is not in its queue any more is passed over.
pub fn show(messages: Vec<MessageRef>) -> Result<(), Error> {
    for (queue, ids) in by_queue(messages) {
        match ids[..] {
            [id] => set_visibility(&MessageRef { queue, id }, 0).map(drop)?,
            _ => {
                let now = vec![Some(0); ids.len()];
                set_vt_batch(queue.as_str(), ids.into_iter().map(Some).collect(), now).map(drop)?;
            }
        }
    }
    Ok(())
}

/// Statements are kept for as many queues, a few kB each.
const MOST_QUEUES: usize = 100;

/// Makes each message visible after its own number of seconds; rows of the messages that are in the queue:
/// msg_id, read_ct, enqueued_at, vt, message, headers.
pub fn set_vt_batch(
    queue: &str,
    ids: Vec<Option<i64>>,
    seconds: Vec<Option<i32>>,
) -> Result<Rows, Error> {
    thread_local! {
        /// The latest queues that this backend has claimed from. Never dropped: plans are not freed while it exits.
        static UPDATES: ManuallyDrop<RefCell<HashMap<String, Rc<Statement>>>> = ManuallyDrop::default();
    }
    // In the order of ids, so that two calls for the same messages do not deadlock.
    let mut visibilities: Vec<_> = ids.into_iter().zip(seconds).collect();
    visibilities.sort_by_key(|(id, _)| *id);
    let (ids, seconds): (Vec<_>, Vec<_>) = visibilities.into_iter().unzip();
    let params = [param(ids), param(seconds)];
    if let Some(update) = UPDATES.with(|updates| updates.borrow().get(queue).cloned()) {
        return update.rows(&params);
    }
    let update = Rc::new(Statement::of_text(set_vt_batch_sql(queue)?));
    let rows = update.rows(&params)?; // no such queue: an error, and nothing is kept of it
    UPDATES.with(|updates| {
        let mut updates = updates.borrow_mut();
        if updates.len() >= MOST_QUEUES {
            updates.clear();
        }
        updates.insert(queue.to_string(), update);
    });
    Ok(rows)
}

fn set_vt_batch_sql(queue: &str) -> Result<String, Error> {
    static FORMAT: Statement = Statement::new(
        "select format(
           'update pgmq.%I q set vt = clock_timestamp() + make_interval(secs => k.seconds)
            from unnest($1, $2) as k (msg_id, seconds)
            where q.msg_id = k.msg_id
            returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers',
           pgmq.format_table_name($1, 'q'))",
    );
    let record = FORMAT.row(&[param(queue)])?.ok_or(Error::Internal {
        what: "format gave no row",
    })?;
    record.get(1)
}
