//! `pgflow.is_valid_queue_name(queue_name)`: whether a step or task may store this queue name.

use pgrx::prelude::*;

use crate::model::QueueName;

/// False for NULL, empty, more than 47 characters, a name that is not in lower case, or one that holds `$`, `;`,
/// `--` or `'`, which PGMQ refuses. Immutable: CHECK constraints call it.
#[pg_extern(sql = false)]
fn is_valid_queue_name(queue_name: Option<&str>) -> bool {
    queue_name.is_some_and(QueueName::is_valid)
}
