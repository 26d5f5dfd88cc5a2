//! pgflow: workflows (DAGs of steps) inside PostgreSQL, on PGMQ queues.
//!
//! Follow one task through the files: `api::create_flow` and `api::add_step` define, `api::start_flow` starts a
//! run, `engine::advance` starts its first steps and sends their messages through `queue`, `api::start_tasks`
//! claims them for a worker, `api::complete_task` or `api::fail_task` takes the report, and `engine::advance`
//! again lets the next steps go on. `store` has the statements, `rules` what can be decided without a database.
//!
//! Imports go api -> engine -> {rules, store, queue, events, cron, http} -> {db, trust, error, model, datum}, never upward.

mod api;
mod cron;
mod datum;
mod db;
mod engine;
mod error;
mod events;
mod http;
mod model;
mod queue;
mod rules;
mod store;
mod trust;

::pgrx::pg_module_magic!(name, version);

pgrx::extension_sql_file!("../sql/validators.sql", name = "validators");
pgrx::extension_sql_file!(
    "../sql/definitions.sql",
    name = "definitions",
    requires = ["validators"]
);
pgrx::extension_sql_file!(
    "../sql/workers.sql",
    name = "workers",
    requires = ["definitions"]
);
pgrx::extension_sql_file!(
    "../sql/runtime.sql",
    name = "runtime",
    requires = ["workers"]
);
pgrx::extension_sql_file!(
    "../sql/functions_flow.sql",
    name = "functions_flow",
    requires = ["runtime"]
);
pgrx::extension_sql_file!(
    "../sql/functions_run.sql",
    name = "functions_run",
    requires = ["functions_flow"]
);
pgrx::extension_sql_file!(
    "../sql/functions_task.sql",
    name = "functions_task",
    requires = ["functions_run"]
);
pgrx::extension_sql_file!(
    "../sql/functions_compile.sql",
    name = "functions_compile",
    requires = ["functions_task"]
);
pgrx::extension_sql_file!(
    "../sql/functions_worker.sql",
    name = "functions_worker",
    requires = ["functions_compile"]
);
pgrx::extension_sql_file!(
    "../sql/functions_monitoring.sql",
    name = "functions_monitoring",
    requires = ["functions_worker"]
);
pgrx::extension_sql_file!(
    "../sql/views.sql",
    name = "views",
    requires = ["functions_monitoring"]
);
pgrx::extension_sql_file!(
    "../sql/grants_and_dump.sql",
    name = "grants_and_dump",
    finalize
);

#[cfg(any(test, feature = "pg_test"))]
#[path = "../tests/behaviour/mod.rs"]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod behaviour;

#[cfg(any(test, feature = "pg_test"))]
#[path = "../tests/model/mod.rs"]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod random_model;

/// What the pgrx test harness calls.
#[cfg(test)]
pub mod pg_test {
    pub fn setup(_options: Vec<&str>) {}

    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        crate::random_model::conf_options()
    }
}
