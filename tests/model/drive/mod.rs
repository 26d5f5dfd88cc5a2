//! Plays a case against the engine and the model side by side and compares everything after each operation.

mod compare;
mod lines;
mod shrink;
mod sql;

pub use shrink::smallest;

use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;

use pgrx::pg_sys::panic::CaughtError;
use pgrx::{pg_sys, PgTryBuilder};

use crate::behaviour::support::{failure, logged, one, rows, run};
use crate::random_model::operation::{Case, Operation};
use crate::random_model::rules::{Answer, World};
use compare::{Memory, Seen};

/// Where engine and model part.
pub struct Difference {
    /// Operations played, the last one of which made the difference.
    pub operations: usize,
    /// Everything that was called, as SQL.
    pub script: Vec<String>,
    pub what: String,
}

/// What every case needs, once per transaction.
pub fn prepare() {
    run("set local jit = off"); // it compiles the large comparing query for a second each time
    run("create extension if not exists pgmq");
    run(include_str!("../../fixtures/realtime.sql"));
    run(include_str!("../../fixtures/invariants.sql"));
    run(include_str!("../../fixtures/terminal_rows.sql"));
}

/// Plays a case; nothing of it stays in the database.
pub fn play(case: &Case) -> Result<(), Difference> {
    let script = RefCell::new(Vec::new());
    let operations = Cell::new(0);
    undone(|| play_here(case, &script, &operations)).map_err(|what| Difference {
        operations: operations.get(),
        script: script.take(),
        what,
    })
}

/// Does work in a subtransaction that is rolled back, also after an error.
fn undone(work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    // SAFETY: the test's function runs inside a transaction, and nothing that the work leaves behind is used after the
    // rollback: texts are Rust's own.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        let result = PgTryBuilder::new(AssertUnwindSafe(work))
            .catch_others(|error| Err(described(&error)))
            .execute();
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        result
    }
}

fn described(error: &CaughtError) -> String {
    let (CaughtError::PostgresError(report)
    | CaughtError::ErrorReport(report)
    | CaughtError::RustPanic {
        ereport: report, ..
    }) = error;
    let detail = report.detail().unwrap_or_default();
    format!("error: {} {detail}", report.message())
}

fn play_here(
    case: &Case,
    script: &RefCell<Vec<String>>,
    operations: &Cell<usize>,
) -> Result<(), String> {
    let call = |statement: &str| {
        script.borrow_mut().push(statement.to_string());
        run(statement);
    };
    for statement in sql::definition(case) {
        call(&statement);
    }
    let has_complete_tasks: bool = one("select exists (select from pg_proc \
        where proname = 'complete_tasks' and pronamespace = 'pgflow'::regnamespace)");
    let mut world = World::new(case.flows.clone());
    let mut memory = Memory::new(case.queues());
    for (at, operation) in case.operations.iter().enumerate() {
        let sql::Call { before, query } = sql::call(operation, &world, has_complete_tasks);
        let answer = world.apply(operation);
        if matches!(answer, Answer::NotApplicable) {
            continue;
        }
        operations.set(at + 1);
        for statement in before {
            call(&statement);
        }
        script.borrow_mut().push(query.clone());
        let seen = ask(&query, operation, &answer);
        compare::learn_ids(&mut world);
        compare::all(&world, &mut memory, &answer, seen)?;
    }
    Ok(())
}

/// Calls the engine. An expected error that does not come is an error.
fn ask(query: &str, operation: &Operation, answer: &Answer) -> Seen {
    let mut seen = Seen::default();
    match (answer, operation) {
        (Answer::Refused, _) => {
            failure(query);
        }
        (Answer::Unseen, _) => run(query),
        (_, Operation::Claim { .. }) => seen.warnings = logged(|| seen.rows = rows(query)),
        _ => seen.rows = rows(query),
    }
    seen
}
