//! start_tasks: what each kind of task gets as input.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    const MAP: &str = "'m', step_type => 'map'";

    /// `step[index] input / flow_input` of every claimed task of flow `f`.
    fn claim_with_flow_input() -> Vec<String> {
        rows(
            "select format('%s[%s] %s / %s', step_slug, task_index, input, coalesce(flow_input::text, 'NULL'))
             from pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 1000)), null)
             order by step_slug, task_index",
        )
    }

    #[pg_test]
    fn a_root_single_step_gets_an_empty_object_and_the_run_input() {
        flow("f", &["'a'"]);
        start("f", "[1, 2]");
        assert_eq!(claim_with_flow_input(), ["a[0] {} / [1, 2]"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_root_map_task_gets_its_element_of_the_run_input() {
        flow("f", &[MAP]);
        start("f", "[7, null, {\"x\": 1}]");
        assert_eq!(
            claim_with_flow_input(),
            [
                "m[0] 7 / NULL",
                "m[1] null / NULL",
                "m[2] {\"x\": 1} / NULL"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_step_gets_the_outputs_of_dependencies_by_slug() {
        flow("f", &DIAMOND);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(
            claim_with_flow_input(),
            ["b[0] {\"a\": 1} / NULL", "c[0] {\"a\": 1} / NULL"]
        );
        complete(id, "b", 0, "[2]");
        complete(id, "c", 0, "{\"x\": 3}");
        assert_eq!(
            claim_with_flow_input(),
            ["d[0] {\"b\": [2], \"c\": {\"x\": 3}} / NULL"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_step_sees_its_direct_dependencies_only() {
        flow("f", &["'a'", "'b', array['a']", "'c', array['b']"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        claim("f");
        complete(id, "b", 0, "2");
        assert_eq!(claim("f"), ["c[0] {\"b\": 2}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_null_output_is_json_null_in_a_dependent_s_input() {
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, None);
        assert_eq!(claim("f"), ["b[0] {\"a\": null}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_map_task_gets_its_element_of_a_single_step_s_output() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "[\"x\", [1]]");
        assert_eq!(
            claim_with_flow_input(),
            ["m[0] \"x\" / NULL", "m[1] [1] / NULL"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_map_task_gets_its_element_of_another_map_s_outputs() {
        flow("f", &[MAP, "'n', array['m'], step_type => 'map'"]);
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "m", 1, "{\"y\": 2}");
        complete(id, "m", 0, None);
        assert_eq!(claim("f"), ["n[0] null", "n[1] {\"y\": 2}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_single_step_after_a_map_gets_the_array_of_its_outputs() {
        flow("f", &[MAP, "'s', array['m']"]);
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "m", 1, "\"second\"");
        complete(id, "m", 0, "\"first\"");
        assert_eq!(claim("f"), ["s[0] {\"m\": [\"first\", \"second\"]}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_skipped_dependency_is_not_in_the_input() {
        flow(
            "f",
            &[
                "'a'",
                "'b', required_input_pattern => '{\"x\": 1}'",
                "'c', array['a', 'b']",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(claim("f"), ["c[0] {\"a\": 1}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_step_with_all_dependencies_skipped_gets_an_empty_object() {
        flow(
            "f",
            &[
                "'a', required_input_pattern => '{\"x\": 1}'",
                "'b', array['a']",
            ],
        );
        start("f", "{}");
        assert_eq!(claim_with_flow_input(), ["b[0] {} / NULL"]);
        invariants_hold();
    }

    #[pg_test]
    fn one_batch_gives_each_step_and_run_its_own_input() {
        flow("f", &["'a'", MAP]);
        start("f", "[1, 2]");
        start("f", "[3]");
        let mut claimed = claim_with_flow_input();
        claimed.sort();
        assert_eq!(
            claimed,
            [
                "a[0] {} / [1, 2]",
                "a[0] {} / [3]",
                "m[0] 1 / NULL",
                "m[0] 3 / NULL",
                "m[1] 2 / NULL"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_retried_task_gets_the_same_input_again() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "[1, {\"x\": 1.10}]");
        claim("f");
        fail(id, "m", 1, "x");
        assert_eq!(claim_hidden("f"), ["m[1] {\"x\": 1.10}"]);
        invariants_hold();
    }
}
