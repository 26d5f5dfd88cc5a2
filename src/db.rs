//! The one door to SPI: statements are prepared once per backend and run from here.
//!
//! Owns plans, parameters and result rows. Must not know any table. Every statement runs through the writing
//! door (`read_only = false`), so that each sees what was committed before it started, also after waiting for a
//! lock. An SQL error inside a statement unwinds by itself with its own SQLSTATE; `Err` here is never SQL's.

use std::borrow::Cow;
use std::ffi::CString;
use std::sync::atomic::{AtomicPtr, Ordering};

use pgrx::{pg_sys, FromDatum, IntoDatum, PgList};

use crate::datum::Keep;
use crate::error::Error;

/// An SQL statement whose plan is made at first use and kept for the backend's life, or until a table that it uses
/// changes or is analyzed. There is one plan for all parameter values: they are keys, never skewed filters.
///
/// Every statement finds its rows by key, and its plan must say so whatever the tables held when it was made: a plan for
/// small tables is kept while they grow, and statistics know nothing of how steps hang together (seen: 7 ms instead of
/// 0.05 to tell one dependent in a flow of 500 steps). So plans are made as if every table were large.
pub struct Statement {
    sql: Cow<'static, str>,
    plan: AtomicPtr<pg_sys::_SPI_plan>,
}

/// A statement parameter with its type.
pub struct Param {
    datum: Option<pg_sys::Datum>,
    oid: pg_sys::Oid,
}

pub fn param<T: IntoDatum>(value: T) -> Param {
    Param {
        datum: value.into_datum(),
        oid: T::type_oid(),
    }
}

/// Runs `work` inside one SPI connection. Rows of a statement must be taken out with [`Record::keep`]; all else that
/// `work` allocates lives in the caller's memory, as if there were no connection.
pub fn connect<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // SAFETY: connect and finish are paired on both results; on an SQL error the transaction's abort finishes.
    check(
        "SPI_connect",
        in_callers_memory(|| unsafe { pg_sys::SPI_connect() }),
    )?;
    let result = work();
    check("SPI_finish", unsafe { pg_sys::SPI_finish() })?;
    result
}

/// Makes an SPI call and takes the current memory context back: SPI leaves its own, which ends with the connection.
fn in_callers_memory<T>(call: impl FnOnce() -> T) -> T {
    // SAFETY: the context was current, so it is alive, and SPI does not free it.
    unsafe {
        let callers = pg_sys::CurrentMemoryContext;
        let result = call();
        pg_sys::CurrentMemoryContext = callers;
        result
    }
}

impl Statement {
    pub const fn new(sql: &'static str) -> Self {
        Self {
            sql: Cow::Borrowed(sql),
            plan: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// A statement whose text is known at run time only; its plan is freed with it.
    pub fn of_text(sql: String) -> Self {
        Self {
            sql: Cow::Owned(sql),
            plan: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Runs the statement to its end and returns its rows.
    pub fn rows(&self, params: &[Param]) -> Result<Rows, Error> {
        let plan = self.plan(params)?;
        // SAFETY: the plan is kept, so it exists.
        if unsafe { !pg_sys::SPI_plan_is_valid(plan) } {
            plan_by_key(plan);
        }
        let mut values: Vec<pg_sys::Datum> = Vec::with_capacity(params.len());
        let mut nulls: Vec<std::os::raw::c_char> = Vec::with_capacity(params.len());
        for Param { datum, .. } in params {
            values.push(datum.unwrap_or(pg_sys::Datum::null()));
            nulls.push(if datum.is_some() { b' ' } else { b'n' } as std::os::raw::c_char);
        }
        // SAFETY: the plan is kept, and values and nulls have one entry for each of its parameters.
        let code = in_callers_memory(|| unsafe {
            pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), nulls.as_ptr(), false, 0)
        });
        check(&self.sql, code)?;
        // SAFETY: the variables belong to the statement that has just run.
        let (table, processed) = unsafe { (pg_sys::SPI_tuptable, pg_sys::SPI_processed as usize) };
        Ok(Rows {
            table,
            count: if table.is_null() { 0 } else { processed },
        })
    }

    /// Runs the statement; the first row, if there is one.
    pub fn row(&self, params: &[Param]) -> Result<Option<Record>, Error> {
        Ok(self.rows(params)?.first())
    }

    /// Runs the statement for its effect.
    pub fn run(&self, params: &[Param]) -> Result<(), Error> {
        self.rows(params).map(drop)
    }

    fn plan(&self, params: &[Param]) -> Result<pg_sys::SPIPlanPtr, Error> {
        let kept = self.plan.load(Ordering::Relaxed);
        if !kept.is_null() {
            return Ok(kept);
        }
        let sql = CString::new(&*self.sql).map_err(|_| Error::Internal {
            what: "a statement holds a NUL byte",
        })?;
        let mut types: Vec<pg_sys::Oid> = params.iter().map(|p| p.oid).collect();
        // SAFETY: the text and the types live through the call; the kept plan is never freed.
        let plan = in_callers_memory(|| unsafe {
            pg_sys::SPI_prepare_cursor(
                sql.as_ptr(),
                types.len() as i32,
                types.as_mut_ptr(),
                pg_sys::CURSOR_OPT_GENERIC_PLAN as i32,
            )
        });
        if plan.is_null() {
            // SAFETY: SPI's own variable, set by the call that just failed.
            let code = unsafe { pg_sys::SPI_result };
            return Err(Error::Spi {
                statement: self.sql.to_string(),
                code,
            });
        }
        check(&self.sql, unsafe { pg_sys::SPI_keepplan(plan) })?;
        plan_by_key(plan);
        self.plan.store(plan, Ordering::Relaxed);
        Ok(plan)
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        let plan = *self.plan.get_mut();
        if !plan.is_null() {
            // SAFETY: the plan is kept and its only owner goes; a running portal holds what it needs by itself.
            unsafe { pg_sys::SPI_freeplan(plan) };
        }
    }
}

/// Makes a kept statement's generic plan now, as if every table were large.
fn plan_by_key(plan: pg_sys::SPIPlanPtr) {
    let _large = LargeTables::new();
    // SAFETY: the plan is kept and has one statement; what is taken is given back to the same owner.
    in_callers_memory(|| unsafe {
        let cached = pg_sys::SPI_plan_get_cached_plan(plan);
        if !cached.is_null() {
            pg_sys::ReleaseCachedPlan(cached, pg_sys::CurrentResourceOwner);
        }
    });
}

/// While this lives the planner takes every table and index for large, and knows plain index scans and nested loops only.
/// It is for planning alone: nothing is executed meanwhile, so neither PGMQ nor a trigger ever sees it. Dropped on errors
/// too, which unwind.
struct LargeTables {
    settings: [bool; 6],
    hook: pg_sys::get_relation_info_hook_type,
}

impl LargeTables {
    fn new() -> Self {
        Self {
            settings: Self::set([false; 6]),
            // SAFETY: as in `set`.
            hook: unsafe { (&raw mut pg_sys::get_relation_info_hook).replace(Some(Self::enlarge)) },
        }
    }

    /// Sets what the planner may use; returns what it might before.
    fn set(values: [bool; 6]) -> [bool; 6] {
        let settings = [
            &raw mut pg_sys::enable_seqscan,
            &raw mut pg_sys::enable_bitmapscan,
            &raw mut pg_sys::enable_hashjoin,
            &raw mut pg_sys::enable_mergejoin,
            &raw mut pg_sys::enable_material,
            &raw mut pg_sys::jit_enabled,
        ];
        // SAFETY: PostgreSQL's own variables, of a backend with one thread.
        std::array::from_fn(|at| unsafe { settings[at].replace(values[at]) })
    }

    /// What the planner has just learned of a table: no less than ten million rows.
    unsafe extern "C-unwind" fn enlarge(
        _root: *mut pg_sys::PlannerInfo,
        _table: pg_sys::Oid,
        _inherits: bool,
        rel: *mut pg_sys::RelOptInfo,
    ) {
        const ROWS: f64 = 1e7;
        const PAGES: pg_sys::BlockNumber = 200_000;
        const INDEX_PAGES: pg_sys::BlockNumber = 50_000;
        // SAFETY: the planner calls the hook with its own description of a table and a list of its indexes'.
        unsafe {
            (*rel).tuples = (*rel).tuples.max(ROWS);
            (*rel).pages = (*rel).pages.max(PAGES);
            for index in PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist).iter_ptr() {
                (*index).tuples = (*index).tuples.max(ROWS);
                (*index).pages = (*index).pages.max(INDEX_PAGES);
                (*index).tree_height = (*index).tree_height.max(2);
            }
        }
    }
}

impl Drop for LargeTables {
    fn drop(&mut self) {
        Self::set(self.settings);
        // SAFETY: as in `set`.
        unsafe { (&raw mut pg_sys::get_relation_info_hook).write(self.hook) };
    }
}

fn check(statement: &str, code: i32) -> Result<(), Error> {
    if code < 0 {
        return Err(Error::Spi {
            statement: statement.to_string(),
            code,
        });
    }
    Ok(())
}

/// A statement's result; valid until the connection that ran it is finished.
pub struct Rows {
    table: *mut pg_sys::SPITupleTable,
    count: usize,
}

impl Rows {
    pub fn iter(&self) -> impl Iterator<Item = Record> + '_ {
        // SAFETY: the tuple table holds `count` tuples of one descriptor.
        (0..self.count).map(|i| unsafe {
            Record {
                tuple: *(*self.table).vals.add(i),
                desc: (*self.table).tupdesc,
            }
        })
    }

    pub fn first(&self) -> Option<Record> {
        self.iter().next()
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Every row, read by `read`.
    pub fn collect<T>(&self, read: impl Fn(&Record) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        self.iter().map(|record| read(&record)).collect()
    }
}

/// One row of a result. Columns count from 1.
pub struct Record {
    tuple: pg_sys::HeapTuple,
    desc: pg_sys::TupleDesc,
}

impl Record {
    /// A column that may be NULL.
    pub fn nullable<T: FromDatum>(&self, column: i32) -> Option<T> {
        let mut is_null = false;
        // SAFETY: tuple and descriptor belong together; the caller names the column's type.
        unsafe {
            let datum = pg_sys::SPI_getbinval(self.tuple, self.desc, column, &mut is_null);
            T::from_datum(datum, is_null)
        }
    }

    /// A column that is never NULL.
    pub fn get<T: FromDatum>(&self, column: i32) -> Result<T, Error> {
        self.nullable(column).ok_or(Error::Internal {
            what: "a statement returned NULL where it cannot",
        })
    }

    /// A by-reference column, copied so that it outlives the connection.
    pub fn keep<T: FromDatum + Keep>(&self, column: i32) -> Option<T> {
        // SAFETY: Keep is implemented for varlena types only; a toast pointer is copied as such.
        self.nullable::<T>(column)
            .map(|value| T::of(unsafe { pg_sys::SPI_datumTransfer(value.datum(), false, -1) }))
    }
}

/// Whether a schema has a function of this name, whatever its arguments.
pub fn function_named(schema: &str, name: &str) -> Result<bool, Error> {
    static SELECT: Statement = Statement::new(
        "select from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1 and p.proname = $2",
    );
    Ok(SELECT.rows(&[param(schema), param(name)])?.len() > 0)
}

/// A text as an SQL literal, for SQL that people are shown.
pub fn quoted_literal(text: &str) -> String {
    pgrx::spi::quote_literal(text)
}
