//! cascade_resolve_conditions, called by hand: judges the conditions of ready steps.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// A run of `a` -> `b` in which `b`, with an unmet condition, was told that `a` has ended.
    fn run_with_unjudged_step(when_unmet: &str, others: &[&str]) -> Uuid {
        let b = format!(
            "'b', array['a'], required_input_pattern => '{{\"a\": 1}}', when_unmet => '{when_unmet}'"
        );
        flow("f", &[&["'a'", &b], others].concat());
        let id = start("f", "{}");
        run("update pgflow.step_states set remaining_deps = 0 where step_slug = 'b'");
        id
    }

    fn resolve(id: Uuid) -> String {
        text(&format!("select pgflow.cascade_resolve_conditions('{id}')"))
    }

    #[pg_test]
    fn resolving_skips_a_ready_step_and_says_true() {
        let id = run_with_unjudged_step("skip", &["'c', array['a', 'b']"]);
        assert_eq!(resolve(id), "true");
        assert_eq!(steps(id), ["a:started", "b:skipped", "c:created"]);
        assert_eq!(of_step(id, "c", "remaining_deps"), "1");
        assert_eq!(of_run(id, "remaining_steps"), "2");
        invariants_hold();
    }

    #[pg_test]
    fn resolving_goes_on_with_steps_that_become_ready() {
        let id = run_with_unjudged_step(
            "skip",
            &["'c', array['b'], required_input_pattern => '{\"b\": 1}'"],
        );
        assert_eq!(resolve(id), "true");
        assert_eq!(steps(id), ["a:started", "b:skipped", "c:skipped"]);
        invariants_hold();
    }

    #[pg_test]
    fn resolving_cascades() {
        let id = run_with_unjudged_step("skip-cascade", &["'c', array['b']"]);
        assert_eq!(resolve(id), "true");
        assert_eq!(steps(id), ["a:started", "b:skipped", "c:skipped"]);
        assert_eq!(of_step(id, "c", "skip_reason"), "dependency_skipped");
        invariants_hold();
    }

    #[pg_test]
    fn resolving_that_fails_the_run_says_false() {
        let id = run_with_unjudged_step("fail", &[]);
        assert_eq!(resolve(id), "false");
        assert_eq!(steps(id), ["a:started", "b:failed"]);
        assert_eq!(of_run(id, "status"), "failed");
        assert_eq!(tasks(id), ["a[0]:cancelled"]);
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn resolving_a_run_that_had_failed_says_false_and_does_nothing() {
        let id = run_with_unjudged_step("fail", &[]);
        resolve(id);
        let before = snapshot(id);
        assert_eq!(resolve(id), "false");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn resolving_a_completed_run_says_true_and_does_nothing() {
        flow("f", &[]);
        let id = start("f", "{}");
        let before = snapshot(id);
        assert_eq!(resolve(id), "true");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn resolving_again_changes_nothing_and_sends_no_event() {
        record_events();
        let id = run_with_unjudged_step("skip", &["'c', array['a', 'b']"]);
        resolve(id);
        let before = (snapshot(id), events());
        assert_eq!(resolve(id), "true");
        assert_eq!((snapshot(id), events()), before);
        invariants_hold();
    }

    #[pg_test]
    fn resolving_leaves_a_step_whose_condition_is_met_to_be_started() {
        flow(
            "f",
            &[
                "'a'",
                "'b', array['a'], forbidden_input_pattern => '{\"a\": 1}'",
            ],
        );
        let id = start("f", "{}");
        run("update pgflow.step_states set remaining_deps = 0 where step_slug = 'b'");
        let before = snapshot(id);
        assert_eq!(resolve(id), "true");
        assert_eq!(snapshot(id), before);
        run(&format!("select pgflow.start_ready_steps('{id}')"));
        assert_eq!(steps(id), ["a:started", "b:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn resolving_judges_no_step_that_waits() {
        flow(
            "f",
            &[
                "'a'",
                "'b', array['a'], required_input_pattern => '{\"a\": 1}'",
            ],
        );
        let id = start("f", "{}");
        let before = snapshot(id);
        assert_eq!(resolve(id), "true");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }
}
