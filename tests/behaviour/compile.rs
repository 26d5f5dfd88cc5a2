//! _create_flow_from_shape, ensure_flow_compiled and is_local: the stored flow becomes what a worker's code says.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    const SECRET: &str = "super-secret-jwt-token-with-at-least-32-characters-long";

    fn be_local() {
        run(&format!("set local app.settings.jwt_secret = '{SECRET}'"));
    }

    fn create(slug: &str, shape: &str) {
        run(&format!(
            "select pgflow._create_flow_from_shape('{slug}', '{shape}')"
        ));
    }

    fn compile(slug: &str, shape: &str) -> String {
        text(&format!(
            "select pgflow.ensure_flow_compiled('{slug}', '{shape}')"
        ))
    }

    /// The answer without differences.
    fn plain(status: &str) -> String {
        format!(r#"{{"status": "{status}", "differences": []}}"#)
    }

    /// The answer with differences.
    fn different(status: &str, differences: &[&str]) -> String {
        let quoted: Vec<String> = differences.iter().map(|d| format!("\"{d}\"")).collect();
        format!(
            r#"{{"status": "{status}", "differences": [{}]}}"#,
            quoted.join(", ")
        )
    }

    const NO_PATTERNS: &str = r#""requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": false}"#;

    /// A step as a worker sends it.
    fn step(slug: &str, dependencies: &str) -> String {
        format!(
            r#"{{"slug": "{slug}", "stepType": "single", "dependencies": [{dependencies}], "whenUnmet": "skip",
                 "whenExhausted": "fail", {NO_PATTERNS}}}"#
        )
    }

    fn shape(steps: &[String]) -> String {
        format!("{{\"steps\": [{}]}}", steps.join(", "))
    }

    /// `a`, and `a` -> `b`.
    fn one_step() -> String {
        shape(&[step("a", "")])
    }
    fn two_steps() -> String {
        shape(&[step("a", ""), step("b", "\"a\"")])
    }

    const TWO_VS_ONE: [&str; 2] = [
        "Step count differs: 2 vs 1",
        "Step at index 1: missing in second shape (first has 'b')",
    ];

    /// Rows of the whole definition with where they lie, which changes when a row is only written again.
    fn definition() -> Vec<String> {
        rows(
            "select (f.ctid, f)::text from pgflow.flows f
             union all (select (s.ctid, s)::text from pgflow.steps s order by s.flow_slug, s.step_index)
             union all (select (d.ctid, d)::text from pgflow.deps d order by d)",
        )
    }

    const STEPS: &str = "select step_slug from pgflow.steps order by flow_slug, step_index";
    const QUEUES: &str = "select queue_name from pgmq.list_queues() order by 1";

    // _create_flow_from_shape.

    #[pg_test]
    fn what_a_shape_does_not_say_is_the_default() {
        create("f", r#"{"steps": [{"slug": "a"}]}"#);
        assert_eq!(
            text("select format('%s %s %s', opt_max_attempts, opt_base_delay, opt_timeout) from pgflow.flows"),
            "3 5 60"
        );
        assert_eq!(
            text("select to_jsonb(s) - 'created_at' from pgflow.steps s"),
            text(
                "select jsonb_build_object(
                   'flow_slug', 'f', 'step_slug', 'a', 'step_type', 'single', 'step_index', 0, 'deps_count', 0,
                   'opt_max_attempts', null, 'opt_base_delay', null, 'opt_timeout', null, 'opt_start_delay', null,
                   'required_input_pattern', null, 'forbidden_input_pattern', null,
                   'when_unmet', 'skip', 'when_exhausted', 'fail', 'queue_name', 'f')"
            )
        );
        assert_eq!(rows("select step_slug from pgflow.deps"), NONE);
    }

    #[pg_test]
    fn all_that_a_shape_says_is_stored() {
        create(
            "OrderFlow",
            r#"{"options": {"maxAttempts": 7, "baseDelay": 8, "timeout": 9},
                "steps": [{"slug": "a"},
                          {"slug": "b", "stepType": "map", "dependencies": ["a"], "whenUnmet": "skip-cascade",
                           "whenExhausted": "skip",
                           "requiredInputPattern": {"defined": true, "value": {"x": 1}},
                           "forbiddenInputPattern": {"defined": true, "value": {"y": 2}},
                           "options": {"maxAttempts": 1, "baseDelay": 2, "timeout": 3, "startDelay": 4}}]}"#,
        );
        assert_eq!(
            text("select format('%s %s %s %s', flow_slug, opt_max_attempts, opt_base_delay, opt_timeout) from pgflow.flows"),
            "OrderFlow 7 8 9"
        );
        assert_eq!(
            text("select to_jsonb(s) - 'created_at' from pgflow.steps s where step_slug = 'b'"),
            text(
                "select jsonb_build_object(
                   'flow_slug', 'OrderFlow', 'step_slug', 'b', 'step_type', 'map', 'step_index', 1, 'deps_count', 1,
                   'opt_max_attempts', 1, 'opt_base_delay', 2, 'opt_timeout', 3, 'opt_start_delay', 4,
                   'required_input_pattern', '{\"x\": 1}'::jsonb, 'forbidden_input_pattern', '{\"y\": 2}'::jsonb,
                   'when_unmet', 'skip-cascade', 'when_exhausted', 'skip', 'queue_name', 'orderflow')"
            )
        );
        assert_eq!(
            rows("select dep_slug || '>' || step_slug from pgflow.deps"),
            ["a>b"]
        );
        assert_eq!(rows(QUEUES), ["orderflow"]);
    }

    #[pg_test]
    fn a_shape_without_steps_makes_a_flow_with_a_queue() {
        create("f", r#"{"steps": [], "options": {"timeout": 9}}"#);
        assert_eq!(rows("select opt_timeout from pgflow.flows"), ["9"]);
        assert_eq!(rows(STEPS), NONE);
        assert_eq!(rows(QUEUES), ["f"]);
    }

    #[pg_test]
    fn steps_of_a_shape_are_numbered_in_its_order() {
        create(
            "f",
            &shape(&[step("z", ""), step("a", "\"z\""), step("m", "\"a\", \"z\"")]),
        );
        assert_eq!(
            rows("select step_slug || step_index from pgflow.steps order by step_index"),
            ["z0", "a1", "m2"]
        );
    }

    #[pg_test]
    fn a_flow_made_from_a_stored_shape_has_that_shape() {
        flow(
            "f",
            &[
                "'a', when_unmet => 'fail', required_input_pattern => '{\"n\": [12345678901234567890.123456789, 1e400, 1.10]}'",
                "'b', array['a'], step_type => 'map', when_exhausted => 'skip', forbidden_input_pattern => '{}'",
                "'c', array['b', 'a'], when_unmet => 'skip-cascade', when_exhausted => 'skip-cascade'",
            ],
        );
        run("select pgflow._create_flow_from_shape(p_flow_slug => 'g', p_shape => pgflow._get_flow_shape('f'))");
        assert_eq!(
            text("select pgflow._get_flow_shape('g')"),
            text("select pgflow._get_flow_shape('f')")
        );
        assert_eq!(
            rows("select required_input_pattern from pgflow.steps where step_slug = 'a'").len(),
            2
        );
        assert_eq!(
            text("select count(distinct required_input_pattern::text) from pgflow.steps where step_slug = 'a'"),
            "1"
        );
    }

    #[pg_test]
    fn a_shape_that_fails_halfway_leaves_nothing() {
        for (steps, code) in [
            (
                vec![step("a", ""), step("b", "\"c\""), step("c", "")],
                "23503",
            ),
            (vec![step("a", ""), step("b", "\"b\"")], "23514"),
            (vec![step("a", ""), step("not valid", "")], "23514"),
            (
                vec![step("a", ""), step("b", "").replace("fail", "never")],
                "23514",
            ),
            (
                vec![
                    step("a", ""),
                    step("b", ""),
                    step("c", "\"a\", \"b\"").replace("single", "map"),
                ],
                "22023",
            ),
            (
                vec![step("a", "").replace("\"slug\"", "\"options\": {\"timeout\": 0}, \"slug\"")],
                "23514",
            ),
        ] {
            for call in ["_create_flow_from_shape", "ensure_flow_compiled"] {
                let call = format!("select pgflow.{call}('f', '{}')", shape(&steps));
                assert_eq!(failure(&call).code, code, "{call}");
                assert_eq!(definition(), NONE);
                assert_eq!(rows(QUEUES), NONE);
            }
        }
    }

    #[pg_test]
    fn a_defined_pattern_needs_an_object_as_its_value() {
        for pattern in [
            r#"{"defined": true}"#,
            r#"{"defined": true, "value": null}"#,
            r#"{"defined": true, "value": [1]}"#,
        ] {
            failure(&format!(
                r#"select pgflow._create_flow_from_shape('f', '{{"steps": [{{"slug": "a", "requiredInputPattern": {pattern}}}]}}')"#
            ));
            assert_eq!(definition(), NONE, "{pattern}");
        }
    }

    #[pg_test]
    fn a_step_without_a_slug_makes_no_flow() {
        failure(
            r#"select pgflow._create_flow_from_shape('f', '{"steps": [{"stepType": "single"}]}')"#,
        );
        assert_eq!(definition(), NONE);
        assert_eq!(rows(QUEUES), NONE);
    }

    // ensure_flow_compiled: the flow is absent, or equal.

    #[pg_test]
    fn an_absent_flow_is_compiled() {
        assert_eq!(compile("f", &two_steps()), plain("compiled"));
        assert_eq!(rows(STEPS), ["a", "b"]);
        assert_eq!(rows(QUEUES), ["f"]);
    }

    #[pg_test]
    fn an_absent_flow_is_compiled_locally_too() {
        be_local();
        assert_eq!(compile("f", &two_steps()), plain("compiled"));
        assert_eq!(rows(STEPS), ["a", "b"]);
    }

    #[pg_test]
    fn compilation_takes_its_arguments_by_name() {
        assert_eq!(
            text(&format!(
                "select pgflow.ensure_flow_compiled(shape => '{}', flow_slug => 'f')",
                one_step()
            )),
            plain("compiled")
        );
    }

    #[pg_test]
    fn a_compiled_flow_runs() {
        let condition = r#"{"defined": true, "value": {"big": true}}"#;
        compile(
            "f",
            &shape(&[
                step("a", ""),
                step("b", "").replacen("{\"defined\": false}", condition, 1),
                step("c", "\"a\", \"b\""),
            ]),
        );
        let id = start("f", "{\"big\": false}");
        claim("f");
        complete(id, "a", 0, "1");
        claim("f");
        complete(id, "c", 0, "2");
        assert_eq!(steps(id), ["a:completed", "b:skipped", "c:completed"]);
        assert_eq!(outcome(id), "completed {\"c\": 2}");
        invariants_hold();
    }

    #[pg_test]
    fn an_equal_flow_is_verified_and_not_touched() {
        for local in [false, true] {
            if local {
                be_local();
            }
            compile("f", &two_steps());
            let id = start("f", "{}");
            let before = (definition(), snapshot(id), messages("f"));
            assert_eq!(compile("f", &two_steps()), plain("verified"));
            assert_eq!((definition(), snapshot(id), messages("f")), before);
        }
        invariants_hold();
    }

    #[pg_test]
    fn a_flow_defined_step_by_step_is_verified() {
        flow("f", &["'a'", "'b', array['a']"]);
        assert_eq!(compile("f", &two_steps()), plain("verified"));
    }

    #[pg_test]
    fn a_flow_routed_elsewhere_is_verified() {
        be_local();
        compile("f", &two_steps());
        route("f", "b", "elsewhere");
        let before = definition();
        assert_eq!(compile("f", &two_steps()), plain("verified"));
        assert_eq!(definition(), before);
    }

    #[pg_test]
    fn other_options_are_verified_and_ignored() {
        let with_options = |n: i32| {
            format!(
                r#"{{"options": {{"maxAttempts": {n}, "baseDelay": {n}, "timeout": {n}}}, "steps": [{}]}}"#,
                step("a", "").replace(
                    "\"slug\"",
                    &format!("\"options\": {{\"timeout\": {n}}}, \"slug\"")
                )
            )
        };
        be_local();
        compile("f", &with_options(7));
        let before = definition();
        assert_eq!(compile("f", &with_options(8)), plain("verified"));
        assert_eq!(compile("f", &one_step()), plain("verified"));
        assert_eq!(definition(), before);
    }

    #[pg_test]
    fn a_flow_without_steps_is_compiled_and_verified() {
        assert_eq!(compile("f", r#"{"steps": []}"#), plain("compiled"));
        assert_eq!(rows(QUEUES), ["f"]);
        assert_eq!(compile("f", r#"{"steps": []}"#), plain("verified"));
    }

    #[pg_test]
    fn every_stored_shape_is_verified() {
        flow(
            "f",
            &[
                "'a', when_unmet => 'fail', required_input_pattern => '{\"n\": [12345678901234567890.123456789, 1e400, 1.10]}'",
                "'B', array['a'], step_type => 'map', when_exhausted => 'skip', forbidden_input_pattern => '{}'",
                "'_c', array['B', 'a'], when_unmet => 'skip-cascade', when_exhausted => 'skip-cascade'",
            ],
        );
        assert_eq!(
            text("select pgflow.ensure_flow_compiled('f', pgflow._get_flow_shape('f'))"),
            plain("verified")
        );
    }

    #[pg_test]
    fn a_shape_that_names_a_step_twice_is_refused() {
        let twice = shape(&[step("a", ""), step("b", ""), step("a", "")]);
        let refusal = failure(&format!(
            "select pgflow.ensure_flow_compiled('f', '{twice}')"
        ));
        assert_eq!(refusal.code, "22023");
        assert!(refusal.detail.contains("\"a\" twice"), "{refusal:?}");
        assert_eq!(rows("select flow_slug from pgflow.flows"), NONE);
    }

    #[pg_test]
    fn a_dependency_named_twice_is_compiled_and_verified() {
        let twice = shape(&[step("a", ""), step("b", "\"a\", \"a\"")]);
        assert_eq!(compile("f", &twice), plain("compiled"));
        assert_eq!(
            rows("select deps_count from pgflow.steps order by 1"),
            ["0", "1"]
        );
        assert_eq!(compile("f", &twice), plain("verified"));
        assert_eq!(compile("f", &two_steps()), plain("verified"));
    }

    #[pg_test]
    fn a_hundred_steps_are_compiled_and_verified() {
        let steps: Vec<String> = (0..100)
            .map(|n| match n {
                0 => step("s0", ""),
                n => step(&format!("s{n}"), &format!("\"s{}\"", n - 1)),
            })
            .collect();
        assert_eq!(compile("f", &shape(&steps)), plain("compiled"));
        assert_eq!(compile("f", &shape(&steps)), plain("verified"));
        assert_eq!(text("select count(*) from pgflow.deps"), "99");
    }

    // ensure_flow_compiled: the flow is different.

    #[pg_test]
    fn a_different_flow_is_a_mismatch_and_not_touched() {
        compile("f", &one_step());
        let id = start("f", "{}");
        let before = (definition(), snapshot(id), messages("f"));
        assert_eq!(
            compile("f", &two_steps()),
            different("mismatch", &TWO_VS_ONE)
        );
        assert_eq!((definition(), snapshot(id), messages("f")), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_mismatch_names_the_given_shape_first() {
        compile("f", &shape(&[step("stored", "")]));
        assert_eq!(
            compile("f", &shape(&[step("given", "")])),
            different(
                "mismatch",
                &["Step at index 0: slug differs 'given' vs 'stored'"]
            )
        );
    }

    #[pg_test]
    fn another_number_in_a_pattern_is_a_mismatch() {
        let with = |number: &str| {
            shape(&[step("a", "").replacen(
                "{\"defined\": false}",
                &format!("{{\"defined\": true, \"value\": {{\"n\": {number}}}}}"),
                1,
            )])
        };
        compile("f", &with("12345678901234567890.123456789"));
        assert_eq!(
            compile("f", &with("12345678901234567890.123456789")),
            plain("verified")
        );
        assert_eq!(
            text(&format!(
                "select pgflow.ensure_flow_compiled('f', '{}') ->> 'status'",
                with("12345678901234567890.123456788")
            )),
            "mismatch"
        );
    }

    #[pg_test]
    fn a_different_flow_is_recompiled_locally() {
        be_local();
        compile(
            "f",
            &format!(
                r#"{{"options": {{"timeout": 7}}, "steps": [{}]}}"#,
                step("a", "")
            ),
        );
        assert_eq!(
            compile("f", &two_steps()),
            different("recompiled", &TWO_VS_ONE)
        );
        assert_eq!(rows(STEPS), ["a", "b"]);
        assert_eq!(rows("select opt_timeout from pgflow.flows"), ["60"]);
        assert_eq!(compile("f", &two_steps()), plain("verified"));
    }

    #[pg_test]
    fn recompilation_deletes_what_ran_of_the_flow() {
        be_local();
        compile("f", &one_step());
        let old = start("f", "{}");
        start("f", "{}");
        claim("f");
        complete(old, "a", 0, "1");
        compile("f", &two_steps());
        assert_eq!(rows("select run_id from pgflow.runs"), NONE);
        assert_eq!(rows("select run_id from pgflow.step_tasks"), NONE);
        assert_eq!(messages("f"), "0/0");
        assert_eq!(complete(old, "a", 0, "1"), "no task");
        let new = start("f", "{}");
        assert_eq!(claim("f"), ["a[0] {}"]);
        assert_eq!(tasks(new), ["a[0]:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn recompilation_drops_the_queues_of_old_routes() {
        be_local();
        compile("f", &two_steps());
        route("f", "b", "elsewhere");
        compile("f", &one_step());
        assert_eq!(rows(QUEUES), ["f"]);
        assert_eq!(rows("select queue_name from pgflow.steps"), ["f"]);
    }

    #[pg_test]
    fn recompilation_leaves_other_flows_alone() {
        be_local();
        compile("f", &one_step());
        compile("g", &one_step());
        let other = start("g", "{}");
        claim("g");
        let before = (snapshot(other), messages("g"));
        compile("f", &two_steps());
        assert_eq!((snapshot(other), messages("g")), before);
        assert_eq!(rows(STEPS), ["a", "b", "a"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_recompilation_that_fails_leaves_the_old_flow() {
        be_local();
        compile("f", &two_steps());
        let id = start("f", "{}");
        let before = (definition(), snapshot(id), messages("f"));
        let bad = shape(&[step("a", ""), step("b", "\"nope\"")]);
        assert_eq!(
            failure(&format!("select pgflow.ensure_flow_compiled('f', '{bad}')")).code,
            "23503"
        );
        assert_eq!((definition(), snapshot(id), messages("f")), before);
        invariants_hold();
    }

    // ensure_flow_compiled: names, locks.

    #[pg_test]
    fn compiling_a_flow_that_differs_in_case_only_is_refused() {
        compile("OrderFlow", &one_step());
        let before = definition();
        for local in [false, true] {
            if local {
                be_local();
            }
            for slug in ["orderflow", "ORDERFLOW"] {
                for call in ["_create_flow_from_shape", "ensure_flow_compiled"] {
                    let call = format!("select pgflow.{call}('{slug}', '{}')", two_steps());
                    assert_eq!(failure(&call).code, "23505", "{call}");
                }
            }
        }
        assert_eq!(definition(), before);
        assert_eq!(rows(QUEUES), ["orderflow"]);
        assert_eq!(compile("OrderFlow", &one_step()), plain("verified"));
    }

    #[pg_test]
    fn compiling_a_new_flow_whose_queue_is_listed_is_refused() {
        run("select pgmq.create('Taken')");
        be_local();
        assert_eq!(
            failure(&format!(
                "select pgflow.ensure_flow_compiled('taken', '{}')",
                one_step()
            ))
            .code,
            "23505"
        );
        assert_eq!(definition(), NONE);
        assert_eq!(rows(QUEUES), ["Taken"]);
    }

    #[pg_test]
    fn compilation_locks_the_normalized_slug_whatever_it_finds() {
        let locks = || {
            text(
                "select count(*) from pg_locks
                 where locktype = 'advisory' and pid = pg_backend_pid() and granted and objsubid = 2
                   and classid = 1 and objid = (hashtext('orderflow')::bigint & 4294967295)::oid",
            )
        };
        run("insert into pgflow.flows (flow_slug) values ('OrderFlow')");
        assert_eq!(locks(), "0");
        assert_eq!(compile("OrderFlow", r#"{"steps": []}"#), plain("verified"));
        assert_eq!(locks(), "1");
    }

    // is_local.

    #[pg_test]
    fn a_database_with_supabase_s_public_secret_is_local() {
        be_local();
        assert_eq!(text("select pgflow.is_local()"), "true");
    }

    #[pg_test]
    fn a_database_with_another_secret_or_none_is_not_local() {
        assert_eq!(text("select pgflow.is_local()"), "false");
        for other in [
            "",
            &SECRET[1..],
            &SECRET[..SECRET.len() - 1],
            &format!("{SECRET} "),
            &SECRET.to_uppercase(),
        ] {
            run(&format!("set local app.settings.jwt_secret = '{other}'"));
            assert_eq!(text("select pgflow.is_local()"), "false", "{other}");
        }
        be_local();
        run("reset app.settings.jwt_secret");
        assert_eq!(text("select pgflow.is_local()"), "false");
    }
}
