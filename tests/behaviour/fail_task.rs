//! fail_task: another attempt, or the end of step and run. `when_exhausted` skip and skip-cascade are in `exhausted`.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    // Attempts left.

    #[pg_test]
    fn a_failed_attempt_is_queued_again_with_its_message() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(fail(id, "a", 0, "no luck"), "queued");
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "format('%s %s %s', status, error_message, started_at is null)"
            ),
            "queued no luck t"
        );
        assert_eq!(messages("f"), "1/0");
        invariants_hold();
    }

    #[pg_test]
    fn a_retry_keeps_worker_attempts_and_queueing_time() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let kept = "(last_worker_id, attempts_count, queued_at, queue_name, message_id)::text";
        claim("f");
        let before = of_task(id, "a", 0, kept);
        fail(id, "a", 0, "x");
        assert_eq!(of_task(id, "a", 0, kept), before);
        assert_eq!(of_task(id, "a", 0, "failed_at"), "NULL");
        invariants_hold();
    }

    #[pg_test]
    fn a_retry_leaves_step_and_run_going() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        let before = (
            of_run(id, "to_jsonb(runs)"),
            of_step(id, "a", "to_jsonb(step_states)"),
        );
        fail(id, "a", 0, "x");
        assert_eq!(
            (
                of_run(id, "to_jsonb(runs)"),
                of_step(id, "a", "to_jsonb(step_states)")
            ),
            before
        );
        invariants_hold();
    }

    #[pg_test]
    fn fail_task_returns_the_task_s_row() {
        flow("f", &["'a', max_attempts => 2"]);
        let id = start("f", "{}");
        for _ in 0..2 {
            claim_hidden("f");
            let returned = text(&format!(
                "select to_jsonb(t) from pgflow.fail_task('{id}', 'a', 0, 'x') t"
            ));
            assert_eq!(returned, of_task(id, "a", 0, "to_jsonb(step_tasks)"));
        }
        assert_eq!(tasks(id), ["a[0]:failed"]);
        invariants_hold();
    }

    #[pg_test]
    fn fail_task_takes_its_arguments_by_name() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        run(&format!(
            "select pgflow.fail_task(error_message => 'x', task_index => 0, step_slug => 'a', run_id => '{id}')"
        ));
        assert_eq!(of_task(id, "a", 0, "status || error_message"), "queuedx");
        invariants_hold();
    }

    #[pg_test]
    fn the_wait_before_a_retry_doubles_with_each_attempt() {
        flow("f", &["'a', base_delay => 5, max_attempts => 4"]);
        let id = start("f", "{}");
        let waits = [10, 20, 40].map(|_| {
            claim_hidden("f");
            fail(id, "a", 0, "x");
            visible_in("f", 1)
        });
        assert_eq!(waits, [10, 20, 40]);
        invariants_hold();
    }

    #[pg_test]
    fn without_an_option_of_its_own_a_step_takes_the_flow_s() {
        run("select pgflow.create_flow('f', max_attempts => 2, base_delay => 50); select pgflow.add_step('f', 'a')");
        let id = start("f", "{}");
        claim("f");
        assert_eq!(fail(id, "a", 0, "x"), "queued");
        assert_eq!(visible_in("f", 1), 100);
        claim_hidden("f");
        assert_eq!(fail(id, "a", 0, "x"), "failed");
        invariants_hold();
    }

    #[pg_test]
    fn a_base_delay_of_0_makes_the_task_visible_at_once() {
        flow("f", &["'a', base_delay => 0"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        assert!(visible_in("f", 1) <= 0);
        assert_eq!(claim("f"), ["a[0] {}"]);
        invariants_hold();
    }

    #[pg_test]
    fn options_are_read_when_an_attempt_fails() {
        flow("f", &["'a', max_attempts => 1", "'b', max_attempts => 5"]);
        let id = start("f", "{}");
        claim("f");
        run("update pgflow.steps set opt_max_attempts = 2, opt_base_delay = 30 where step_slug = 'a'");
        assert_eq!(fail(id, "a", 0, "x"), "queued");
        assert_eq!(visible_in("f", 1), 60);
        run("update pgflow.steps set opt_max_attempts = 1 where step_slug = 'b'");
        assert_eq!(fail(id, "b", 0, "x"), "failed");
        invariants_hold();
    }

    #[pg_test]
    fn a_huge_wait_is_capped_and_the_task_queued() {
        flow("f", &["'a', base_delay => 2000000000, max_attempts => 50"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(fail(id, "a", 0, "x"), "queued");
        assert!(visible_in("f", 1) >= 2147483646);
        run("update pgflow.step_tasks set attempts_count = 29");
        claim_hidden("f");
        assert_eq!(fail(id, "a", 0, "x"), "queued");
        assert!(visible_in("f", 1) >= 2147483646);
        invariants_hold();
    }

    #[pg_test]
    fn the_wait_is_what_calculate_retry_delay_says() {
        flow("f", &["'a', base_delay => 3, max_attempts => 50"]);
        let id = start("f", "{}");
        for attempts in [1, 2, 7, 28] {
            run(&format!(
                "update pgflow.step_tasks set attempts_count = {attempts} - 1"
            ));
            claim_hidden("f");
            fail(id, "a", 0, "x");
            assert_eq!(
                visible_in("f", 1),
                i64::from(one::<i32>(&format!(
                    "select pgflow.calculate_retry_delay(3, {attempts})"
                )))
            );
        }
        invariants_hold();
    }

    #[pg_test]
    fn a_task_may_succeed_after_a_failed_attempt() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        claim_hidden("f");
        assert_eq!(complete(id, "a", 0, "1"), "completed");
        assert_eq!(outcome(id), "completed {\"a\": 1}");
        assert_eq!(of_task(id, "a", 0, "attempts_count"), "2");
        invariants_hold();
    }

    #[pg_test]
    fn each_failed_attempt_stores_its_own_message() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "first");
        claim_hidden("f");
        fail(id, "a", 0, "second");
        assert_eq!(of_task(id, "a", 0, "error_message"), "second");
        invariants_hold();
    }

    #[pg_test]
    fn a_failure_without_a_message_is_stored_as_null() {
        flow("f", &["'a', max_attempts => 2"]);
        let id = start("f", "{}");
        let call = format!("select pgflow.fail_task('{id}', 'a', 0, null)");
        claim("f");
        run(&call);
        assert_eq!(of_task(id, "a", 0, "error_message"), "NULL");
        claim_hidden("f");
        run(&call);
        assert_eq!(
            of_step(id, "a", "status || coalesce(error_message, '')"),
            "failed"
        );
        invariants_hold();
    }

    // Attempts used up.

    #[pg_test]
    fn a_task_fails_with_its_last_attempt() {
        flow("f", &["'a', max_attempts => 3"]);
        let id = start("f", "{}");
        let statuses = [1, 2, 3].map(|_| {
            claim_hidden("f");
            fail(id, "a", 0, "x")
        });
        assert_eq!(statuses, ["queued", "queued", "failed"]);
        invariants_hold();
    }

    #[pg_test]
    fn with_one_attempt_the_first_failure_is_the_last() {
        flow("f", &["'a', max_attempts => 1"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(fail(id, "a", 0, "x"), "failed");
        assert_eq!(of_run(id, "status"), "failed");
        invariants_hold();
    }

    #[pg_test]
    fn with_no_attempts_the_first_failure_is_the_last() {
        flow("f", &["'a', max_attempts => 0"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(fail(id, "a", 0, "x"), "failed");
        assert_eq!(of_run(id, "status"), "failed");
        invariants_hold();
    }

    #[pg_test]
    fn an_exhausted_task_keeps_its_start_and_gets_its_end() {
        flow("f", &["'a', max_attempts => 1"]);
        let id = start("f", "{}");
        claim("f");
        let started = of_task(
            id,
            "a",
            0,
            "(started_at, last_worker_id, attempts_count)::text",
        );
        fail(id, "a", 0, "no luck");
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "(started_at, last_worker_id, attempts_count)::text"
            ),
            started
        );
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "format('%s %s %s', error_message, failed_at >= started_at, completed_at is null)"
            ),
            "no luck t t"
        );
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn an_exhausted_task_fails_step_and_run() {
        flow("f", &["'a', max_attempts => 1", "'b', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "no luck");
        assert_eq!(steps(id), ["a:failed", "b:created"]);
        assert_eq!(
            of_step(
                id,
                "a",
                "format('%s %s', error_message, failed_at >= started_at)"
            ),
            "no luck t"
        );
        assert_eq!(
            of_run(
                id,
                "format('%s %s %s', status, failed_at >= started_at, output is null)"
            ),
            "failed t t"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_keeps_its_remaining_steps() {
        flow("f", &["'a', max_attempts => 1", "'b'", "'c', array['b']"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "b", 0, "1");
        fail(id, "a", 0, "x");
        assert_eq!(of_run(id, "remaining_steps"), "2");
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_cancels_queued_and_started_tasks_everywhere() {
        flow(
            "f",
            &["'a', max_attempts => 1", "'b'", "'c', array['b']", "'d'"],
        );
        let id = start("f", "{}");
        claim_ids(
            "f",
            "select message_id from pgflow.step_tasks where step_slug in ('a', 'b')",
        );
        complete(id, "b", 0, "1");
        claim_ids(
            "f",
            "select message_id from pgflow.step_tasks where step_slug = 'c'",
        );
        assert_eq!(
            tasks(id),
            [
                "a[0]:started",
                "b[0]:completed",
                "c[0]:started",
                "d[0]:queued"
            ]
        );
        fail(id, "a", 0, "x");
        assert_eq!(
            tasks(id),
            [
                "a[0]:failed",
                "b[0]:completed",
                "c[0]:cancelled",
                "d[0]:cancelled"
            ]
        );
        assert_eq!(messages("f"), "0/4");
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_cancels_tasks_that_wait_for_a_retry() {
        flow("f", &["'a', max_attempts => 1", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "b", 0, "x");
        fail(id, "a", 0, "y");
        assert_eq!(
            of_task(id, "b", 0, "status || ' ' || error_message"),
            "cancelled x"
        );
        assert_eq!(messages("f"), "0/2");
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_leaves_the_states_of_other_steps() {
        flow("f", &["'a', max_attempts => 1", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        let other = of_step(id, "b", "to_jsonb(step_states)");
        fail(id, "a", 0, "x");
        assert_eq!(of_step(id, "b", "to_jsonb(step_states)"), other);
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_archives_its_messages_in_every_queue() {
        flow(
            "f",
            &["'a', max_attempts => 1", "'b'", "'m', step_type => 'map'"],
        );
        route("f", "b", "second");
        route("f", "m", "third");
        let id = start("f", "[1, 2, 3]");
        claim("f");
        fail(id, "a", 0, "x");
        assert_eq!(
            ["f", "second", "third"].map(messages),
            ["0/1", "0/1", "0/3"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_map_task_cancels_its_siblings() {
        flow("f", &["'m', step_type => 'map', max_attempts => 1"]);
        let id = start("f", "[1, 2, 3]");
        claim("f");
        complete(id, "m", 0, "1");
        fail(id, "m", 1, "no luck");
        assert_eq!(
            tasks(id),
            ["m[0]:completed", "m[1]:failed", "m[2]:cancelled"]
        );
        assert_eq!(
            of_step(id, "m", "status || ' ' || error_message"),
            "failed no luck"
        );
        assert_eq!(messages("f"), "0/3");
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_leaves_other_runs_alone() {
        flow("f", &["'a', max_attempts => 1", "'b'"]);
        let other = start("f", "1");
        let id = start("f", "2");
        claim("f");
        let before = snapshot(other);
        fail(id, "a", 0, "x");
        assert_eq!(snapshot(other), before);
        assert_eq!(messages("f"), "2/2");
        invariants_hold();
    }

    // Reports that do not count.

    #[pg_test]
    fn failing_a_task_twice_counts_once() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        let before = snapshot(id);
        assert_eq!(fail(id, "a", 0, "y"), "queued");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_failure_of_a_queued_task_changes_nothing() {
        flow("f", &["'a', max_attempts => 0"]);
        let id = start("f", "{}");
        let before = snapshot(id);
        assert_eq!(fail(id, "a", 0, "x"), "queued");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/0");
        assert!(visible_in("f", 1) <= 0);
        invariants_hold();
    }

    #[pg_test]
    fn a_failure_of_a_completed_map_task_changes_nothing() {
        flow("f", &["'m', step_type => 'map', max_attempts => 1"]);
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "m", 0, "1");
        let before = snapshot(id);
        assert_eq!(fail(id, "m", 0, "x"), "completed");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn failing_an_unknown_task_gives_no_row_and_no_error() {
        flow("f", &["'a', max_attempts => 0"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(fail(id, "a", 1, "x"), "no task");
        assert_eq!(fail(id, "nope", 0, "x"), "no task");
        assert_eq!(
            rows("select pgflow.fail_task(gen_random_uuid(), 'a', 0, 'x')"),
            NONE
        );
        assert_eq!(tasks(id), ["a[0]:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn failing_a_null_key_gives_no_row_and_no_error() {
        flow("f", &["'a', max_attempts => 0"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(rows("select pgflow.fail_task(null, 'a', 0, 'x')"), NONE);
        assert_eq!(
            rows(&format!("select pgflow.fail_task('{id}', null, 0, 'x')")),
            NONE
        );
        assert_eq!(
            rows(&format!("select pgflow.fail_task('{id}', 'a', null, 'x')")),
            NONE
        );
        assert_eq!(tasks(id), ["a[0]:started"]);
        invariants_hold();
    }
}
