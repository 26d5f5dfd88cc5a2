//! _cascade_force_skip_steps: skips a step and all that depends on it.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    fn skip(id: Uuid, step: &str, reason: &str) -> String {
        text(&format!(
            "select pgflow._cascade_force_skip_steps('{id}', '{step}', '{reason}')"
        ))
    }

    #[pg_test]
    fn a_forced_skip_counts_all_transitive_dependents() {
        flow(
            "f",
            &[
                "'a'",
                "'b', array['a']",
                "'c', array['b']",
                "'m', array['b'], step_type => 'map'",
                "'z'",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(skip(id, "b", "condition_unmet"), "3");
        assert_eq!(
            steps(id),
            [
                "a:started",
                "b:skipped",
                "c:skipped",
                "m:skipped",
                "z:started"
            ]
        );
        assert_eq!(of_run(id, "remaining_steps"), "2");
        invariants_hold();
    }

    #[pg_test]
    fn the_reason_is_the_step_s_own_and_dependents_have_another() {
        flow("f", &["'a'", "'b', array['a']", "'z'"]);
        let id = start("f", "{}");
        skip(id, "a", "by hand");
        assert_eq!(of_step(id, "a", "skip_reason"), "by hand");
        assert_eq!(of_step(id, "b", "skip_reason"), "dependency_skipped");
        assert_eq!(of_step(id, "b", "skipped_at >= created_at"), "true");
        invariants_hold();
    }

    #[pg_test]
    fn a_started_step_s_unfinished_tasks_are_skipped_and_archived() {
        flow("f", &["'m', step_type => 'map'", "'z'"]);
        let id = start("f", "[1, 2, 3]");
        claim_ids(
            "f",
            "select message_id from pgflow.step_tasks where step_slug = 'm' and task_index < 2",
        );
        complete(id, "m", 0, "1");
        assert_eq!(skip(id, "m", "condition_unmet"), "1");
        assert_eq!(
            tasks(id),
            [
                "m[0]:completed",
                "m[1]:skipped",
                "m[2]:skipped",
                "z[0]:queued"
            ]
        );
        assert_eq!(
            of_step(id, "m", "status || coalesce(remaining_tasks::text, '-')"),
            "skipped-"
        );
        assert_eq!(messages("f"), "1/3");
        invariants_hold();
    }

    #[pg_test]
    fn a_forced_skip_archives_in_each_stored_queue() {
        flow("f", &["'a'", "'m', step_type => 'map'", "'z'"]);
        run("insert into pgflow.deps (flow_slug, dep_slug, step_slug) values ('f', 'a', 'm')");
        route("f", "m", "elsewhere");
        let id = start("f", "[1, 2]");
        assert_eq!(skip(id, "a", "condition_unmet"), "2");
        assert_eq!(
            tasks(id),
            [
                "a[0]:skipped",
                "m[0]:skipped",
                "m[1]:skipped",
                "z[0]:queued"
            ]
        );
        assert_eq!([messages("f"), messages("elsewhere")], ["1/1", "0/2"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_step_that_also_depends_on_others_is_skipped_at_once() {
        flow("f", &["'a'", "'b'", "'c', array['a', 'b']"]);
        let id = start("f", "{}");
        assert_eq!(skip(id, "a", "condition_unmet"), "2");
        assert_eq!(steps(id), ["a:skipped", "b:started", "c:skipped"]);
        claim("f");
        complete(id, "b", 0, "1");
        assert_eq!(outcome(id), "completed NULL");
        invariants_hold();
    }

    #[pg_test]
    fn a_diamond_s_end_is_skipped_and_counted_once() {
        flow("f", &[&DIAMOND[..], &["'z'"]].concat());
        let id = start("f", "{}");
        assert_eq!(skip(id, "a", "condition_unmet"), "4");
        assert_eq!(of_run(id, "remaining_steps"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn a_repeated_forced_skip_changes_nothing_and_gives_0() {
        flow("f", &["'a'", "'b', array['a']", "'z'"]);
        let id = start("f", "{}");
        assert_eq!(skip(id, "a", "condition_unmet"), "2");
        let before = snapshot(id);
        assert_eq!(skip(id, "a", "other reason"), "0");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_completed_step_is_not_skipped() {
        flow("f", &["'a'", "'z'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(skip(id, "a", "condition_unmet"), "0");
        assert_eq!(steps(id), ["a:completed", "z:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn an_unknown_step_is_nothing_to_skip() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let before = snapshot(id);
        assert_eq!(skip(id, "nope", "condition_unmet"), "0");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_forced_skip_in_an_unknown_run_is_an_error() {
        let refusal = failure(
            "select pgflow._cascade_force_skip_steps('11111111-2222-3333-4444-555555555555', 'a', 'x')",
        );
        assert_eq!(refusal.code, "42704");
        assert!(
            refusal
                .message
                .contains("11111111-2222-3333-4444-555555555555"),
            "{refusal:?}"
        );
    }

    #[pg_test]
    fn a_forced_skip_sends_one_event_each_in_topological_order() {
        record_events();
        flow(
            "f",
            &[
                "'d'",
                "'c', array['d']",
                "'b', array['c']",
                "'a', array['d', 'b']",
                "'z'",
            ],
        );
        let id = start("f", "{}");
        run("delete from realtime.sent");
        skip(id, "d", "condition_unmet");
        assert_eq!(
            events(),
            [
                "step:d:skipped",
                "step:c:skipped",
                "step:b:skipped",
                "step:a:skipped"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_forced_skip_leaves_other_runs_alone() {
        flow("f", &["'a'", "'b', array['a']", "'z'"]);
        let other = start("f", "{}");
        let id = start("f", "{}");
        let before = snapshot(other);
        skip(id, "a", "condition_unmet");
        assert_eq!(snapshot(other), before);
        assert_eq!(messages("f"), "3/1");
        invariants_hold();
    }

    #[pg_test]
    fn five_hundred_dependents_are_skipped_in_one_call() {
        flow("f", &["'z'", "'s0'"]);
        run("select pgflow.add_step('f', 's' || i, array['s' || i - 1]) from generate_series(1, 499) as i");
        let id = start("f", "{}");
        assert_eq!(skip(id, "s0", "condition_unmet"), "500");
        assert_eq!(of_run(id, "remaining_steps"), "1");
        invariants_hold();
    }
}
