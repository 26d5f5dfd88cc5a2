//! The pg_cron port: the only file that names `cron`. pg_cron is looked up when a function here is called.

use crate::db::{param, Statement};
use crate::error::Error;
use crate::trust;

fn required() -> Result<(), Error> {
    match trust::relation_exists(c"cron", c"job")? {
        true => Ok(()),
        false => Err(Error::ExtensionMissing {
            extension: "pg_cron",
            needed: "table cron.job",
        }),
    }
}

/// Schedules a job in place of this role's of the same name; returns its id. Names are unique per role in pg_cron.
pub fn replace(name: &str, schedule: &str, command: &str) -> Result<i64, Error> {
    static UNSCHEDULE: Statement = Statement::new(
        "select cron.unschedule(j.jobname) from cron.job j
         where j.jobname = $1 and j.username = current_user",
    );
    static SCHEDULE: Statement = Statement::new("select cron.schedule($1, $2, $3)");
    required()?;
    UNSCHEDULE.run(&[param(name)])?;
    SCHEDULE
        .row(&[param(name), param(schedule), param(command)])?
        .ok_or(Error::Internal {
            what: "cron.schedule gave no row",
        })?
        .get(1)
}

/// Deletes the details of runs that ended more than some hours ago; returns how many.
pub fn delete_run_details(hours: Option<i32>) -> Result<i64, Error> {
    static DELETE: Statement = Statement::new(
        "with deleted as (
           delete from cron.job_run_details d where d.end_time < now() - make_interval(hours => $1) returning 1
         )
         select count(*) from deleted",
    );
    required()?;
    DELETE
        .row(&[param(hours)])?
        .ok_or(Error::Internal {
            what: "a count gave no row",
        })?
        .get(1)
}
