//! setup_requeue_stalled_tasks_cron, setup_ensure_workers_cron and cleanup_ensure_workers_logs, against a stand-in for
//! pg_cron. `tests/cron/` has the real one.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    fn install_cron() {
        run(include_str!("../fixtures/cron.sql"));
    }

    const JOBS: &str =
        "select format('%s: %s: %s', jobname, schedule, command) from cron.job order by jobname";

    fn job(name: &str) -> String {
        text(&format!(
            "select jobid from cron.job where jobname = '{name}'"
        ))
    }

    // setup_requeue_stalled_tasks_cron.

    #[pg_test]
    fn recovery_is_scheduled_every_15_seconds() {
        install_cron();
        let answer = text("select pgflow.setup_requeue_stalled_tasks_cron()");
        assert_eq!(
            answer,
            format!(
                "Scheduled pgflow_requeue_stalled_tasks (every 15 seconds, job_id={})",
                job("pgflow_requeue_stalled_tasks")
            )
        );
        assert_eq!(
            rows(JOBS),
            ["pgflow_requeue_stalled_tasks: 15 seconds: select pgflow.requeue_stalled_tasks()"]
        );
    }

    #[pg_test]
    fn recovery_can_be_scheduled_at_another_interval() {
        install_cron();
        for call in [
            "select pgflow.setup_requeue_stalled_tasks_cron('*/5 * * * *')",
            "select pgflow.setup_requeue_stalled_tasks_cron(cron_interval => '*/5 * * * *')",
        ] {
            assert_eq!(
                text(call),
                format!(
                    "Scheduled pgflow_requeue_stalled_tasks (every */5 * * * *, job_id={})",
                    job("pgflow_requeue_stalled_tasks")
                )
            );
            assert_eq!(
                rows(JOBS),
                ["pgflow_requeue_stalled_tasks: */5 * * * *: select pgflow.requeue_stalled_tasks()"]
            );
        }
    }

    #[pg_test]
    fn scheduling_recovery_replaces_its_job_and_no_other() {
        install_cron();
        run("select cron.schedule('mine', '1 1 1 1 1', 'select 1');
             select cron.schedule('0 0 * * *', 'select 2');
             select cron.schedule('pgflow_requeue_stalled_tasks', '9 9 9 9 9', 'select 9')");
        run("select pgflow.setup_requeue_stalled_tasks_cron('30 seconds')");
        assert_eq!(
            rows(JOBS),
            [
                "mine: 1 1 1 1 1: select 1",
                "pgflow_requeue_stalled_tasks: 30 seconds: select pgflow.requeue_stalled_tasks()",
                ": 0 0 * * *: select 2",
            ]
        );
    }

    #[pg_test]
    fn another_role_s_job_of_the_same_name_is_its_own() {
        install_cron();
        for job in [
            "pgflow_requeue_stalled_tasks",
            "pgflow_ensure_workers",
            "pgflow_cleanup_logs",
        ] {
            run(&format!(
                "insert into cron.job (jobname, schedule, command, username) values ('{job}', '9 9 9 9 9', 'select 9', 'other')"
            ));
        }
        run("select pgflow.setup_requeue_stalled_tasks_cron(), pgflow.setup_ensure_workers_cron()");
        run("select pgflow.setup_requeue_stalled_tasks_cron(), pgflow.setup_ensure_workers_cron()");
        assert_eq!(
            rows("select count(*) from cron.job group by username = current_user"),
            ["3", "3"]
        );
    }

    #[pg_test]
    fn the_scheduled_recovery_recovers() {
        install_cron();
        run("select pgflow.setup_requeue_stalled_tasks_cron()");
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        run("update pgflow.step_tasks set started_at = now() - interval '1 day', queued_at = now() - interval '1 day'");
        run(&text("select command from cron.job"));
        assert_eq!(tasks(id), ["a[0]:queued"]);
        invariants_hold();
    }

    // setup_ensure_workers_cron.

    #[pg_test]
    fn ensuring_workers_is_scheduled_with_an_hourly_clean_up() {
        install_cron();
        let answer = text("select pgflow.setup_ensure_workers_cron()");
        assert_eq!(
            answer,
            format!(
                "Scheduled pgflow_ensure_workers (every 1 second, job_id={}) and pgflow_cleanup_logs (hourly, job_id={})",
                job("pgflow_ensure_workers"),
                job("pgflow_cleanup_logs")
            )
        );
        assert_eq!(
            rows(JOBS),
            [
                "pgflow_cleanup_logs: 0 * * * *: select pgflow.cleanup_ensure_workers_logs()",
                "pgflow_ensure_workers: 1 second: select pgflow.ensure_workers()",
            ]
        );
    }

    #[pg_test]
    fn ensuring_workers_can_be_scheduled_at_another_interval() {
        install_cron();
        for call in [
            "select pgflow.setup_ensure_workers_cron('5 seconds')",
            "select pgflow.setup_ensure_workers_cron(cron_interval => '5 seconds')",
        ] {
            assert_eq!(
                text(call),
                format!(
                    "Scheduled pgflow_ensure_workers (every 5 seconds, job_id={}) and pgflow_cleanup_logs (hourly, job_id={})",
                    job("pgflow_ensure_workers"),
                    job("pgflow_cleanup_logs")
                )
            );
            assert_eq!(
                rows(JOBS),
                [
                    "pgflow_cleanup_logs: 0 * * * *: select pgflow.cleanup_ensure_workers_logs()",
                    "pgflow_ensure_workers: 5 seconds: select pgflow.ensure_workers()",
                ]
            );
        }
    }

    #[pg_test]
    fn scheduling_workers_replaces_both_jobs_and_no_other() {
        install_cron();
        run("select cron.schedule('mine', '1 1 1 1 1', 'select 1');
             select cron.schedule('pgflow_ensure_workers', '9 9 9 9 9', 'select 9');
             select cron.schedule('pgflow_cleanup_logs', '9 9 9 9 9', 'select 9')");
        run("select pgflow.setup_requeue_stalled_tasks_cron('30 seconds')");
        run("select pgflow.setup_ensure_workers_cron('2 seconds')");
        assert_eq!(
            rows(JOBS),
            [
                "mine: 1 1 1 1 1: select 1",
                "pgflow_cleanup_logs: 0 * * * *: select pgflow.cleanup_ensure_workers_logs()",
                "pgflow_ensure_workers: 2 seconds: select pgflow.ensure_workers()",
                "pgflow_requeue_stalled_tasks: 30 seconds: select pgflow.requeue_stalled_tasks()",
            ]
        );
    }

    #[pg_test]
    fn the_scheduled_calls_run() {
        install_cron();
        run(include_str!("../fixtures/net.sql"));
        run("set local app.settings.jwt_secret = 'super-secret-jwt-token-with-at-least-32-characters-long'");
        run("select pgflow.track_worker_function('f')");
        run("insert into cron.job_run_details (end_time) values (now() - interval '2 days')");
        run("select pgflow.setup_ensure_workers_cron()");
        for command in rows("select command from cron.job") {
            run(&command);
        }
        assert_eq!(text("select count(*) from net.posted"), "1");
        assert_eq!(text("select count(*) from cron.job_run_details"), "0");
    }

    // cleanup_ensure_workers_logs.

    /// Ends of runs in cron.job_run_details: this many hours and microseconds ago, `NULL` for a run under way.
    fn ended(ends: &[&str]) {
        for end in ends {
            run(&format!(
                "insert into cron.job_run_details (status, start_time, end_time)
                 values ('{end}', now() - interval '1 year', now() - '{end}'::interval)"
            ));
        }
    }

    const LEFT: &str = "select status from cron.job_run_details order by runid";

    #[pg_test]
    fn runs_that_ended_over_24_hours_ago_are_deleted_and_counted() {
        install_cron();
        ended(&["25 h", "24 h 1 us", "24 h", "23 h", "0 s"]);
        run("insert into cron.job_run_details (status, start_time) values ('running', now() - interval '1 year')");
        assert_eq!(
            text("select cron_deleted from pgflow.cleanup_ensure_workers_logs()"),
            "2"
        );
        assert_eq!(rows(LEFT), ["24 h", "23 h", "0 s", "running"]);
        assert_eq!(
            rows("select cron_deleted from pgflow.cleanup_ensure_workers_logs()"),
            ["0"]
        );
    }

    #[pg_test]
    fn cleaning_takes_another_number_of_hours() {
        install_cron();
        ended(&["3 h", "2 h 1 us", "2 h", "1 h", "1 us", "0 s"]);
        assert_eq!(text("select pgflow.cleanup_ensure_workers_logs(2)"), "2");
        assert_eq!(rows(LEFT), ["2 h", "1 h", "1 us", "0 s"]);
        assert_eq!(
            text("select pgflow.cleanup_ensure_workers_logs(retention_hours => 0)"),
            "3"
        );
        assert_eq!(rows(LEFT), ["0 s"]);
    }

    #[pg_test]
    fn cleaning_with_null_hours_deletes_nothing() {
        install_cron();
        ended(&["1000 h"]);
        assert_eq!(text("select pgflow.cleanup_ensure_workers_logs(null)"), "0");
        assert_eq!(rows(LEFT), ["1000 h"]);
    }

    // Rights, and pg_cron missing.

    const CALLS: [(&str, &str); 3] = [
        (
            "setup_requeue_stalled_tasks_cron",
            "select pgflow.setup_requeue_stalled_tasks_cron()",
        ),
        (
            "setup_ensure_workers_cron",
            "select pgflow.setup_ensure_workers_cron()",
        ),
        (
            "cleanup_ensure_workers_logs",
            "select pgflow.cleanup_ensure_workers_logs()",
        ),
    ];

    #[pg_test]
    fn without_pg_cron_each_call_names_it() {
        for (_, call) in CALLS {
            let failure = failure(call);
            assert_eq!(failure.code, "42704", "{call}");
            assert!(failure.message.contains("pg_cron"), "{failure:?}");
        }
    }

    #[pg_test]
    fn pg_cron_is_looked_up_at_each_call() {
        for (_, call) in CALLS {
            assert_eq!(failure(call).code, "42704");
            install_cron();
            run(call);
            run("drop schema cron cascade");
            assert_eq!(failure(call).code, "42704");
        }
    }

    #[pg_test]
    fn cron_calls_need_execute_and_no_right_on_pg_cron() {
        install_cron();
        run("create role pgflow_keeper; grant usage on schema pgflow to pgflow_keeper");
        for (function, call) in CALLS {
            run("set local role pgflow_keeper");
            assert_eq!(failure(call).code, "42501", "{call}");
            run(&format!(
                "reset role; grant execute on function pgflow.{function} to pgflow_keeper; set local role pgflow_keeper"
            ));
            run(call);
            run("reset role");
        }
        assert_eq!(rows(JOBS).len(), 3);
    }
}
