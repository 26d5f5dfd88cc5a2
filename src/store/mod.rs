//! The SQL statements on pgflow's own tables: one file per table, one function per statement.
//!
//! Statements do sets; which one runs next is decided in `engine`. Names are qualified, and every function that
//! gets here runs with the same pinned search_path, so no other schema's object is ever used.

pub mod flows;
pub mod runs;
pub mod step_states;
pub mod step_tasks;
pub mod steps;
pub mod workers;
