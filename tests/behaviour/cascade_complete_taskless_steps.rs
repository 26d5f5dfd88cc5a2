//! cascade_complete_taskless_steps: steps that have nothing to run. The states are set by hand.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// Defines `a` and steps after it, starts a run, and makes `b` ready without tasks.
    fn run_with_taskless_step(after_a: &[&str]) -> Uuid {
        flow("f", &[&["'a'"], after_a].concat());
        let id = start("f", "{}");
        run("update pgflow.step_states set remaining_deps = 0, initial_tasks = 0 where step_slug = 'b'");
        id
    }

    fn cascade(id: Uuid) -> String {
        text(&format!(
            "select pgflow.cascade_complete_taskless_steps('{id}')"
        ))
    }

    #[pg_test]
    fn a_taskless_map_step_completes_with_an_empty_array() {
        let id = run_with_taskless_step(&["'b', array['a'], step_type => 'map'"]);
        assert_eq!(cascade(id), "1");
        assert_eq!(
            of_step(
                id,
                "b",
                "format('%s %s %s %s', status, output, remaining_tasks, started_at = completed_at)"
            ),
            "completed [] 0 t"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_taskless_single_step_completes_with_a_null_output() {
        let id = run_with_taskless_step(&["'b', array['a']"]);
        assert_eq!(cascade(id), "1");
        assert_eq!(of_step(id, "b", "status"), "completed");
        assert_eq!(of_step(id, "b", "output"), "NULL");
        invariants_hold();
    }

    #[pg_test]
    fn a_taskless_step_counts_down_the_run_and_its_dependents() {
        let id = run_with_taskless_step(&[
            "'b', array['a'], step_type => 'map'",
            "'c', array['a', 'b']",
        ]);
        cascade(id);
        assert_eq!(of_run(id, "remaining_steps"), "2");
        assert_eq!(of_step(id, "c", "status || remaining_deps"), "created1");
        invariants_hold();
    }

    #[pg_test]
    fn maps_of_a_taskless_map_complete_with_it_and_count() {
        let id = run_with_taskless_step(&[
            "'b', array['a'], step_type => 'map'",
            "'c', array['b'], step_type => 'map'",
            "'d', array['c'], step_type => 'map'",
        ]);
        assert_eq!(cascade(id), "3");
        assert_eq!(
            steps(id),
            ["a:started", "b:completed", "c:completed", "d:completed"]
        );
        assert_eq!(of_step(id, "d", "initial_tasks"), "0");
        invariants_hold();
    }

    #[pg_test]
    fn a_step_with_tasks_after_a_taskless_one_is_left_to_be_started() {
        let id =
            run_with_taskless_step(&["'b', array['a'], step_type => 'map'", "'c', array['b']"]);
        assert_eq!(cascade(id), "1");
        assert_eq!(of_step(id, "c", "status || remaining_deps"), "created0");
        assert_eq!(messages("f"), "1/0");
        run(&format!("select pgflow.start_ready_steps('{id}')"));
        invariants_hold();
    }

    #[pg_test]
    fn a_run_without_taskless_steps_is_left_as_it_is() {
        flow("f", &["'a'", "'b', array['a'], step_type => 'map'"]);
        let id = start("f", "{}");
        let before = snapshot(id);
        assert_eq!(cascade(id), "0");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_taskless_step_of_a_failed_run_is_left_as_it_is() {
        flow(
            "f",
            &[
                "'a', max_attempts => 1",
                "'b', array['a'], step_type => 'map'",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        run("update pgflow.step_states set remaining_deps = 0, initial_tasks = 0 where step_slug = 'b'");
        let before = snapshot(id);
        assert_eq!(cascade(id), "0");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_taskless_step_with_an_unmet_condition_does_not_complete() {
        let id = run_with_taskless_step(&[
            "'b', array['a'], step_type => 'map', required_input_pattern => '{\"a\": 1}'",
        ]);
        assert_eq!(cascade(id), "0");
        assert_eq!(of_step(id, "b", "status"), "created");
    }

    #[pg_test]
    fn completing_taskless_steps_again_changes_nothing_and_gives_0() {
        record_events();
        let id = run_with_taskless_step(&["'b', array['a'], step_type => 'map'"]);
        assert_eq!(cascade(id), "1");
        let before = (snapshot(id), events());
        assert_eq!(cascade(id), "0");
        assert_eq!((snapshot(id), events()), before);
        invariants_hold();
    }

    #[pg_test]
    fn an_unknown_run_has_no_taskless_steps() {
        assert_eq!(
            text("select pgflow.cascade_complete_taskless_steps(gen_random_uuid())"),
            "0"
        );
    }
}
