//! The views stalled, permanently_stalled_tasks and live_workers: what holds runs up.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    /// `step reason tasks` of everything that is stuck.
    fn stalled() -> Vec<String> {
        rows("select format('%s %s %s', step_slug, reason, stalled_tasks) from pgflow.stalled order by run_id, step_slug, reason")
    }

    /// The only stuck step's `detail`, and for how many seconds it is stuck.
    fn detail() -> String {
        text("select format('%s: %s', round(extract(epoch from now() - since)), detail) from pgflow.stalled")
    }

    /// A worker that polls a queue and was heard of some seconds ago.
    fn worker_of(queue: &str, silent_seconds: i32) {
        run(&format!(
            "insert into pgflow.workers (worker_id, queue_name, function_name, last_heartbeat_at)
             values (gen_random_uuid(), '{queue}', 'test', now() - make_interval(secs => {silent_seconds}))"
        ));
    }

    /// Has started tasks, those of `which`, begun some seconds ago.
    fn claimed_ago(seconds: i32, which: &str) {
        run(&format!(
            "update pgflow.step_tasks set queued_at = now() - interval '2 days', started_at = now() - make_interval(secs => {seconds})
             where status = 'started' and ({which})"
        ));
    }

    #[pg_test]
    fn work_that_goes_on_is_not_stalled() {
        flow("f", &["'a'", "'b', array['a']", "'c'"]);
        start("f", "{}");
        worker_of("f", 0);
        assert_eq!(stalled(), NONE);
        claim("f");
        claimed_ago(59, "true");
        assert_eq!(stalled(), NONE);
    }

    #[pg_test]
    fn ended_runs_are_not_stalled() {
        flow("f", &["'a'", "'m', step_type => 'map', max_attempts => 1"]);
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "a", 0, "1");
        claimed_ago(1000, "true");
        assert_eq!(stalled(), ["m timed_out 2"]);
        fail(id, "m", 0, "no luck");
        assert_eq!(stalled(), NONE);
        invariants_hold();
    }

    #[pg_test]
    fn tasks_past_their_effective_timeout_have_timed_out() {
        flow(
            "f",
            &[
                "'a'",
                "'b', timeout => 300",
                "'m', step_type => 'map', timeout => 10",
            ],
        );
        start("f", "[1, 2, 3]");
        claim("f");
        claimed_ago(61, "step_slug <> 'm' or task_index < 2");
        assert_eq!(stalled(), ["a timed_out 1", "m timed_out 2"]);
        claimed_ago(0, "step_slug <> 'a'");
        assert_eq!(
            detail(),
            "1: no report within the timeout of 60 s; requeue_stalled_tasks takes the tasks back 30 s after it"
        );
    }

    #[pg_test]
    fn queued_tasks_without_a_live_worker_are_stalled() {
        flow("F", &["'m', step_type => 'map'"]);
        start("F", "[1, 2]");
        assert_eq!(stalled(), ["m no_worker 2"]);
        assert_eq!(detail(), "0: no live worker polls queue \"f\"");
        worker_of("g", 0);
        worker_of("f", 31);
        assert_eq!(stalled(), ["m no_worker 2"]);
        worker_of("F", 29);
        assert_eq!(stalled(), NONE);
        run("update pgflow.workers set deprecated_at = now()");
        assert_eq!(stalled(), ["m no_worker 2"]);
    }

    #[pg_test]
    fn a_worker_of_the_queue_that_the_tasks_were_sent_to_counts() {
        flow("f", &["'a'"]);
        route("f", "a", "other");
        start("f", "{}");
        worker_of("f", 0);
        assert_eq!(detail(), "0: no live worker polls queue \"other\"");
        worker_of("other", 0);
        assert_eq!(stalled(), NONE);
    }

    #[pg_test]
    fn tasks_are_not_stalled_before_their_start_delay_has_passed() {
        flow("f", &["'a', start_delay => 100"]);
        start("f", "{}");
        assert_eq!(stalled(), NONE);
        run("update pgflow.step_tasks set queued_at = now() - interval '99 seconds'");
        assert_eq!(stalled(), NONE);
        run("update pgflow.step_tasks set queued_at = now() - interval '105 seconds'");
        assert_eq!(stalled(), ["a no_worker 1"]);
        assert_eq!(
            text("select round(extract(epoch from now() - since)) from pgflow.stalled"),
            "5"
        );
    }

    #[pg_test]
    fn a_queued_task_without_a_message_is_stalled_even_with_a_worker() {
        flow("f", &["'a'"]);
        start("f", "{}");
        worker_of("f", 0);
        run("update pgflow.step_tasks set message_id = null");
        assert_eq!(stalled(), ["a no_message 1"]);
    }

    #[pg_test]
    fn tasks_that_recovery_gave_up_are_stalled_for_good_until_somebody_reports() {
        flow("f", &["'m', step_type => 'map', max_attempts => 10"]);
        let id = start("f", "[1, 2, 3]");
        worker_of("f", 0);
        claim("f");
        claimed_ago(1000, "task_index < 2");
        run("update pgflow.step_tasks set requeued_count = 3; select pgflow.requeue_stalled_tasks()");
        let given_up = || {
            rows("select format('%s[%s] %s, %s requeues, message %s', step_slug, task_index, status, requeued_count, message_id)
                  from pgflow.permanently_stalled_tasks order by task_index")
        };
        assert_eq!(
            given_up(),
            [
                "m[0] started, 3 requeues, message 1",
                "m[1] started, 3 requeues, message 2"
            ]
        );
        assert_eq!(stalled(), ["m permanently_stalled 2"]);
        // A failure that leaves attempts queues the task, but its message is archived.
        fail(id, "m", 0, "once more");
        assert_eq!(
            given_up(),
            [
                "m[0] queued, 3 requeues, message 1",
                "m[1] started, 3 requeues, message 2"
            ]
        );
        assert_eq!(stalled(), ["m permanently_stalled 2"]);
        complete(id, "m", 1, "1");
        assert_eq!(given_up(), ["m[0] queued, 3 requeues, message 1"]);
        invariants_hold();
    }

    #[pg_test]
    fn each_reason_has_a_line_of_its_own() {
        flow("f", &["'m', step_type => 'map'"]);
        start("f", "[1, 2, 3, 4]");
        claim_ids("f", "select msg_id from pgmq.q_f where msg_id < 3");
        run("delete from pgflow.workers");
        claimed_ago(1000, "true");
        run(
            "update pgflow.step_tasks set permanently_stalled_at = now() where task_index = 0;
             update pgflow.step_tasks set message_id = null where task_index = 2",
        );
        assert_eq!(
            stalled(),
            [
                "m no_message 1",
                "m no_worker 1",
                "m permanently_stalled 1",
                "m timed_out 1"
            ]
        );
    }

    #[pg_test]
    fn a_live_worker_was_heard_of_and_takes_tasks() {
        worker_of("Orders", 29);
        worker_of("orders", 31);
        worker_of("stopped", 0);
        worker_of("deprecated", 0);
        run(
            "update pgflow.workers set stopped_at = now() where queue_name = 'stopped';
             update pgflow.workers set deprecated_at = now() where queue_name = 'deprecated'",
        );
        assert_eq!(
            rows("select queue_name from pgflow.live_workers"),
            ["orders"]
        );
    }

    #[pg_test]
    fn what_is_stalled_is_found_without_reading_what_has_ended() {
        flow("f", &["'a'"]);
        // Runs that ended, without the dead rows that ending them leaves in a transaction.
        let ended = |runs: i32| {
            run(&format!(
                "with r as (
                   insert into pgflow.runs (flow_slug, status, input, completed_at)
                   select 'f', 'completed', '{{}}', now() from generate_series(1, {runs}) returning run_id
                 ), s as (
                   insert into pgflow.step_states (flow_slug, run_id, step_slug, status, initial_tasks, remaining_tasks,
                                                   started_at, completed_at)
                   select 'f', run_id, 'a', 'completed', 1, 0, now(), now() from r returning run_id
                 )
                 insert into pgflow.step_tasks (flow_slug, run_id, step_slug, status, completed_at, queue_name)
                 select 'f', run_id, 'a', 'completed', now(), 'f' from s;
                 analyze pgflow.runs, pgflow.step_states, pgflow.step_tasks"
            ));
        };
        let pages = || {
            ["pgflow.stalled", "pgflow.permanently_stalled_tasks"].map(|view| {
                let query = format!("select * from {view}");
                pages_of(&query);
                pages_of(&query)
            })
        };
        start("f", "{}");
        ended(300);
        let few = pages();
        ended(10_000);
        let many = pages();
        assert!(
            many[0] < few[0] + 30.0 && many[1] < few[1] + 20.0,
            "{few:?} pages, then {many:?}"
        );
    }

    #[pg_test]
    fn views_show_no_more_than_the_caller_may_read() {
        flow("f", &["'a'"]);
        start("f", "{}");
        let views = rows("select relname from pg_class where relnamespace = 'pgflow'::regnamespace and relkind = 'v'");
        run("create role pgflow_viewer; grant usage on schema pgflow to pgflow_viewer");
        for view in &views {
            run(&format!("grant select on pgflow.{view} to pgflow_viewer"));
        }
        let select = |view: &String| format!("select * from pgflow.{view}");
        run("set local role pgflow_viewer");
        for view in &views {
            assert_eq!(failure(&select(view)).code, "42501", "{view}");
        }
        run("reset role; grant select on all tables in schema pgflow to pgflow_viewer; set local role pgflow_viewer");
        for view in &views {
            run(&select(view));
        }
        run("reset role");
        assert_eq!(views.len(), 5);
    }
}
