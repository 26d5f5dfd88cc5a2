//! `pgflow.set_vt_batch(queue_name, msg_ids, vt_offsets)`: gives each message its own visibility.

use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::datum::Jsonb;
use crate::db::{self, Record};
use crate::error::Error;
use crate::queue;

type MessageRow = (
    Option<i64>,
    Option<i32>,
    Option<TimestampWithTimeZone>,
    Option<TimestampWithTimeZone>,
    Option<Jsonb>,
    Option<Jsonb>,
);

/// Makes message `msg_ids[n]` of a queue visible `vt_offsets[n]` seconds from now, in one UPDATE; returns the
/// messages that are in the queue, as PGMQ reads them.
///
/// NULL or empty arrays: no rows. Errors: 22023 arrays that differ in length, 42P01 no such queue. Locks the
/// messages' rows.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity, reason = "pgrx wants the columns spelled out")]
fn set_vt_batch(
    queue_name: Option<&str>,
    msg_ids: Option<Array<i64>>,
    vt_offsets: Option<Array<i32>>,
) -> Result<
    TableIterator<
        'static,
        (
            name!(msg_id, Option<i64>),
            name!(read_ct, Option<i32>),
            name!(enqueued_at, Option<TimestampWithTimeZone>),
            name!(vt, Option<TimestampWithTimeZone>),
            name!(message, Option<Jsonb>),
            name!(headers, Option<Jsonb>),
        ),
    >,
    ErrorReport,
> {
    let (Some(queue), Some(ids), Some(offsets)) = (queue_name, msg_ids, vt_offsets) else {
        return Ok(TableIterator::empty());
    };
    if ids.len() != offsets.len() {
        let arrays = vec![("msg_ids", ids.len()), ("vt_offsets", offsets.len())];
        return Err(Error::UnequalArrays { arrays }.into());
    }
    if ids.is_empty() {
        return Ok(TableIterator::empty());
    }
    let rows = db::connect(|| {
        queue::set_vt_batch(queue, ids.iter().collect(), offsets.iter().collect())?
            .collect(message_row)
    })?;
    Ok(TableIterator::new(rows))
}

fn message_row(record: &Record) -> Result<MessageRow, Error> {
    Ok((
        record.nullable(1),
        record.nullable(2),
        record.nullable(3),
        record.nullable(4),
        record.keep(5),
        record.keep(6),
    ))
}
