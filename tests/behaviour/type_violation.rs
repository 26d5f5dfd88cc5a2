//! complete_task: a single step that a map waits for must return an array.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    const MAP_AFTER_A: &str = "'m', array['a'], step_type => 'map'";

    /// Starts flow `f` of `a` -> map `m` and more steps, claims everything and has `a` return an object.
    fn violated(more: &[&str]) -> Uuid {
        flow("f", &[&["'a'", MAP_AFTER_A], more].concat());
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "{\"x\": 1}");
        id
    }

    #[pg_test]
    fn an_output_that_is_no_array_fails_task_step_and_run() {
        let id = violated(&[]);
        assert_eq!(tasks(id), ["a[0]:failed"]);
        assert_eq!(steps(id), ["a:failed", "m:created"]);
        assert_eq!(outcome(id), "failed NULL");
        assert_eq!(
            of_run(id, "failed_at >= started_at and completed_at is null"),
            "true"
        );
        assert_eq!(
            of_step(id, "a", "failed_at >= started_at and completed_at is null"),
            "true"
        );
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "failed_at >= started_at and completed_at is null"
            ),
            "true"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_type_violation_is_told_in_these_words() {
        for (output, found) in [
            (Some("{}"), "object"),
            (Some("\"x\""), "string"),
            (Some("1.5"), "number"),
            (Some("false"), "boolean"),
            (Some("null"), "null"),
            (None, "null"),
        ] {
            flow("f", &["'a'", MAP_AFTER_A]);
            let id = start("f", "{}");
            claim("f");
            assert_eq!(complete(id, "a", 0, output), "failed");
            assert_eq!(
                of_task(id, "a", 0, "error_message"),
                format!("[TYPE_VIOLATION] Produced {found} instead of array")
            );
            assert_eq!(
                of_step(id, "a", "error_message"),
                format!("[TYPE_VIOLATION] Map step m expects array input but dependency a produced {found}")
            );
        }
        invariants_hold();
    }

    #[pg_test]
    fn the_output_that_was_wrong_is_kept_on_the_task_only() {
        let id = violated(&[]);
        assert_eq!(of_task(id, "a", 0, "output"), "{\"x\": 1}");
        assert_eq!(of_step(id, "a", "output"), "NULL");
        invariants_hold();
    }

    #[pg_test]
    fn a_type_violation_returns_the_failed_task_s_row() {
        flow("f", &["'a'", MAP_AFTER_A]);
        let id = start("f", "{}");
        claim("f");
        let returned = text(&format!(
            "select to_jsonb(t) from pgflow.complete_task('{id}', 'a', 0, '1') t"
        ));
        assert_eq!(returned, of_task(id, "a", 0, "to_jsonb(step_tasks)"));
        invariants_hold();
    }

    #[pg_test]
    fn a_type_violation_cancels_queued_and_started_tasks() {
        flow("f", &["'a'", MAP_AFTER_A, "'b'", "'c'"]);
        let id = start("f", "{}");
        claim_ids(
            "f",
            "select message_id from pgflow.step_tasks where step_slug in ('a', 'b')",
        );
        assert_eq!(tasks(id), ["a[0]:started", "b[0]:started", "c[0]:queued"]);
        complete(id, "a", 0, "1");
        assert_eq!(
            tasks(id),
            ["a[0]:failed", "b[0]:cancelled", "c[0]:cancelled"]
        );
        assert_eq!(messages("f"), "0/3");
        invariants_hold();
    }

    #[pg_test]
    fn a_type_violation_archives_messages_in_every_queue() {
        flow("f", &["'a'", MAP_AFTER_A, "'b'", "'c'"]);
        route("f", "b", "second");
        route("f", "c", "third");
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(
            ["f", "second", "third"].map(messages),
            ["0/1", "0/1", "0/1"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_type_violation_leaves_completed_work_as_it_is() {
        flow("f", &["'a'", MAP_AFTER_A, "'b'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "b", 0, "7");
        complete(id, "a", 0, "1");
        assert_eq!(steps(id), ["a:failed", "m:created", "b:completed"]);
        assert_eq!(tasks(id), ["a[0]:failed", "b[0]:completed"]);
        invariants_hold();
    }

    #[pg_test]
    fn nothing_starts_after_a_type_violation() {
        let id = violated(&["'s', array['a']"]);
        assert_eq!(steps(id), ["a:failed", "m:created", "s:created"]);
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_wrong_output_is_no_violation_without_a_dependent_map() {
        flow("f", &["'a'", "'s', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "{\"x\": 1}");
        assert_eq!(steps(id), ["a:completed", "s:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_map_task_may_return_anything_to_a_dependent_map() {
        flow(
            "f",
            &[
                "'m', step_type => 'map'",
                "'n', array['m'], step_type => 'map'",
            ],
        );
        let id = start("f", "[1]");
        claim("f");
        complete(id, "m", 0, "{\"x\": 1}");
        assert_eq!(claim("f"), ["n[0] {\"x\": 1}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_skipped_dependent_map_does_not_wait_for_an_array() {
        flow("f", &["'a'", MAP_AFTER_A]);
        let id = start("f", "{}");
        claim("f");
        run(&format!(
            "select pgflow._cascade_force_skip_steps('{id}', 'm', 'condition_unmet')"
        ));
        assert_eq!(complete(id, "a", 0, "{}"), "completed");
        assert_eq!(steps(id), ["a:completed", "m:skipped"]);
        assert_eq!(of_run(id, "status"), "completed");
        invariants_hold();
    }

    #[pg_test]
    fn a_queued_task_cannot_violate_a_type() {
        flow("f", &["'a'", MAP_AFTER_A]);
        let id = start("f", "{}");
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "{}"), "queued");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_second_report_after_a_type_violation_changes_nothing() {
        let id = violated(&[]);
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "[]"), "failed");
        assert_eq!(fail(id, "a", 0, "x"), "failed");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }
}
