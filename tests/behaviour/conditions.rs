//! Conditions of steps: when they are met, and what each `when_unmet` does.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    fn skipped(id: Uuid, step: &str) -> String {
        of_step(id, step, "status || ' ' || skip_reason")
    }

    /// Whether root step `a` with these patterns starts on this input.
    fn starts(patterns: &str, input: &str) -> bool {
        flow("f", &[&format!("'a', {patterns}"), "'z'"]);
        let id = start("f", input);
        let status = of_step(id, "a", "status");
        assert!(status == "started" || status == "skipped", "{status}");
        status == "started"
    }

    const FAIL: &str = "required_input_pattern => '{\"x\": 1}', when_unmet => 'fail'";
    const SKIP: &str = "required_input_pattern => '{\"x\": 1}', when_unmet => 'skip'";
    const CASCADE: &str = "required_input_pattern => '{\"x\": 1}', when_unmet => 'skip-cascade'";

    // When a condition is met.

    #[pg_test]
    fn a_required_pattern_is_met_by_an_input_that_contains_it() {
        let pattern = "required_input_pattern => '{\"x\": {\"y\": [1]}}'";
        assert!(starts(
            pattern,
            "{\"x\": {\"y\": [2, 1], \"z\": 0}, \"w\": 0}"
        ));
        for input in [
            "{}",
            "{\"x\": {\"y\": []}}",
            "{\"x\": {\"y\": 1}}",
            "{\"X\": {\"y\": [1]}}",
            "[1]",
            "null",
        ] {
            assert!(!starts(pattern, input), "{input}");
        }
        invariants_hold();
    }

    #[pg_test]
    fn a_forbidden_pattern_is_met_by_an_input_without_it() {
        let pattern = "forbidden_input_pattern => '{\"x\": 1}'";
        for input in ["{}", "{\"x\": 2}", "[1]", "null", "7"] {
            assert!(starts(pattern, input), "{input}");
        }
        assert!(!starts(pattern, "{\"x\": 1, \"y\": 2}"));
        invariants_hold();
    }

    #[pg_test]
    fn with_both_patterns_both_must_be_met() {
        let patterns =
            "required_input_pattern => '{\"x\": 1}', forbidden_input_pattern => '{\"y\": 1}'";
        assert!(starts(patterns, "{\"x\": 1}"));
        assert!(!starts(patterns, "{}"));
        assert!(!starts(patterns, "{\"x\": 1, \"y\": 1}"));
        invariants_hold();
    }

    #[pg_test]
    fn an_empty_required_pattern_is_met_by_every_object() {
        let pattern = "required_input_pattern => '{}'";
        assert!(starts(pattern, "{}"));
        assert!(starts(pattern, "{\"x\": 1}"));
        invariants_hold();
    }

    #[pg_test]
    fn an_empty_forbidden_pattern_is_met_by_no_object() {
        assert!(!starts("forbidden_input_pattern => '{}'", "{}"));
        invariants_hold();
    }

    #[pg_test]
    fn numbers_in_patterns_compare_by_value() {
        assert!(starts(
            "required_input_pattern => '{\"x\": 1.10}'",
            "{\"x\": 1.1}"
        ));
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_step_s_condition_sees_outputs_by_slug() {
        flow(
            "f",
            &[
                "'a'",
                "'b'",
                "'met', array['a', 'b'], required_input_pattern => '{\"a\": {\"ok\": true}, \"b\": 2}'",
                "'unmet', array['a', 'b'], required_input_pattern => '{\"ok\": true}'",
            ],
        );
        let id = start("f", "{\"ok\": true}");
        claim("f");
        complete(id, "a", 0, "{\"ok\": true}");
        complete(id, "b", 0, "2");
        assert_eq!(steps(id)[2..], ["met:started", "unmet:skipped"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_step_s_condition_waits_for_all_its_dependencies() {
        flow(
            "f",
            &[
                "'a'",
                "'b'",
                "'c', array['a', 'b'], required_input_pattern => '{\"b\": 1}'",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(of_step(id, "c", "status"), "created");
        complete(id, "b", 0, "1");
        assert_eq!(of_step(id, "c", "status"), "started");
        invariants_hold();
    }

    #[pg_test]
    fn a_condition_does_not_see_a_skipped_dependency() {
        flow(
            "f",
            &[
                &format!("'a', {SKIP}"),
                "'b', array['a'], required_input_pattern => '{\"a\": null}'",
                "'c', array['a'], forbidden_input_pattern => '{\"a\": null}'",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(steps(id), ["a:skipped", "b:skipped", "c:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_condition_sees_a_null_output_as_json_null() {
        flow(
            "f",
            &[
                "'a'",
                "'b', array['a'], required_input_pattern => '{\"a\": null}'",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, None);
        assert_eq!(of_step(id, "b", "status"), "started");
        invariants_hold();
    }

    #[pg_test]
    fn a_condition_sees_the_array_of_a_map() {
        flow(
            "f",
            &[
                "'m', step_type => 'map'",
                "'b', array['m'], required_input_pattern => '{\"m\": [2]}'",
            ],
        );
        let id = start("f", "[1, 1]");
        claim("f");
        complete(id, "m", 0, "1");
        complete(id, "m", 1, "2");
        assert_eq!(of_step(id, "b", "status"), "started");
        invariants_hold();
    }

    #[pg_test]
    fn a_condition_after_an_empty_map_is_judged_before_the_start() {
        flow(
            "f",
            &[
                "'m', step_type => 'map'",
                "'met', array['m'], required_input_pattern => '{\"m\": []}'",
                "'unmet', array['m'], forbidden_input_pattern => '{\"m\": []}'",
            ],
        );
        let id = start("f", "[]");
        assert_eq!(steps(id), ["m:completed", "met:started", "unmet:skipped"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_condition_of_a_map_is_judged_before_it_completes_empty() {
        flow(
            "f",
            &[
                "'met', step_type => 'map', forbidden_input_pattern => '{\"x\": 1}'",
                "'unmet', step_type => 'map', required_input_pattern => '{\"x\": 1}'",
            ],
        );
        let id = start("f", "[]");
        assert_eq!(steps(id), ["met:completed", "unmet:skipped"]);
        assert_eq!(outcome(id), "completed {\"met\": []}");
        invariants_hold();
    }

    #[pg_test]
    fn a_condition_of_a_map_after_an_empty_map_is_judged_too() {
        flow(
            "f",
            &[
                "'m', step_type => 'map'",
                "'met', array['m'], step_type => 'map', required_input_pattern => '{\"m\": []}'",
                "'unmet', array['m'], step_type => 'map', forbidden_input_pattern => '{\"m\": []}'",
            ],
        );
        let id = start("f", "[]");
        assert_eq!(steps(id), ["m:completed", "met:completed", "unmet:skipped"]);
        assert_eq!(outcome(id), "completed {\"met\": []}");
        invariants_hold();
    }

    #[pg_test]
    fn a_map_with_a_met_condition_starts_its_tasks() {
        flow(
            "f",
            &[
                "'a'",
                "'m', array['a'], step_type => 'map', required_input_pattern => '{\"a\": [2]}'",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "[1, 2]");
        assert_eq!(claim("f"), ["m[0] 1", "m[1] 2"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_step_without_patterns_starts_whatever_its_when_unmet() {
        flow(
            "f",
            &[
                "'a', when_unmet => 'fail'",
                "'b', when_unmet => 'skip-cascade'",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(steps(id), ["a:started", "b:started"]);
        invariants_hold();
    }

    // skip

    #[pg_test]
    fn an_unmet_condition_skips_by_default() {
        flow("f", &["'a', required_input_pattern => '{\"x\": 1}'", "'z'"]);
        let id = start("f", "{}");
        assert_eq!(skipped(id, "a"), "skipped condition_unmet");
        assert_eq!(
            of_step(id, "a", "skipped_at >= created_at and num_nulls(started_at, remaining_tasks, error_message) = 3"),
            "true"
        );
        assert_eq!(tasks(id), ["z[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn skip_counts_down_the_run_and_its_dependents() {
        flow(
            "f",
            &[&format!("'a', {SKIP}"), "'b'", "'c', array['a', 'b']"],
        );
        let id = start("f", "{}");
        assert_eq!(of_run(id, "remaining_steps"), "2");
        assert_eq!(of_step(id, "c", "status || remaining_deps"), "created1");
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_of_a_skipped_step_starts() {
        flow("f", &[&format!("'a', {SKIP}"), "'b', array['a']"]);
        let id = start("f", "{}");
        assert_eq!(steps(id), ["a:skipped", "b:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_map_of_a_skipped_step_has_no_tasks() {
        flow(
            "f",
            &[
                &format!("'a', {SKIP}"),
                "'m', array['a'], step_type => 'map'",
                "'n', array['m'], step_type => 'map'",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(steps(id), ["a:skipped", "m:completed", "n:completed"]);
        assert_eq!(of_step(id, "m", "initial_tasks || output::text"), "0[]");
        assert_eq!(outcome(id), "completed {\"n\": []}");
        invariants_hold();
    }

    #[pg_test]
    fn a_map_after_a_skipped_map_of_several_elements_has_no_tasks() {
        flow(
            "f",
            &[
                "'m', step_type => 'map', required_input_pattern => '{\"x\": 1}'",
                "'n', array['m'], step_type => 'map'",
            ],
        );
        let id = start("f", "[1, 2, 3]");
        assert_eq!(steps(id), ["m:skipped", "n:completed"]);
        assert_eq!(of_step(id, "n", "initial_tasks"), "0");
        assert_eq!(outcome(id), "completed {\"n\": []}");
        invariants_hold();
    }

    #[pg_test]
    fn a_skip_has_the_conditions_of_dependents_judged_in_turn() {
        flow(
            "f",
            &[
                &format!("'a', {SKIP}"),
                "'b', array['a'], required_input_pattern => '{\"a\": 1}'",
                "'c', array['b'], forbidden_input_pattern => '{\"b\": 1}'",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(steps(id), ["a:skipped", "b:skipped", "c:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn when_every_step_is_skipped_the_run_completes_without_output() {
        flow("f", &[&format!("'a', {SKIP}"), &format!("'b', {SKIP}")]);
        let id = start("f", "{}");
        assert_eq!(outcome(id), "completed NULL");
        assert_eq!(of_run(id, "remaining_steps"), "0");
        invariants_hold();
    }

    #[pg_test]
    fn two_skipped_dependencies_release_their_dependent_once() {
        flow(
            "f",
            &[
                &format!("'a', {SKIP}"),
                &format!("'b', {SKIP}"),
                "'c', array['a', 'b']",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(steps(id), ["a:skipped", "b:skipped", "c:started"]);
        assert_eq!(tasks(id), ["c[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_chain_of_500_unmet_conditions_is_skipped_in_one_call() {
        flow("f", &[&format!("'s0', {SKIP}")]);
        run("select pgflow.add_step('f', 's' || i, array['s' || i - 1], required_input_pattern => '{\"x\": 1}')
             from generate_series(1, 499) as i");
        run("select pgflow.add_step('f', 'last', array['s499'])");
        let id = start("f", "{}");
        assert_eq!(
            rows("select status || count(*) from pgflow.step_states group by status order by 1"),
            ["skipped500", "started1"]
        );
        assert_eq!(of_run(id, "remaining_steps"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn skips_and_empty_maps_alternate_to_any_depth() {
        flow("f", &[&format!("'s0', {SKIP}")]);
        run("select pgflow.add_step('f', 'm' || i, array['s' || i - 1], step_type => 'map'),
                    pgflow.add_step('f', 's' || i, array['m' || i], required_input_pattern => '{\"x\": 1}')
             from generate_series(1, 50) as i");
        let id = start("f", "{}");
        assert_eq!(
            rows("select status || count(*) from pgflow.step_states group by status order by 1"),
            ["completed50", "skipped51"]
        );
        assert_eq!(outcome(id), "completed NULL");
        invariants_hold();
    }

    // skip-cascade

    #[pg_test]
    fn skip_cascade_skips_the_step_and_all_that_depends_on_it() {
        flow(
            "f",
            &[
                &format!("'a', {CASCADE}"),
                "'b', array['a']",
                "'c', array['b']",
                "'m', array['a'], step_type => 'map'",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(skipped(id, "a"), "skipped condition_unmet");
        for dependent in ["b", "c", "m"] {
            assert_eq!(skipped(id, dependent), "skipped dependency_skipped");
        }
        assert_eq!(outcome(id), "completed NULL");
        assert_eq!(messages("f"), "0/0");
        invariants_hold();
    }

    #[pg_test]
    fn skip_cascade_of_a_condition_leaves_other_branches_going() {
        flow(
            "f",
            &[
                &format!("'a', {CASCADE}"),
                "'b', array['a']",
                "'x'",
                "'y', array['a', 'x']",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(
            steps(id),
            ["a:skipped", "b:skipped", "x:started", "y:skipped"]
        );
        assert_eq!(of_run(id, "status || remaining_steps"), "started1");
        claim("f");
        complete(id, "x", 0, "1");
        assert_eq!(outcome(id), "completed NULL");
        invariants_hold();
    }

    #[pg_test]
    fn skip_cascade_after_a_completed_step() {
        flow(
            "f",
            &[
                "'a'",
                "'b', array['a'], required_input_pattern => '{\"a\": 2}', when_unmet => 'skip-cascade'",
                "'c', array['b']",
                "'d', array['a']",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(
            steps(id),
            ["a:completed", "b:skipped", "c:skipped", "d:started"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn two_cascades_skip_their_common_dependent_once() {
        flow(
            "f",
            &[
                &format!("'a', {CASCADE}"),
                &format!("'b', {CASCADE}"),
                "'c', array['a', 'b']",
                "'z'",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(
            steps(id),
            ["a:skipped", "b:skipped", "c:skipped", "z:started"]
        );
        assert_eq!(of_run(id, "remaining_steps"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn a_chain_of_500_steps_is_skipped_by_one_cascade() {
        flow("f", &[&format!("'s0', {CASCADE}")]);
        run("select pgflow.add_step('f', 's' || i, array['s' || i - 1]) from generate_series(1, 499) as i");
        let id = start("f", "{}");
        assert_eq!(
            rows("select skip_reason || count(*) from pgflow.step_states group by skip_reason order by 1"),
            ["condition_unmet1", "dependency_skipped499"]
        );
        assert_eq!(outcome(id), "completed NULL");
        invariants_hold();
    }

    // fail

    #[pg_test]
    fn fail_ends_step_and_run() {
        flow("f", &[&format!("'a', {FAIL}")]);
        let returned = text("select to_jsonb(r) from pgflow.start_flow('f', '{}') r");
        assert_eq!(returned, text("select to_jsonb(r) from pgflow.runs r"));
        assert_eq!(
            text("select format('%s %s %s', status, failed_at >= started_at, output is null) from pgflow.runs"),
            "failed t t"
        );
        assert_eq!(
            text("select format('%s %s %s', status, error_message, failed_at >= created_at) from pgflow.step_states"),
            "failed Condition not met t"
        );
        invariants_hold();
    }

    #[pg_test]
    fn fail_at_the_start_starts_nothing() {
        flow(
            "f",
            &[
                "'z'",
                &format!("'a', {FAIL}"),
                "'m', array['z'], step_type => 'map'",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(steps(id), ["z:created", "a:failed", "m:created"]);
        assert_eq!(of_run(id, "remaining_steps"), "3");
        assert_eq!(tasks(id), NONE);
        assert_eq!(messages("f"), "0/0");
        invariants_hold();
    }

    #[pg_test]
    fn fail_completes_no_taskless_step() {
        flow("f", &["'m', step_type => 'map'", &format!("'a', {FAIL}")]);
        let id = start("f", "[]");
        assert_eq!(steps(id), ["m:created", "a:failed"]);
        invariants_hold();
    }

    #[pg_test]
    fn fail_goes_before_skip_and_skip_cascade() {
        flow(
            "f",
            &[
                &format!("'a', {SKIP}"),
                &format!("'b', {CASCADE}"),
                &format!("'c', {FAIL}"),
                "'d', array['b']",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(
            steps(id),
            ["a:created", "b:created", "c:failed", "d:created"]
        );
        assert_eq!(of_run(id, "status || remaining_steps"), "failed4");
        invariants_hold();
    }

    #[pg_test]
    fn of_two_failing_conditions_the_first_step_fails_alone() {
        flow(
            "f",
            &["'z'", &format!("'b', {FAIL}"), &format!("'a', {FAIL}")],
        );
        let id = start("f", "{}");
        assert_eq!(steps(id), ["z:created", "b:failed", "a:created"]);
        invariants_hold();
    }

    #[pg_test]
    fn skip_goes_before_skip_cascade() {
        record_events();
        flow(
            "f",
            &[&format!("'a', {CASCADE}"), &format!("'b', {SKIP}"), "'z'"],
        );
        start("f", "{}");
        assert_eq!(events()[1..3], ["step:b:skipped", "step:a:skipped"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_skip_can_bring_up_a_condition_that_fails() {
        flow(
            "f",
            &[
                &format!("'a', {SKIP}"),
                &format!("'b', array['a'], {FAIL}"),
                "'z'",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(steps(id), ["a:skipped", "b:failed", "z:created"]);
        assert_eq!(of_run(id, "status"), "failed");
        assert_eq!(messages("f"), "0/0");
        invariants_hold();
    }

    #[pg_test]
    fn an_empty_map_can_bring_up_a_condition_that_fails() {
        flow(
            "f",
            &[
                "'m', step_type => 'map'",
                &format!("'b', array['m'], {FAIL}"),
                "'z'",
            ],
        );
        let id = start("f", "[]");
        assert_eq!(steps(id), ["m:completed", "b:failed", "z:created"]);
        assert_eq!(tasks(id), NONE);
        invariants_hold();
    }

    #[pg_test]
    fn fail_after_a_completion_keeps_the_completed_task() {
        flow(
            "f",
            &[
                "'a'",
                &format!("'b', array['a'], {FAIL}"),
                "'c', array['a']",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        let returned = text(&format!(
            "select to_jsonb(t) from pgflow.complete_task('{id}', 'a', 0, '1') t"
        ));
        assert_eq!(returned, of_task(id, "a", 0, "to_jsonb(step_tasks)"));
        assert_eq!(tasks(id), ["a[0]:completed"]);
        assert_eq!(steps(id), ["a:completed", "b:failed", "c:created"]);
        assert_eq!(of_run(id, "status || remaining_steps"), "failed2");
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn fail_cancels_unfinished_tasks_in_every_queue() {
        flow(
            "f",
            &[
                "'a'",
                &format!("'b', array['a'], {FAIL}"),
                "'c'",
                "'d'",
                "'m', step_type => 'map'",
            ],
        );
        route("f", "c", "second");
        route("f", "m", "third");
        let id = start("f", "[1, 2]");
        claim("f");
        run("select pgflow.start_tasks('f', '{1}', null, 'third')");
        complete(id, "a", 0, "1");
        assert_eq!(
            tasks(id),
            [
                "a[0]:completed",
                "c[0]:cancelled",
                "d[0]:cancelled",
                "m[0]:cancelled",
                "m[1]:cancelled"
            ]
        );
        assert_eq!(
            ["f", "second", "third"].map(messages),
            ["0/2", "0/1", "0/2"]
        );
        assert_eq!(of_step(id, "d", "status"), "started");
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_is_shown_by_start_flow_with_states() {
        flow("f", &[&format!("'a', {FAIL}")]);
        assert_eq!(
            text(
                "select concat_ws(' ', s #>> '{run,status}', s #>> '{steps,0,status}', s #>> '{steps,0,error_message}')
                 from pgflow.start_flow_with_states('f', '{}') s"
            ),
            "failed failed Condition not met"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_skipped_map_s_parent_may_return_anything_afterwards() {
        flow(
            "f",
            &[
                "'a'",
                "'m', array['a'], step_type => 'map', required_input_pattern => '{\"a\": {}}'",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        assert_eq!(complete(id, "a", 0, "[]"), "completed");
        assert_eq!(steps(id), ["a:completed", "m:skipped"]);
        invariants_hold();
    }

    /// Pages that start_flow touches to resolve a chain whose steps are all skipped one after the other.
    fn pages_of_a_skipped_chain(steps: i32, analyzed: bool) -> f64 {
        let slug = format!("chain_{steps}");
        run(&format!(
            "select pgflow.create_flow('{slug}');
             select pgflow.add_step('{slug}', 's' || i, case when i = 1 then '{{}}' else array['s' || (i - 1)] end,
                                    required_input_pattern => '{{\"never\": true}}', when_unmet => 'skip')
             from generate_series(1, {steps}) i"
        ));
        if analyzed {
            run("analyze pgflow.steps, pgflow.deps, pgflow.step_states, pgflow.runs");
        }
        let call = format!("select from pgflow.start_flow('{slug}', '{{}}')");
        run(&call); // plans and catalogs are loaded
        pages_of(&call)
    }

    /// The planner, which knows nothing of how steps hang together, once read all steps of the flow for each skip.
    #[pg_test]
    fn the_cost_of_a_chain_of_conditions_grows_linearly() {
        pages_of_a_skipped_chain(3, true);
        let short = pages_of_a_skipped_chain(100, true);
        let long = pages_of_a_skipped_chain(400, true);
        assert!(
            long < 6.0 * short,
            "{long} pages for 400 steps, {short} for 100"
        );
    }

    #[pg_test]
    fn the_cost_of_a_chain_of_conditions_grows_linearly_before_any_analyze() {
        let short = pages_of_a_skipped_chain(20, false);
        let long = pages_of_a_skipped_chain(80, false);
        // Four to seven times as many, by what other tests have left in the tables; the planner's own way is 55 times.
        assert!(
            long < 12.0 * short,
            "{long} pages for 80 steps, {short} for 20"
        );
    }
}
