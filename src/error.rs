//! Every error that the engine itself raises, with its SQLSTATE, DETAIL and HINT.
//!
//! What a constraint or PGMQ rejects is not here: those errors reach the caller as PostgreSQL raised them.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{function_name, PgSqlErrorCode};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("queue \"{queue}\" of flow \"{flow}\" already exists")]
    QueueTaken {
        flow: String,
        queue: String,
        listed: String,
        drop_call: String,
    },
    #[error("queue name \"{queue}\" of flow \"{flow}\" is too long")]
    QueueNameTooLong { flow: String, queue: String },
    #[error("queue \"{queue}\" of flow \"{flow}\" is listed in more than one spelling")]
    QueueAmbiguous {
        flow: String,
        queue: String,
        listed: Vec<String>,
    },
    #[error("queue \"{queue}\" of flow \"{flow}\" could not be dropped")]
    QueueNotDropped { flow: String, queue: String },
    #[error("flow shape is not valid")]
    ShapeInvalid { why: String },
    #[error("extension \"{extension}\" is needed and not installed")]
    ExtensionMissing {
        extension: &'static str,
        needed: &'static str,
    },
    #[error("map step \"{step}\" of flow \"{flow}\" has {count} dependencies")]
    MapWithManyDeps {
        flow: String,
        step: String,
        count: usize,
    },
    #[error("flow \"{flow}\" needs an array as input")]
    InputNotArray {
        flow: String,
        map_step: String,
        found: String,
    },
    #[error("run \"{run}\" does not exist")]
    UnknownRun { run: pgrx::Uuid },
    #[error("messages of started tasks are not in queue \"{queue}\" any more")]
    MessagesVanished { queue: String, ids: Vec<i64> },
    #[error("{} differ in length", names(.arrays))]
    UnequalArrays { arrays: Vec<(&'static str, usize)> },
    #[error("retry delay of {base} seconds after {attempts} attempts is not a number")]
    DelayNotANumber { base: String, attempts: i32 },
    #[error("unexpected value \"{value}\" for a {what}")]
    UnknownWord { what: &'static str, value: String },
    #[error("internal error: {what}")]
    Internal { what: &'static str },
    #[error("schema \"{schema}\" belongs to role \"{owner}\", who must not use the rights of role \"{role}\"")]
    SchemaNotTrusted {
        schema: String,
        owner: String,
        role: String,
    },
    #[error("row security of table \"{table}\" applies to role \"{role}\"")]
    RowsHidden { table: String, role: String },
    #[error("internal error: SPI answered {code}")]
    Spi { statement: String, code: i32 },
}

impl Error {
    fn code(&self) -> PgSqlErrorCode {
        use PgSqlErrorCode::*;
        match self {
            Error::QueueTaken { .. } => ERRCODE_UNIQUE_VIOLATION,
            Error::QueueAmbiguous { .. } => ERRCODE_AMBIGUOUS_FUNCTION,
            Error::QueueNameTooLong { .. }
            | Error::MapWithManyDeps { .. }
            | Error::InputNotArray { .. }
            | Error::ShapeInvalid { .. }
            | Error::UnequalArrays { .. } => ERRCODE_INVALID_PARAMETER_VALUE,
            Error::UnknownRun { .. } | Error::ExtensionMissing { .. } => ERRCODE_UNDEFINED_OBJECT,
            Error::MessagesVanished { .. } | Error::QueueNotDropped { .. } => {
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            }
            Error::SchemaNotTrusted { .. } | Error::RowsHidden { .. } => {
                ERRCODE_INSUFFICIENT_PRIVILEGE
            }
            Error::DelayNotANumber { .. } => ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            Error::UnknownWord { .. } | Error::Internal { .. } | Error::Spi { .. } => {
                ERRCODE_INTERNAL_ERROR
            }
        }
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Error::QueueTaken { listed, .. } => {
                format!("PGMQ lists a queue \"{listed}\" that no flow owns.")
            }
            Error::QueueNameTooLong { queue, .. } => {
                format!(
                    "It has {} characters; PGMQ allows 47.",
                    queue.chars().count()
                )
            }
            Error::QueueAmbiguous { listed, .. } => format!("PGMQ lists: {}.", listed.join(", ")),
            Error::QueueNotDropped { .. } => {
                "PGMQ lists the queue, and says that it does not exist.".into()
            }
            Error::ShapeInvalid { why } => format!("It cannot be read: {why}."),
            Error::ExtensionMissing { needed, .. } => format!("There is no {needed}."),
            Error::MapWithManyDeps { .. } => {
                "A map step runs over the array of at most one dependency.".into()
            }
            Error::InputNotArray {
                map_step, found, ..
            } => {
                format!("Map step \"{map_step}\" has no dependency and maps over the run input, which is {found}.")
            }
            Error::MessagesVanished { ids, .. } => {
                format!("At least one is missing of message ids {ids:?}.")
            }
            Error::UnequalArrays { arrays } => {
                let lengths = arrays
                    .iter()
                    .map(|(name, length)| format!("{name}: {length}"));
                format!("{}.", lengths.collect::<Vec<_>>().join(", "))
            }
            Error::SchemaNotTrusted { schema, .. } => {
                format!("pgflow calls functions in schema \"{schema}\", and its owner decides what they do.")
            }
            Error::RowsHidden { .. } => {
                "Policies may hide rows, and what pgflow decides is right only when it sees all of them.".into()
            }
            Error::Spi { statement, .. } => format!("Statement: {statement}"),
            _ => return None,
        })
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Error::QueueTaken { drop_call, .. } => format!(
                "Choose another flow slug, or, if nothing uses that queue, drop it: {drop_call};"
            ),
            Error::QueueNameTooLong { .. } => "Choose a flow slug of at most 47 characters.".into(),
            Error::QueueAmbiguous { .. } => {
                "All spellings share the same tables: delete the listings that are not in use from \
                 PGMQ's table meta, then try again."
                    .into()
            }
            Error::ExtensionMissing { extension, .. } => {
                format!("Run: create extension {extension}.")
            }
            Error::MapWithManyDeps { .. } => {
                "Put a single step between that joins the dependencies and returns an array.".into()
            }
            Error::InputNotArray { .. } => "Pass a JSON array, one element for each task.".into(),
            Error::SchemaNotTrusted { schema, role, .. } => format!(
                "If you trust what is in it, run as a superuser: alter schema \"{schema}\" owner to \"{role}\"; \
                 otherwise drop it."
            ),
            Error::RowsHidden { role, .. } => format!(
                "Run as a superuser: alter role \"{role}\" bypassrls; or use a role that owns the table."
            ),
            Error::MessagesVanished { .. } => {
                "Only pgflow may delete or archive messages of this queue. Nothing was changed."
                    .into()
            }
            _ => return None,
        })
    }
}

/// `a, b and c`
fn names(arrays: &[(&str, usize)]) -> String {
    let names: Vec<_> = arrays.iter().map(|(name, _)| *name).collect();
    match names.split_last() {
        Some((last, [])) => last.to_string(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

impl From<Error> for ErrorReport {
    #[track_caller]
    fn from(error: Error) -> Self {
        let mut report = ErrorReport::new(error.code(), error.to_string(), function_name!());
        if let Some(detail) = error.detail() {
            report = report.set_detail(detail);
        }
        if let Some(hint) = error.hint() {
            report = report.set_hint(hint);
        }
        report
    }
}
