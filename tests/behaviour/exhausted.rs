//! fail_task on the last attempt of a step with `when_exhausted` skip or skip-cascade.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    const SKIP: &str = "'a', max_attempts => 1, when_exhausted => 'skip'";
    const CASCADE: &str = "'a', max_attempts => 1, when_exhausted => 'skip-cascade'";

    /// Starts flow `f` of step `a` and others, claims what there is and fails `a` for good.
    fn exhausted(a: &str, others: &[&str]) -> Uuid {
        flow("f", &[&[a], others].concat());
        let id = start("f", "{}");
        claim("f");
        assert_eq!(fail(id, "a", 0, "no luck"), "failed");
        id
    }

    fn skipped(id: Uuid, step: &str) -> String {
        of_step(
            id,
            step,
            "format('%s %s %s', status, skip_reason, coalesce(error_message, '-'))",
        )
    }

    // skip

    #[pg_test]
    fn skip_ends_the_task_as_failed_and_the_step_as_skipped() {
        let id = exhausted(SKIP, &["'b'"]);
        assert_eq!(tasks(id), ["a[0]:failed", "b[0]:started"]);
        assert_eq!(skipped(id, "a"), "skipped handler_failed no luck");
        assert_eq!(
            of_step(id, "a", "skipped_at >= created_at and num_nulls(remaining_tasks, failed_at, completed_at, output) = 4"),
            "true"
        );
        assert_eq!(messages("f"), "1/1");
        invariants_hold();
    }

    #[pg_test]
    fn skip_lets_the_run_go_on() {
        let id = exhausted(SKIP, &["'b'"]);
        assert_eq!(of_run(id, "status || remaining_steps"), "started1");
        complete(id, "b", 0, "1");
        assert_eq!(outcome(id), "completed {\"b\": 1}");
        invariants_hold();
    }

    #[pg_test]
    fn skip_of_the_last_step_completes_the_run() {
        let id = exhausted(SKIP, &[]);
        assert_eq!(outcome(id), "completed NULL");
        invariants_hold();
    }

    #[pg_test]
    fn skip_starts_a_dependent_without_the_skipped_output() {
        let id = exhausted(SKIP, &["'b'", "'c', array['a']", "'d', array['a', 'b']"]);
        assert_eq!(
            steps(id),
            ["a:skipped", "b:started", "c:started", "d:created"]
        );
        assert_eq!(claim("f"), ["c[0] {}"]);
        complete(id, "b", 0, "1");
        assert_eq!(claim("f"), ["d[0] {\"b\": 1}"]);
        invariants_hold();
    }

    #[pg_test]
    fn skip_completes_a_dependent_map_with_an_empty_array() {
        let id = exhausted(SKIP, &["'m', array['a'], step_type => 'map'"]);
        assert_eq!(steps(id), ["a:skipped", "m:completed"]);
        assert_eq!(of_step(id, "m", "initial_tasks || output::text"), "0[]");
        assert_eq!(outcome(id), "completed {\"m\": []}");
        invariants_hold();
    }

    #[pg_test]
    fn skip_has_the_conditions_of_dependents_judged() {
        let id = exhausted(
            SKIP,
            &[
                "'b', array['a'], required_input_pattern => '{\"a\": 1}'",
                "'c', array['b']",
            ],
        );
        assert_eq!(skipped(id, "b"), "skipped condition_unmet -");
        assert_eq!(steps(id), ["a:skipped", "b:skipped", "c:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn skip_may_fail_the_run_by_a_dependent_s_condition() {
        let id = exhausted(
            SKIP,
            &[
                "'b', array['a'], required_input_pattern => '{\"a\": 1}', when_unmet => 'fail'",
                "'c'",
            ],
        );
        assert_eq!(steps(id), ["a:skipped", "b:failed", "c:started"]);
        assert_eq!(of_run(id, "status"), "failed");
        assert_eq!(tasks(id), ["a[0]:failed", "c[0]:cancelled"]);
        assert_eq!(messages("f"), "0/2");
        invariants_hold();
    }

    #[pg_test]
    fn skip_ends_the_unfinished_tasks_of_a_map() {
        flow(
            "f",
            &[
                "'m', step_type => 'map', max_attempts => 1, when_exhausted => 'skip'",
                "'z'",
            ],
        );
        let id = start("f", "[1, 2, 3, 4]");
        claim_ids(
            "f",
            "select message_id from pgflow.step_tasks where step_slug = 'm' and task_index < 3",
        );
        complete(id, "m", 0, "1");
        fail(id, "m", 1, "no luck");
        assert_eq!(
            tasks(id),
            [
                "m[0]:completed",
                "m[1]:failed",
                "m[2]:skipped",
                "m[3]:skipped",
                "z[0]:queued"
            ]
        );
        assert_eq!(skipped(id, "m"), "skipped handler_failed no luck");
        assert_eq!(messages("f"), "1/4");
        invariants_hold();
    }

    #[pg_test]
    fn skip_archives_the_messages_through_the_stored_queue() {
        flow(
            "f",
            &["'m', step_type => 'map', max_attempts => 1, when_exhausted => 'skip'"],
        );
        route("f", "m", "elsewhere");
        let id = start("f", "[1, 2]");
        run("select pgflow.start_tasks('f', '{1, 2}', null, 'elsewhere')");
        fail(id, "m", 0, "x");
        assert_eq!(messages("elsewhere"), "0/2");
        invariants_hold();
    }

    #[pg_test]
    fn skip_after_a_retry_keeps_the_last_message() {
        flow("f", &["'a', max_attempts => 2, when_exhausted => 'skip'"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(fail(id, "a", 0, "first"), "queued");
        assert_eq!(steps(id), ["a:started"]);
        claim_hidden("f");
        assert_eq!(fail(id, "a", 0, "second"), "failed");
        assert_eq!(skipped(id, "a"), "skipped handler_failed second");
        invariants_hold();
    }

    // skip-cascade

    #[pg_test]
    fn skip_cascade_skips_everything_downstream() {
        let id = exhausted(
            CASCADE,
            &[
                "'b', array['a']",
                "'c', array['b']",
                "'m', array['a'], step_type => 'map'",
            ],
        );
        assert_eq!(
            steps(id),
            ["a:skipped", "b:skipped", "c:skipped", "m:skipped"]
        );
        assert_eq!(skipped(id, "a"), "skipped handler_failed no luck");
        for dependent in ["b", "c", "m"] {
            assert_eq!(skipped(id, dependent), "skipped dependency_skipped -");
        }
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn skip_cascade_completes_a_run_that_has_nothing_left() {
        let id = exhausted(CASCADE, &["'b', array['a']"]);
        assert_eq!(outcome(id), "completed NULL");
        assert_eq!(of_run(id, "remaining_steps"), "0");
        invariants_hold();
    }

    #[pg_test]
    fn skip_cascade_leaves_other_branches_going() {
        let id = exhausted(
            CASCADE,
            &[
                "'b', array['a']",
                "'x'",
                "'y', array['x']",
                "'z', array['b', 'x']",
            ],
        );
        assert_eq!(
            steps(id),
            [
                "a:skipped",
                "b:skipped",
                "x:started",
                "y:created",
                "z:skipped"
            ]
        );
        assert_eq!(of_run(id, "status || remaining_steps"), "started2");
        complete(id, "x", 0, "1");
        assert_eq!(steps(id)[3..], ["y:started", "z:skipped"]);
        claim("f");
        complete(id, "y", 0, "2");
        assert_eq!(outcome(id), "completed {\"y\": 2}");
        invariants_hold();
    }

    #[pg_test]
    fn skip_cascade_ends_the_unfinished_tasks_of_its_own_step() {
        flow(
            "f",
            &[
                "'m', step_type => 'map', max_attempts => 1, when_exhausted => 'skip-cascade'",
                "'b', array['m']",
            ],
        );
        let id = start("f", "[1, 2, 3]");
        claim("f");
        complete(id, "m", 2, "1");
        fail(id, "m", 0, "x");
        assert_eq!(tasks(id), ["m[0]:failed", "m[1]:skipped", "m[2]:completed"]);
        assert_eq!(steps(id), ["m:skipped", "b:skipped"]);
        assert_eq!(messages("f"), "0/3");
        assert_eq!(outcome(id), "completed NULL");
        invariants_hold();
    }

    #[pg_test]
    fn skip_cascade_judges_no_condition_downstream() {
        let id = exhausted(
            CASCADE,
            &["'b', array['a'], required_input_pattern => '{\"a\": 1}', when_unmet => 'fail'"],
        );
        assert_eq!(skipped(id, "b"), "skipped dependency_skipped -");
        assert_eq!(of_run(id, "status"), "completed");
        invariants_hold();
    }

    #[pg_test]
    fn a_late_report_of_a_sibling_task_changes_nothing() {
        flow(
            "f",
            &[
                "'m', step_type => 'map', max_attempts => 1, when_exhausted => 'skip'",
                "'z'",
            ],
        );
        let id = start("f", "[1, 2]");
        claim("f");
        fail(id, "m", 0, "x");
        let before = snapshot(id);
        assert_eq!(complete(id, "m", 1, "2"), "skipped");
        assert_eq!(fail(id, "m", 1, "y"), "skipped");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }
}
