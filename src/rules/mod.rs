//! Decisions that need no database: tested without one.

pub mod callback;
pub mod graph;
pub mod retry;
pub mod shape;
