//! The SQL statements on pgflow's own tables: one file per table, one function per statement.
//!
//! Statements do sets; which one runs next is decided in `engine`. Names are qualified, and every function that
//! gets here runs with the same pinned search_path, so no other schema's object is ever used.

use crate::db;
use crate::error::Error;
use crate::trust;

pub mod flows;
pub mod runs;
pub mod step_states;
pub mod step_tasks;
pub mod steps;
pub mod workers;

/// As [`db::connect`], for work on pgflow's tables. Error 42501 when row security applies to the current role: a hidden
/// row would make a claim endlessly empty, and a step's result incomplete.
pub fn connect<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    trust::all_rows_are_visible(
        c"pgflow",
        &[
            c"flows",
            c"steps",
            c"deps",
            c"runs",
            c"step_states",
            c"step_tasks",
            c"workers",
            c"worker_functions",
        ],
    )?;
    db::connect(work)
}
