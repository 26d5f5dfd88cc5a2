//! requeue_stalled_tasks: tasks whose worker is gone are queued again, three times at most.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    fn requeue() -> i32 {
        one("select pgflow.requeue_stalled_tasks()")
    }

    /// Moves the start of the started tasks that a condition names back to `start`.
    fn started(which: &str, start: &str) {
        run(&format!(
            "update pgflow.step_tasks set started_at = {start}, queued_at = now() - interval '1000 days'
             where status = 'started' and {which}"
        ));
    }

    /// The tasks have just been working for longer than so many seconds, by any clock.
    fn started_longer_ago_than(seconds: i32, which: &str) {
        started(
            which,
            &format!("now() - make_interval(secs => {seconds}) - interval '1 ms'"),
        );
    }

    /// The tasks have been working for almost so many seconds, by any clock.
    fn started_almost_ago(seconds: i32, which: &str) {
        started(
            which,
            &format!("clock_timestamp() - make_interval(secs => {seconds}) + interval '500 ms'"),
        );
    }

    /// Every started task stalls: no timeout in these tests is longer than a day.
    fn stall() {
        started("true", "now() - interval '2 days'");
    }

    /// A run of flow `f` whose only task `a` has stalled.
    fn one_stalled(options: &str) -> Uuid {
        flow("f", &[&format!("'a'{options}")]);
        let id = start("f", "{}");
        claim("f");
        stall();
        id
    }

    /// Recovers the task of `one_stalled` three times, and a fourth time in vain.
    fn one_permanently_stalled(options: &str) -> Uuid {
        let id = one_stalled(options);
        for _ in 0..3 {
            assert_eq!(requeue(), 1);
            assert_eq!(claim("f").len(), 1);
            stall();
        }
        assert_eq!(requeue(), 0);
        id
    }

    // Queued again.

    #[pg_test]
    fn a_stalled_task_is_queued_again_without_start_and_worker() {
        let id = one_stalled("");
        assert_eq!(requeue(), 1);
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "format('%s %s %s %s', status, requeued_count, num_nulls(started_at, last_worker_id),
                        permanently_stalled_at is null)"
            ),
            "queued 1 2 t"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_requeued_task_remembers_when() {
        let id = one_stalled("");
        run("select set_config('pgflow_test.before', clock_timestamp()::text, true)");
        requeue();
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "last_requeued_at between current_setting('pgflow_test.before')::timestamptz and clock_timestamp()"
            ),
            "true"
        );
    }

    #[pg_test]
    fn a_requeued_task_keeps_attempts_queueing_time_and_the_rest() {
        let id = one_stalled("");
        let kept = "to_jsonb(step_tasks) - '{status,started_at,last_worker_id,requeued_count,last_requeued_at}'::text[]";
        let before = of_task(id, "a", 0, kept);
        requeue();
        assert_eq!(of_task(id, "a", 0, kept), before);
        assert_eq!(of_task(id, "a", 0, "attempts_count"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn a_requeued_task_keeps_the_message_of_its_last_failure() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "no luck");
        claim_hidden("f");
        stall();
        requeue();
        assert_eq!(
            of_task(id, "a", 0, "status || ' ' || error_message"),
            "queued no luck"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_requeued_task_s_message_is_visible_at_once() {
        one_stalled(", timeout => 3600");
        assert!(visible_in("f", 1) > 3000);
        requeue();
        assert!(visible_in("f", 1) <= 0);
        assert_eq!(rows("select msg_id from pgmq.read('f', 30, 10)"), ["1"]);
        assert_eq!(messages("f"), "1/0");
    }

    #[pg_test]
    fn a_requeued_task_can_be_claimed_and_completed() {
        let id = one_stalled("");
        requeue();
        assert_eq!(claim("f"), ["a[0] {}"]);
        assert_eq!(of_task(id, "a", 0, "status || attempts_count"), "started2");
        complete(id, "a", 0, "1");
        assert_eq!(outcome(id), "completed {\"a\": 1}");
        invariants_hold();
    }

    #[pg_test]
    fn requeueing_counts_the_requeued_tasks() {
        flow("f", &["'m', step_type => 'map'"]);
        assert_eq!(requeue(), 0);
        let id = start("f", "[1, 2, 3, 4]");
        assert_eq!(requeue(), 0);
        claim("f");
        started_longer_ago_than(90, "task_index in (1, 3)");
        assert_eq!(requeue(), 2);
        assert_eq!(
            tasks(id),
            ["m[0]:started", "m[1]:queued", "m[2]:started", "m[3]:queued"]
        );
        assert_eq!(requeue(), 0);
        invariants_hold();
    }

    #[pg_test]
    fn one_call_recovers_tasks_of_all_flows_and_runs() {
        flow("f", &["'a'"]);
        flow("g", &["'a'", "'b'"]);
        let ids = [start("f", "{}"), start("f", "{}"), start("g", "{}")];
        claim("f");
        claim("g");
        stall();
        assert_eq!(requeue(), 4);
        assert_eq!(
            ids.map(|id| tasks(id).join(" ")),
            ["a[0]:queued", "a[0]:queued", "a[0]:queued b[0]:queued"]
        );
        assert_eq!(claim("f").len(), 2);
        assert_eq!(claim("g").len(), 2);
        invariants_hold();
    }

    #[pg_test]
    fn requeueing_sends_no_event() {
        record_events();
        one_stalled("");
        let before = events();
        requeue();
        assert_eq!(events(), before);
    }

    // When a task has stalled.

    #[pg_test]
    fn a_task_stalls_30_seconds_after_its_step_s_timeout() {
        flow("f", &["'a', timeout => 100"]);
        start("f", "{}");
        claim("f");
        started_almost_ago(130, "true");
        assert_eq!(requeue(), 0);
        started_longer_ago_than(130, "true");
        assert_eq!(requeue(), 1);
    }

    #[pg_test]
    fn without_a_step_s_timeout_the_flow_s_counts() {
        run("select pgflow.create_flow('f', timeout => 200)");
        flow("f", &["'a'"]);
        start("f", "{}");
        claim("f");
        started_almost_ago(230, "true");
        assert_eq!(requeue(), 0);
        started_longer_ago_than(230, "true");
        assert_eq!(requeue(), 1);
    }

    #[pg_test]
    fn a_step_s_timeout_counts_for_more_than_the_flow_s() {
        run("select pgflow.create_flow('f', timeout => 200)");
        flow("f", &["'long', timeout => 300", "'short', timeout => 1"]);
        let id = start("f", "{}");
        claim("f");
        started_almost_ago(31, "step_slug = 'short'");
        started_almost_ago(330, "step_slug = 'long'");
        assert_eq!(requeue(), 0);
        started_longer_ago_than(31, "step_slug = 'short'");
        assert_eq!(requeue(), 1);
        assert_eq!(tasks(id), ["long[0]:started", "short[0]:queued"]);
        started_longer_ago_than(330, "step_slug = 'long'");
        assert_eq!(requeue(), 1);
        assert_eq!(tasks(id), ["long[0]:queued", "short[0]:queued"]);
    }

    #[pg_test]
    fn timeouts_are_read_when_stalled_tasks_are_looked_for() {
        flow("f", &["'a', timeout => 3600"]);
        start("f", "{}");
        claim("f");
        started_longer_ago_than(90, "true");
        assert_eq!(requeue(), 0);
        run("update pgflow.steps set opt_timeout = 60");
        assert_eq!(requeue(), 1);
    }

    #[pg_test]
    fn a_task_with_the_largest_timeout_is_given_its_time() {
        flow("f", &["'a', timeout => 2147483647"]);
        start("f", "{}");
        claim("f");
        stall();
        assert_eq!(requeue(), 0);
    }

    #[pg_test]
    fn a_queued_task_does_not_stall() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        run("update pgflow.step_tasks set queued_at = queued_at - interval '1 day'");
        let before = snapshot(id);
        assert_eq!(requeue(), 0);
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn an_ended_task_does_not_stall() {
        flow("f", &["'m', step_type => 'map'", "'z', max_attempts => 1"]);
        let id = start("f", "[1, 2]");
        claim("f");
        stall();
        complete(id, "m", 0, "1");
        fail(id, "z", 0, "x");
        let before = snapshot(id);
        assert_eq!(
            tasks(id),
            ["m[0]:completed", "m[1]:cancelled", "z[0]:failed"]
        );
        assert_eq!(requeue(), 0);
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_started_task_of_a_step_that_is_not_started_stays() {
        for state in [
            "status = 'created', remaining_tasks = null",
            "status = 'completed', remaining_tasks = 0, completed_at = clock_timestamp()",
            "status = 'failed', failed_at = clock_timestamp()",
            "status = 'skipped', remaining_tasks = null, skip_reason = 'condition_unmet', skipped_at = clock_timestamp()",
        ] {
            let id = one_stalled("");
            run(&format!(
                "update pgflow.step_states set {state} where run_id = '{id}'"
            ));
            let before = snapshot(id);
            assert_eq!(requeue(), 0, "{state}");
            assert_eq!(snapshot(id), before, "{state}");
            assert!(visible_in("f", 1) > 0);
            run("select pgflow.delete_flow_and_data('f')");
        }
    }

    #[pg_test]
    fn a_started_task_of_an_ended_run_stays() {
        for state in [
            "status = 'completed', completed_at = clock_timestamp()",
            "status = 'failed', failed_at = clock_timestamp()",
        ] {
            let id = one_stalled("");
            run(&format!("update pgflow.runs set {state}"));
            let before = snapshot(id);
            assert_eq!(requeue(), 0, "{state}");
            assert_eq!(snapshot(id), before, "{state}");
            assert!(visible_in("f", 1) > 0);
            run("select pgflow.delete_flow_and_data('f')");
        }
    }

    // Too often.

    #[pg_test]
    fn a_task_is_requeued_three_times_and_then_stalls_for_good() {
        let id = one_permanently_stalled("");
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "format('%s %s %s', status, requeued_count, attempts_count)"
            ),
            "started 3 4"
        );
        assert_eq!(steps(id), ["a:started"]);
        assert_eq!(of_run(id, "status || remaining_steps"), "started1");
        invariants_hold();
    }

    #[pg_test]
    fn a_task_that_stalls_for_good_says_when_and_keeps_the_rest() {
        let id = one_stalled("");
        run("update pgflow.step_tasks set requeued_count = 3, last_requeued_at = now() - interval '1 hour'");
        run("select set_config('pgflow_test.before', clock_timestamp()::text, true)");
        let kept = "to_jsonb(step_tasks) - 'permanently_stalled_at'";
        let before = of_task(id, "a", 0, kept);
        assert_eq!(requeue(), 0);
        assert_eq!(of_task(id, "a", 0, kept), before);
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "permanently_stalled_at between current_setting('pgflow_test.before')::timestamptz and clock_timestamp()"
            ),
            "true"
        );
        assert_eq!(
            of_task(id, "a", 0, "num_nulls(started_at, last_worker_id)"),
            "0"
        );
        invariants_hold();
    }

    #[pg_test]
    fn the_third_requeue_is_the_last() {
        let id = one_stalled("");
        run("update pgflow.step_tasks set requeued_count = 2");
        assert_eq!(requeue(), 1);
        assert_eq!(of_task(id, "a", 0, "status || requeued_count"), "queued3");
        claim("f");
        stall();
        assert_eq!(requeue(), 0);
        assert_eq!(
            of_task(id, "a", 0, "permanently_stalled_at is not null"),
            "true"
        );
        invariants_hold();
    }

    #[pg_test]
    fn the_message_of_a_task_that_stalls_for_good_is_archived() {
        one_permanently_stalled("");
        assert_eq!(messages("f"), "0/1");
    }

    #[pg_test]
    fn a_task_that_stalled_for_good_is_left_alone() {
        let id = one_permanently_stalled("");
        let before = snapshot(id);
        assert_eq!(requeue(), 0);
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_task_that_stalls_for_good_sends_no_event() {
        record_events();
        one_stalled("");
        run("update pgflow.step_tasks set requeued_count = 3");
        let before = events();
        requeue();
        assert_eq!(events(), before);
    }

    #[pg_test]
    fn a_task_that_stalls_for_good_is_not_counted() {
        flow("f", &["'m', step_type => 'map'"]);
        let id = start("f", "[1, 2, 3, 4]");
        claim("f");
        stall();
        run("update pgflow.step_tasks set requeued_count = 3 where task_index in (0, 2)");
        assert_eq!(requeue(), 2);
        assert_eq!(
            tasks(id),
            ["m[0]:started", "m[1]:queued", "m[2]:started", "m[3]:queued"]
        );
        assert_eq!(rows("select msg_id from pgmq.q_f order by 1"), ["2", "4"]);
        assert_eq!(rows("select msg_id from pgmq.a_f order by 1"), ["1", "3"]);
        invariants_hold();
    }

    #[pg_test]
    fn requeues_and_failed_attempts_are_counted_apart() {
        flow("f", &["'a', max_attempts => 3"]);
        let id = start("f", "{}");
        claim("f");
        stall();
        requeue();
        claim("f");
        assert_eq!(fail(id, "a", 0, "x"), "queued");
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "format('%s %s', attempts_count, requeued_count)"
            ),
            "2 1"
        );
        claim_hidden("f");
        stall();
        requeue();
        claim("f");
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "format('%s %s', attempts_count, requeued_count)"
            ),
            "4 2"
        );
        assert_eq!(fail(id, "a", 0, "x"), "failed");
        assert_eq!(of_run(id, "status"), "failed");
        invariants_hold();
    }

    // Messages.

    #[pg_test]
    fn a_task_without_a_message_is_requeued_and_counted() {
        let id = one_stalled("");
        run("update pgflow.step_tasks set message_id = null");
        let message = text("select q::text from pgmq.q_f q");
        assert_eq!(requeue(), 1);
        assert_eq!(tasks(id), ["a[0]:queued"]);
        assert_eq!(text("select q::text from pgmq.q_f q"), message);
    }

    #[pg_test]
    fn a_task_without_a_message_needs_no_queue() {
        let id = one_stalled("");
        run("update pgflow.step_tasks set message_id = null; select pgmq.drop_queue('f')");
        assert_eq!(requeue(), 1);
        run("update pgflow.step_tasks set status = 'started', requeued_count = 3, started_at = queued_at");
        assert_eq!(requeue(), 0);
        assert_eq!(
            of_task(id, "a", 0, "permanently_stalled_at is not null"),
            "true"
        );
    }

    #[pg_test]
    fn recovery_shows_messages_in_their_stored_queue_only() {
        flow("f", &["'a'", "'b'"]);
        route("f", "b", "elsewhere");
        let id = start("f", "{}");
        claim("f");
        run("select pgflow.start_tasks('f', '{1}', null, 'elsewhere')");
        route("f", "b", "f");
        let other = text("select q::text from pgmq.q_f q");
        started_longer_ago_than(90, "step_slug = 'b'");
        assert_eq!(requeue(), 1);
        assert_eq!(tasks(id), ["a[0]:started", "b[0]:queued"]);
        assert!(visible_in("elsewhere", 1) <= 0);
        assert_eq!(text("select q::text from pgmq.q_f q"), other);
        invariants_hold();
    }

    #[pg_test]
    fn recovery_archives_messages_in_their_stored_queue_only() {
        flow("f", &["'a'", "'b'"]);
        route("f", "b", "elsewhere");
        let id = start("f", "{}");
        claim("f");
        run("select pgflow.start_tasks('f', '{1}', null, 'elsewhere')");
        route("f", "b", "f");
        run("update pgflow.step_tasks set requeued_count = 3");
        started_longer_ago_than(90, "step_slug = 'b'");
        assert_eq!(requeue(), 0);
        assert_eq!(tasks(id), ["a[0]:started", "b[0]:started"]);
        assert_eq!([messages("f"), messages("elsewhere")], ["1/0", "0/1"]);
        invariants_hold();
    }

    #[pg_test]
    fn one_call_recovers_several_tasks_in_several_queues() {
        flow("f", &["'m', step_type => 'map'", "'n', step_type => 'map'"]);
        route("f", "n", "elsewhere");
        start("f", "[1, 2, 3]");
        claim("f");
        run("select pgflow.start_tasks('f', '{1, 2, 3}', null, 'elsewhere')");
        stall();
        run("update pgflow.step_tasks set requeued_count = 3 where task_index = 2");
        assert_eq!(requeue(), 4);
        for queue in ["f", "elsewhere"] {
            assert_eq!(messages(queue), "2/1");
            assert_eq!(
                rows(&format!("select msg_id from pgmq.read('{queue}', 30, 10)")),
                ["1", "2"]
            );
        }
        invariants_hold();
    }

    // Reports that come late.

    #[pg_test]
    fn a_result_after_a_requeue_is_ignored() {
        let id = one_stalled("");
        requeue();
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "1"), "queued");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/0");
        assert!(visible_in("f", 1) <= 0);
        claim("f");
        complete(id, "a", 0, "2");
        assert_eq!(outcome(id), "completed {\"a\": 2}");
        invariants_hold();
    }

    #[pg_test]
    fn a_failure_after_a_requeue_is_ignored() {
        let id = one_stalled(", max_attempts => 1");
        requeue();
        let before = snapshot(id);
        assert_eq!(fail(id, "a", 0, "x"), "queued");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/0");
        assert!(visible_in("f", 1) <= 0);
        invariants_hold();
    }

    #[pg_test]
    fn a_result_while_the_next_worker_works_counts_once() {
        let id = one_stalled("");
        requeue();
        claim("f");
        assert_eq!(complete(id, "a", 0, "\"first worker\""), "completed");
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "\"second worker\""), "completed");
        assert_eq!(snapshot(id), before);
        assert_eq!(outcome(id), "completed {\"a\": \"first worker\"}");
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_result_completes_a_task_that_stalled_for_good() {
        record_events();
        let id = one_permanently_stalled("");
        assert_eq!(complete(id, "a", 0, "1"), "completed");
        assert_eq!(outcome(id), "completed {\"a\": 1}");
        assert_eq!(messages("f"), "0/1");
        assert_eq!(
            events(),
            [
                "run:started",
                "step:a:started",
                "step:a:completed",
                "run:completed"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn dependents_of_a_task_that_stalled_for_good_start_after_all() {
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        stall();
        run("update pgflow.step_tasks set requeued_count = 3");
        requeue();
        assert_eq!(steps(id), ["a:started", "b:created"]);
        complete(id, "a", 0, "1");
        assert_eq!(claim("f"), ["b[0] {\"a\": 1}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_last_failure_after_a_final_stall_fails_the_run() {
        let id = one_permanently_stalled("");
        assert_eq!(fail(id, "a", 0, "no luck"), "failed");
        assert_eq!(
            of_step(id, "a", "status || ' ' || error_message"),
            "failed no luck"
        );
        assert_eq!(of_run(id, "status"), "failed");
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_failure_of_a_task_that_stalled_for_good_can_skip_its_step() {
        let id = one_permanently_stalled(", when_exhausted => 'skip'");
        assert_eq!(fail(id, "a", 0, "no luck"), "failed");
        assert_eq!(
            of_step(id, "a", "status || ' ' || skip_reason"),
            "skipped handler_failed"
        );
        assert_eq!(of_run(id, "status"), "completed");
        invariants_hold();
    }

    /// engine.md, section 5: the task's row is returned in every case, and attempts left mean that it is queued.
    #[pg_test]
    fn a_failure_with_attempts_left_after_a_final_stall_is_taken() {
        let id = one_permanently_stalled(", max_attempts => 10");
        assert_eq!(fail(id, "a", 0, "no luck"), "queued");
        assert_eq!(of_task(id, "a", 0, "error_message"), "no luck");
        assert_eq!(of_run(id, "status"), "started");
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_cancels_a_task_that_stalled_for_good() {
        flow("f", &["'a'", "'b', max_attempts => 1"]);
        let id = start("f", "{}");
        claim("f");
        started_longer_ago_than(90, "step_slug = 'a'");
        run("update pgflow.step_tasks set requeued_count = 3");
        requeue();
        fail(id, "b", 0, "x");
        assert_eq!(tasks(id), ["a[0]:cancelled", "b[0]:failed"]);
        assert_eq!(messages("f"), "0/2");
        invariants_hold();
    }

    // Rights.

    #[pg_test]
    fn recovery_needs_execute_and_nothing_else() {
        let id = one_stalled("");
        run("create role pgflow_keeper; grant usage on schema pgflow to pgflow_keeper; set local role pgflow_keeper");
        assert_eq!(
            failure("select pgflow.requeue_stalled_tasks()").code,
            "42501"
        );
        run(
            "reset role; grant execute on function pgflow.requeue_stalled_tasks to pgflow_keeper;
             set local role pgflow_keeper",
        );
        assert_eq!(requeue(), 1);
        run("reset role");
        assert_eq!(tasks(id), ["a[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_queue_that_does_not_exist_holds_up_no_other() {
        flow("f", &["'a'"]);
        flow("g", &["'a'"]);
        let (lost, kept) = (start("f", "{}"), start("g", "{}"));
        claim("f");
        claim("g");
        stall();
        run("select pgmq.drop_queue('f')");
        let warnings = logged(|| assert_eq!(requeue(), 1));
        assert_eq!(warnings, ["WARNING: queue \"f\" does not exist"]);
        assert_eq!(tasks(lost), ["a[0]:started"]);
        assert_eq!(tasks(kept), ["a[0]:queued"]);
    }
}
