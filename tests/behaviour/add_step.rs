//! add_step: a step's row, its dependencies and its route.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    fn of(step: &str, expression: &str) -> String {
        text(&format!(
            "select {expression} from pgflow.steps where step_slug = '{step}'"
        ))
    }

    const STEPS: &str = "select step_slug from pgflow.steps order by step_index";
    const DEPS: &str = "select dep_slug || '>' || step_slug from pgflow.deps order by 1";

    /// The step is refused with this SQLSTATE, and the flow is as it was: step `a` alone.
    fn refused(arguments: &str, code: &str) {
        run("select pgflow.create_flow('f')");
        run("select pgflow.add_step('f', 'a')");
        let call = format!("select pgflow.add_step({arguments})");
        assert_eq!(failure(&call).code, code, "{call}");
        assert_eq!(rows(STEPS), ["a"], "{call}");
        assert_eq!(rows(DEPS), NONE, "{call}");
    }

    #[pg_test]
    fn steps_are_numbered_from_0_in_the_order_added() {
        flow("f", &["'z'", "'a'", "'m'"]);
        assert_eq!(
            rows("select step_slug || step_index from pgflow.steps order by step_index"),
            ["z0", "a1", "m2"]
        );
    }

    #[pg_test]
    fn each_flow_numbers_its_own_steps() {
        flow("f", &["'a'", "'b'"]);
        flow("g", &["'a'"]);
        assert_eq!(
            text("select step_index from pgflow.steps where flow_slug = 'g'"),
            "0"
        );
    }

    #[pg_test]
    fn a_step_stores_its_flow_s_queue_in_lower_case() {
        flow("OrderFlow", &["'camelStep'"]);
        assert_eq!(of("camelStep", "queue_name"), "orderflow");
    }

    #[pg_test]
    fn add_step_creates_no_queue() {
        run("select pgflow.create_flow('f')");
        run("select pgmq.drop_queue('f')");
        run("select pgflow.add_step('f', 'a')");
        assert_eq!(rows("select queue_name from pgmq.list_queues()"), NONE);
    }

    #[pg_test]
    fn a_step_stores_its_dependencies_and_their_number() {
        flow("f", &DIAMOND);
        assert_eq!(rows(DEPS), ["a>b", "a>c", "b>d", "c>d"]);
        assert_eq!(
            ["a", "b", "c", "d"].map(|step| of(step, "deps_count")),
            ["0", "1", "1", "2"]
        );
    }

    #[pg_test]
    fn a_repeated_dependency_counts_once() {
        flow("f", &["'a'", "'b', array['a', 'a', 'a']"]);
        assert_eq!(of("b", "deps_count"), "1");
        assert_eq!(rows(DEPS), ["a>b"]);
    }

    #[pg_test]
    fn steps_that_differ_in_case_are_different_steps() {
        flow("f", &["'a'", "'A', array['a']"]);
        assert_eq!(rows(STEPS), ["a", "A"]);
        assert_eq!(rows(DEPS), ["a>A"]);
    }

    #[pg_test]
    fn add_step_stores_every_option() {
        flow(
            "f",
            &[
                "'a'",
                "'b', array['a'], 1, 2, 3, 4, 'map', '{\"x\": 1}', '{\"y\": 2}', 'fail', 'skip-cascade'",
            ],
        );
        assert_eq!(
            of(
                "b",
                "format('%s %s %s %s %s %s %s %s %s', step_type, opt_max_attempts, opt_base_delay, opt_timeout,
                        opt_start_delay, required_input_pattern, forbidden_input_pattern, when_unmet, when_exhausted)"
            ),
            "map 1 2 3 4 {\"x\": 1} {\"y\": 2} fail skip-cascade"
        );
    }

    #[pg_test]
    fn add_step_takes_every_argument_by_name() {
        flow("f", &["'a'"]);
        run("select pgflow.add_step(
               when_exhausted => 'skip', when_unmet => 'fail', forbidden_input_pattern => '{\"y\": 2}',
               required_input_pattern => '{\"x\": 1}', step_type => 'map', start_delay => 4, timeout => 3,
               base_delay => 2, max_attempts => 1, deps_slugs => array['a'], step_slug => 'b', flow_slug => 'f')");
        assert_eq!(
            of(
                "b",
                "format('%s %s %s %s %s %s %s %s %s', step_type, opt_max_attempts, opt_base_delay, opt_timeout,
                        opt_start_delay, required_input_pattern, forbidden_input_pattern, when_unmet, when_exhausted)"
            ),
            "map 1 2 3 4 {\"x\": 1} {\"y\": 2} fail skip"
        );
    }

    #[pg_test]
    fn a_plain_step_is_single_has_no_options_and_the_default_modes() {
        flow("f", &["'a'"]);
        assert_eq!(
            of("a", "to_jsonb(steps) - 'created_at'"),
            text(
                "select jsonb_build_object(
                   'flow_slug', 'f', 'step_slug', 'a', 'step_type', 'single', 'step_index', 0, 'deps_count', 0,
                   'opt_max_attempts', null, 'opt_base_delay', null, 'opt_timeout', null, 'opt_start_delay', null,
                   'required_input_pattern', null, 'forbidden_input_pattern', null,
                   'when_unmet', 'skip', 'when_exhausted', 'fail', 'queue_name', 'f')"
            )
        );
    }

    #[pg_test]
    fn a_null_step_type_and_null_dependencies_mean_the_defaults() {
        flow("f", &["'a', deps_slugs => null, step_type => null"]);
        assert_eq!(of("a", "step_type || deps_count"), "single0");
    }

    #[pg_test]
    fn null_options_of_a_step_stay_null() {
        flow(
            "f",
            &["'a', null, null, null, null, null, null, null, null"],
        );
        assert_eq!(
            of(
                "a",
                "num_nulls(opt_max_attempts, opt_base_delay, opt_timeout, opt_start_delay,
                           required_input_pattern, forbidden_input_pattern)"
            ),
            "6"
        );
    }

    #[pg_test]
    fn no_attempts_and_no_delays_are_valid_options_of_a_step() {
        flow(
            "f",
            &["'a', max_attempts => 0, base_delay => 0, timeout => 1, start_delay => 0"],
        );
        assert_eq!(rows(STEPS), ["a"]);
    }

    #[pg_test]
    fn add_step_returns_the_stored_row() {
        flow("f", &["'a'"]);
        let returned =
            text("select to_jsonb(s) from pgflow.add_step('f', 'b', array['a'], 1, 2, 3, 4) s");
        assert_eq!(returned, of("b", "to_jsonb(steps)"));
    }

    #[pg_test]
    fn repeating_add_step_changes_nothing_and_returns_the_row() {
        flow("f", &["'a'", "'b'", "'c', array['a'], 7"]);
        let row = of("c", "(ctid, steps)::text");
        let returned = text(
            "select s::text from pgflow.add_step('f', 'c', array['a', 'b'], 1, 2, 3, 4, 'map', '{}', '{}', 'fail', 'skip') s",
        );
        assert_eq!(returned, of("c", "steps::text"));
        assert_eq!(row, of("c", "(ctid, steps)::text"));
        assert_eq!(rows(DEPS), ["a>c"]);
    }

    #[pg_test]
    fn repeating_add_step_ignores_invalid_arguments_too() {
        flow("f", &["'a'"]);
        let row = of("a", "(ctid, steps)::text");
        run("select pgflow.add_step('f', 'a', array['nope'], -1, -1, 0, -1, 'loop', '1', '1', 'x', null)");
        assert_eq!(row, of("a", "(ctid, steps)::text"));
        assert_eq!(rows(DEPS), NONE);
    }

    #[pg_test]
    fn a_null_when_unmet_is_refused() {
        refused("'f', 'b', when_unmet => null", "23502");
    }

    #[pg_test]
    fn a_null_when_exhausted_is_refused() {
        refused("'f', 'b', when_exhausted => null", "23502");
    }

    #[pg_test]
    fn a_map_step_may_have_no_dependency_or_one() {
        flow(
            "f",
            &[
                "'a', step_type => 'map'",
                "'b', array['a'], step_type => 'map'",
            ],
        );
        assert_eq!(rows(STEPS), ["a", "b"]);
    }

    #[pg_test]
    fn a_map_step_with_two_dependencies_is_refused() {
        flow("f", &["'a'", "'b'"]);
        let refusal =
            failure("select pgflow.add_step('f', 'c', array['a', 'b'], step_type => 'map')");
        assert_eq!(refusal.code, "22023");
        assert!(refusal.message.contains("\"c\""), "{refusal:?}");
        assert_eq!(rows(STEPS), ["a", "b"]);
        assert_eq!(rows(DEPS), NONE);
    }

    #[pg_test]
    fn a_map_step_with_one_dependency_named_twice_has_one() {
        flow("f", &["'a'", "'b', array['a', 'a'], step_type => 'map'"]);
        assert_eq!(of("b", "deps_count"), "1");
    }

    #[pg_test]
    fn a_step_of_an_unknown_flow_is_refused() {
        refused("'nope', 'b'", "23503");
    }

    #[pg_test]
    fn a_step_of_a_flow_spelled_in_other_case_is_refused() {
        refused("'F', 'b'", "23503");
    }

    #[pg_test]
    fn an_unknown_dependency_is_refused() {
        refused("'f', 'b', array['nope']", "23503");
        refused("'f', 'b', array['a', 'nope']", "23503");
        refused("'f', 'b', array['A']", "23503");
    }

    #[pg_test]
    fn a_dependency_on_a_step_of_another_flow_is_refused() {
        flow("g", &["'x'"]);
        run("select pgflow.create_flow('f')");
        assert_eq!(
            failure("select pgflow.add_step('f', 'b', array['x'])").code,
            "23503"
        );
        assert_eq!(rows(STEPS), ["x"]);
    }

    #[pg_test]
    fn a_step_that_depends_on_itself_is_refused() {
        refused("'f', 'b', array['b']", "23514");
        refused("'f', 'b', array['a', 'b']", "23514");
    }

    #[pg_test]
    fn a_null_dependency_is_refused() {
        refused("'f', 'b', array[null]::text[]", "23502");
        refused("'f', 'b', array['a', null]", "23502");
    }

    #[pg_test]
    fn a_null_flow_or_step_slug_is_refused() {
        refused("null, 'b'", "23502");
        refused("'f', null", "23502");
    }

    #[pg_test]
    fn add_step_refuses_invalid_slugs() {
        for slug in ["", "run", "1a", "a-b", "a b", "é"] {
            refused(&format!("'f', '{slug}'"), "23514");
        }
    }

    #[pg_test]
    fn add_step_refuses_invalid_option_values() {
        for option in [
            "max_attempts => -1",
            "base_delay => -1",
            "timeout => 0",
            "timeout => -1",
            "start_delay => -1",
        ] {
            refused(&format!("'f', 'b', {option}"), "23514");
        }
    }

    #[pg_test]
    fn add_step_refuses_unknown_types_and_modes() {
        for option in [
            "step_type => 'loop'",
            "step_type => ''",
            "when_unmet => 'ignore'",
            "when_unmet => 'skip_cascade'",
            "when_exhausted => 'FAIL'",
        ] {
            refused(&format!("'f', 'b', {option}"), "23514");
        }
    }

    #[pg_test]
    fn add_step_refuses_a_pattern_that_is_no_object() {
        for pattern in ["[]", "1", "\"a\"", "true", "null"] {
            refused(
                &format!("'f', 'b', required_input_pattern => '{pattern}'"),
                "23514",
            );
            refused(
                &format!("'f', 'b', forbidden_input_pattern => '{pattern}'"),
                "23514",
            );
        }
    }
}
