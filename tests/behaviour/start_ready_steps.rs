//! start_ready_steps: starts what waits for nothing. The engine calls it by itself; here the states are set by hand.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// A run of `a` -> `b` in which `b` was told that `a` has ended, and nobody has started it.
    fn run_with_ready_step(of_b: &str) -> Uuid {
        flow("f", &["'a'", &format!("'b', array['a']{of_b}")]);
        let id = start("f", "{}");
        run("update pgflow.step_states set remaining_deps = 0 where step_slug = 'b'");
        id
    }

    fn start_ready(id: Uuid) {
        run(&format!("select pgflow.start_ready_steps('{id}')"));
    }

    #[pg_test]
    fn a_created_step_with_no_remaining_dependency_is_started() {
        let id = run_with_ready_step("");
        start_ready(id);
        assert_eq!(steps(id), ["a:started", "b:started"]);
        assert_eq!(of_step(id, "b", "remaining_tasks"), "1");
        assert_eq!(tasks(id), ["a[0]:queued", "b[0]:queued"]);
        assert_eq!(messages("f"), "2/0");
        invariants_hold();
    }

    #[pg_test]
    fn a_step_with_several_tasks_gets_a_message_for_each() {
        let id = run_with_ready_step(", step_type => 'map'");
        run("update pgflow.step_states set initial_tasks = 3 where step_slug = 'b'");
        start_ready(id);
        assert_eq!(
            tasks(id),
            ["a[0]:queued", "b[0]:queued", "b[1]:queued", "b[2]:queued"]
        );
        assert_eq!(of_step(id, "b", "remaining_tasks"), "3");
        invariants_hold();
    }

    #[pg_test]
    fn a_step_that_waits_is_not_started() {
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{}");
        start_ready(id);
        assert_eq!(steps(id), ["a:started", "b:created"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_step_without_tasks_is_not_started() {
        let id = run_with_ready_step(", step_type => 'map'");
        run("update pgflow.step_states set initial_tasks = 0 where step_slug = 'b'");
        start_ready(id);
        assert_eq!(steps(id), ["a:started", "b:created"]);
        assert_eq!(messages("f"), "1/0");
    }

    #[pg_test]
    fn a_map_step_that_does_not_know_its_tasks_is_not_started() {
        let id = run_with_ready_step(", step_type => 'map'");
        start_ready(id);
        assert_eq!(steps(id), ["a:started", "b:created"]);
        assert_eq!(messages("f"), "1/0");
    }

    #[pg_test]
    fn repeating_start_ready_steps_starts_nothing_twice() {
        record_events();
        let id = run_with_ready_step("");
        start_ready(id);
        let before = (snapshot(id), events());
        start_ready(id);
        assert_eq!((snapshot(id), events()), before);
        assert_eq!(messages("f"), "2/0");
        invariants_hold();
    }

    #[pg_test]
    fn nothing_is_started_on_a_failed_run() {
        flow("f", &["'a', max_attempts => 1", "'b', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        run("update pgflow.step_states set remaining_deps = 0 where step_slug = 'b'");
        start_ready(id);
        assert_eq!(steps(id), ["a:failed", "b:created"]);
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn nothing_is_started_on_an_unknown_or_null_run() {
        run("select pgflow.start_ready_steps(gen_random_uuid())");
        run("select pgflow.start_ready_steps(null)");
        assert_eq!(text("select count(*) from pgflow.step_tasks"), "0");
    }

    #[pg_test]
    fn tasks_of_a_started_step_go_to_the_step_s_stored_queue() {
        let id = run_with_ready_step("");
        route("f", "b", "elsewhere");
        start_ready(id);
        assert_eq!(of_task(id, "b", 0, "queue_name"), "elsewhere");
        assert_eq!(messages("elsewhere"), "1/0");
        assert_eq!(messages("f"), "1/0");
        invariants_hold();
    }

    #[pg_test]
    fn the_start_delay_counts_from_the_step_s_start() {
        let id = run_with_ready_step(", start_delay => 50");
        start_ready(id);
        assert_eq!(visible_in("f", 2), 50);
        invariants_hold();
    }

    #[pg_test]
    fn a_step_whose_condition_is_not_met_is_not_started() {
        let id = run_with_ready_step(", required_input_pattern => '{\"a\": 1}'");
        start_ready(id);
        assert_eq!(steps(id), ["a:started", "b:created"]);
        assert_eq!(messages("f"), "1/0");
    }
}
