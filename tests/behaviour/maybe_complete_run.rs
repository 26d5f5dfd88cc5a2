//! maybe_complete_run, and what a completed run gives as output.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// A run as start_flow would leave it, with a number of remaining steps and no states.
    fn bare_run(remaining: i32) -> Uuid {
        flow("f", &[]);
        one(&format!(
            "insert into pgflow.runs (flow_slug, input, remaining_steps) values ('f', '{{}}', {remaining})
             returning run_id"
        ))
    }

    #[pg_test]
    fn a_run_with_no_remaining_step_completes() {
        let id = bare_run(0);
        run(&format!("select pgflow.maybe_complete_run('{id}')"));
        assert_eq!(outcome(id), "completed NULL");
        assert_eq!(of_run(id, "completed_at >= started_at"), "true");
        invariants_hold();
    }

    #[pg_test]
    fn a_run_with_a_remaining_step_goes_on() {
        let id = bare_run(1);
        let before = snapshot(id);
        run(&format!("select pgflow.maybe_complete_run('{id}')"));
        assert_eq!(snapshot(id), before);
    }

    #[pg_test]
    fn a_completed_run_is_not_completed_again() {
        flow("f", &[]);
        let id = start("f", "{}");
        let before = snapshot(id);
        run(&format!("select pgflow.maybe_complete_run('{id}')"));
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_does_not_complete() {
        let id = bare_run(0);
        run("update pgflow.runs set status = 'failed', failed_at = now()");
        let before = snapshot(id);
        run(&format!("select pgflow.maybe_complete_run('{id}')"));
        assert_eq!(snapshot(id), before);
    }

    #[pg_test]
    fn an_unknown_or_null_run_is_nothing_to_complete() {
        run("select pgflow.maybe_complete_run(gen_random_uuid())");
        run("select pgflow.maybe_complete_run(null)");
        assert_eq!(text("select count(*) from pgflow.runs"), "0");
    }

    #[pg_test]
    fn the_run_s_output_holds_the_outputs_of_leaf_steps_only() {
        flow("f", &["'a'", "'b', array['a']", "'c', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        claim("f");
        complete(id, "b", 0, "[2]");
        assert_eq!(outcome(id), "started NULL");
        complete(id, "c", 0, "{\"x\": 3}");
        assert_eq!(outcome(id), "completed {\"b\": [2], \"c\": {\"x\": 3}}");
        invariants_hold();
    }

    #[pg_test]
    fn a_null_output_becomes_json_null_in_the_run_s_output() {
        flow("f", &["'a'", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, None);
        complete(id, "b", 0, "null");
        assert_eq!(outcome(id), "completed {\"a\": null, \"b\": null}");
        invariants_hold();
    }

    #[pg_test]
    fn a_skipped_leaf_is_not_in_the_run_s_output() {
        flow("f", &["'a'", "'b', required_input_pattern => '{\"x\": 1}'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(outcome(id), "completed {\"a\": 1}");
        invariants_hold();
    }

    #[pg_test]
    fn a_run_without_a_completed_leaf_has_a_null_output() {
        flow(
            "f",
            &[
                "'a'",
                "'b', array['a'], required_input_pattern => '{\"a\": 2}'",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(steps(id), ["a:completed", "b:skipped"]);
        assert_eq!(outcome(id), "completed NULL");
        invariants_hold();
    }
}
