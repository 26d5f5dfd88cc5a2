//! _get_flow_shape and _compare_flow_shapes: a flow's definition as one value, and how two of them differ.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    /// The stored flow's shape and the expected one, both as PostgreSQL writes a jsonb.
    fn shape_is(slug: &str, expected: &str) {
        assert_eq!(
            text(&format!("select pgflow._get_flow_shape('{slug}')")),
            text(&format!("select '{expected}'::jsonb"))
        );
    }

    fn differences(local: &str, db: &str) -> Vec<String> {
        rows(&format!(
            "select unnest(pgflow._compare_flow_shapes('{local}', '{db}'))"
        ))
    }

    /// Differences of two shapes with one step each, given by its keys.
    fn step_differences(local: &str, db: &str) -> Vec<String> {
        differences(
            &format!("{{\"steps\": [{{{local}}}]}}"),
            &format!("{{\"steps\": [{{{db}}}]}}"),
        )
    }

    /// Differences of two shapes whose step has this required pattern.
    fn value_differences(local: &str, db: &str) -> usize {
        let step = |value: &str| {
            format!(
                r#""requiredInputPattern": {{"defined": true, "value": {value}}}, "forbiddenInputPattern": {{"defined": false}}"#
            )
        };
        step_differences(&step(local), &step(db)).len()
    }

    // _get_flow_shape.

    #[pg_test]
    fn a_flow_s_shape_says_all_about_its_steps_but_no_options() {
        run("select pgflow.create_flow('f', 7, 8, 9)");
        run("select pgflow.add_step('f', 'a', max_attempts => 1, base_delay => 2, timeout => 3, start_delay => 4)");
        run(
            r#"select pgflow.add_step('f', 'b', array['a'], step_type => 'map', required_input_pattern => '{"a": [1]}',
                 forbidden_input_pattern => '{"b": {"c": null}}', when_unmet => 'fail',
                 when_exhausted => 'skip-cascade')"#,
        );
        shape_is(
            "f",
            r#"{"steps": [
                 {"slug": "a", "stepType": "single", "dependencies": [], "whenUnmet": "skip", "whenExhausted": "fail",
                  "requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": false}},
                 {"slug": "b", "stepType": "map", "dependencies": ["a"], "whenUnmet": "fail",
                  "whenExhausted": "skip-cascade",
                  "requiredInputPattern": {"defined": true, "value": {"a": [1]}},
                  "forbiddenInputPattern": {"defined": true, "value": {"b": {"c": null}}}}]}"#,
        );
    }

    #[pg_test]
    fn the_shape_of_an_unknown_flow_has_no_steps() {
        flow("f", &["'a'"]);
        shape_is("nope", r#"{"steps": []}"#);
        shape_is("F", r#"{"steps": []}"#);
    }

    #[pg_test]
    fn the_shape_of_a_flow_without_steps_has_no_steps() {
        flow("f", &[]);
        shape_is("f", r#"{"steps": []}"#);
    }

    #[pg_test]
    fn a_shape_lists_steps_by_step_index() {
        flow("f", &["'z'", "'a'", "'m'"]);
        assert_eq!(
            rows("select s ->> 'slug' from jsonb_array_elements(pgflow._get_flow_shape('f') -> 'steps') s"),
            ["z", "a", "m"]
        );
        run("update pgflow.steps set step_index = 9 where step_slug = 'z'");
        assert_eq!(
            rows("select s ->> 'slug' from jsonb_array_elements(pgflow._get_flow_shape('f') -> 'steps') s"),
            ["a", "m", "z"]
        );
    }

    #[pg_test]
    fn a_shape_lists_dependencies_sorted() {
        flow("f", &["'c'", "'a'", "'b'", "'d', array['b', 'c', 'a']"]);
        assert_eq!(
            text("select pgflow._get_flow_shape('f') #> '{steps,3,dependencies}'"),
            r#"["a", "b", "c"]"#
        );
    }

    #[pg_test]
    fn a_shape_has_the_steps_of_its_own_flow_only() {
        flow("f", &["'a'", "'b', array['a']"]);
        flow("g", &["'a'", "'c'", "'b', array['a', 'c']"]);
        assert_eq!(
            text("select pgflow._get_flow_shape(p_flow_slug => 'f') #> '{steps,1,dependencies}'"),
            r#"["a"]"#
        );
        assert_eq!(
            text("select jsonb_array_length(pgflow._get_flow_shape('f') -> 'steps')"),
            "2"
        );
    }

    #[pg_test]
    fn patterns_stand_in_the_shape_exactly_as_they_are_stored() {
        let pattern = r#"{"": "", "n": [12345678901234567890.123456789, 1e400, 1.10, -0.0, 9007199254740993]}"#;
        run("select pgflow.create_flow('f')");
        run(&format!(
            "select pgflow.add_step('f', 'a', required_input_pattern => '{pattern}', forbidden_input_pattern => '{{}}')"
        ));
        assert_eq!(
            text("select pgflow._get_flow_shape('f') #> '{steps,0,requiredInputPattern}'"),
            text(&format!(
                r#"select '{{"defined": true, "value": {pattern}}}'::jsonb"#
            ))
        );
        assert_eq!(
            text("select pgflow._get_flow_shape('f') #> '{steps,0,forbiddenInputPattern}'"),
            r#"{"value": {}, "defined": true}"#
        );
    }

    // _compare_flow_shapes.

    #[pg_test]
    fn equal_shapes_have_an_empty_array_of_differences() {
        for shape in [
            r#"{"steps": []}"#,
            r#"{"steps": [{"slug": "a"}, {"slug": "b", "dependencies": ["a"]}]}"#,
        ] {
            assert_eq!(
                text(&format!(
                    "select pgflow._compare_flow_shapes('{shape}', '{shape}')"
                )),
                "{}"
            );
        }
    }

    #[pg_test]
    fn a_stored_flow_s_shape_is_equal_to_itself() {
        flow(
            "f",
            &[
                "'a', when_unmet => 'fail', required_input_pattern => '{\"a\": 1.10}'",
                "'b', array['a'], step_type => 'map', when_exhausted => 'skip'",
            ],
        );
        assert_eq!(
            text(
                "select pgflow._compare_flow_shapes(p_local => pgflow._get_flow_shape('f'),
                                                      p_db => pgflow._get_flow_shape('f'))"
            ),
            "{}"
        );
    }

    #[pg_test]
    fn steps_that_one_side_lacks_are_counted_and_named() {
        let two = r#"{"steps": [{"slug": "a"}, {"slug": "b"}]}"#;
        let four = r#"{"steps": [{"slug": "a"}, {"slug": "b"}, {"slug": "c"}, {"slug": "d"}]}"#;
        assert_eq!(
            differences(two, four),
            [
                "Step count differs: 2 vs 4",
                "Step at index 2: missing in first shape (second has 'c')",
                "Step at index 3: missing in first shape (second has 'd')",
            ]
        );
        assert_eq!(
            differences(four, two),
            [
                "Step count differs: 4 vs 2",
                "Step at index 2: missing in second shape (first has 'c')",
                "Step at index 3: missing in second shape (first has 'd')",
            ]
        );
        assert_eq!(
            differences(r#"{"steps": []}"#, r#"{"steps": [{"slug": "b"}]}"#),
            [
                "Step count differs: 0 vs 1",
                "Step at index 0: missing in first shape (second has 'b')",
            ]
        );
    }

    #[pg_test]
    fn words_of_a_step_that_differ_are_quoted() {
        for (key, name, first, second) in [
            ("slug", "slug", "a", "b"),
            ("slug", "slug", "a", "A"),
            ("stepType", "type", "single", "map"),
            ("whenUnmet", "whenUnmet", "skip", "skip-cascade"),
            ("whenExhausted", "whenExhausted", "fail", "skip"),
        ] {
            assert_eq!(
                step_differences(
                    &format!("\"{key}\": \"{first}\""),
                    &format!("\"{key}\": \"{second}\"")
                ),
                [format!(
                    "Step at index 0: {name} differs '{first}' vs '{second}'"
                )]
            );
        }
    }

    #[pg_test]
    fn a_word_that_one_side_does_not_say_does_not_differ() {
        for key in ["slug", "stepType", "whenUnmet", "whenExhausted"] {
            let said = format!("\"{key}\": \"map\"");
            assert_eq!(step_differences(&said, ""), NONE);
            assert_eq!(step_differences("", &said), NONE);
        }
    }

    #[pg_test]
    fn dependencies_are_compared_and_printed_sorted() {
        assert_eq!(
            step_differences(
                r#""dependencies": ["c", "a", "b"]"#,
                r#""dependencies": ["b", "d"]"#
            ),
            ["Step at index 0: dependencies differ [a, b, c] vs [b, d]"]
        );
        assert_eq!(
            step_differences(
                r#""dependencies": ["b", "a"]"#,
                r#""dependencies": ["a", "b"]"#
            ),
            NONE
        );
    }

    #[pg_test]
    fn missing_dependencies_are_an_empty_list() {
        assert_eq!(step_differences("", r#""dependencies": []"#), NONE);
        assert_eq!(
            step_differences("", r#""dependencies": ["a"]"#),
            ["Step at index 0: dependencies differ [] vs [a]"]
        );
        assert_eq!(
            step_differences(r#""dependencies": ["a", "b"]"#, ""),
            ["Step at index 0: dependencies differ [a, b] vs []"]
        );
    }

    #[pg_test]
    fn a_pattern_that_one_side_lacks_differs_and_is_printed_empty() {
        for name in ["requiredInputPattern", "forbiddenInputPattern"] {
            let absent = format!(r#""{name}": {{"defined": false}}"#);
            assert_eq!(
                step_differences("", &absent),
                [format!(
                    r#"Step at index 0: {name} differs '' vs '{{"defined": false}}'"#
                )]
            );
            assert_eq!(
                step_differences(&absent, ""),
                [format!(
                    r#"Step at index 0: {name} differs '{{"defined": false}}' vs ''"#
                )]
            );
            assert_eq!(step_differences(&absent, &absent), NONE);
        }
    }

    #[pg_test]
    fn a_pattern_that_differs_is_printed_whole_as_jsonb() {
        for name in ["requiredInputPattern", "forbiddenInputPattern"] {
            assert_eq!(
                step_differences(
                    &format!(
                        r#""{name}": {{"defined": true, "value": {{"b":[1.10,null],"a":1}}}}"#
                    ),
                    &format!(r#""{name}": {{"defined": false}}"#)
                ),
                [format!(
                    r#"Step at index 0: {name} differs '{{"value": {{"a": 1, "b": [1.10, null]}}, "defined": true}}' vs '{{"defined": false}}'"#
                )]
            );
        }
    }

    #[pg_test]
    fn patterns_are_compared_whole() {
        for (first, second) in [
            (r#"{"a": {"b": [1, 2]}}"#, r#"{"a": {"b": [2, 1]}}"#),
            (r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#),
            (r#"{"a": 1}"#, r#"{"a": "1"}"#),
            (r#"{"a": null}"#, "{}"),
            (r#"{"a": {}}"#, r#"{"a": []}"#),
            (r#"{"a": [1]}"#, r#"{"a": [1, 1]}"#),
            (r#"{"a": "x"}"#, r#"{"a": "x "}"#),
            (r#"{"a": false}"#, r#"{"a": null}"#),
        ] {
            assert_eq!(value_differences(first, second), 1, "{first} {second}");
            assert_eq!(value_differences(second, first), 1, "{first} {second}");
        }
    }

    #[pg_test]
    fn patterns_that_are_equal_as_jsonb_do_not_differ() {
        for (first, second) in [
            (r#"{"a": 1, "bb": [2]}"#, r#"{ "bb":[2],"a":1 }"#),
            (r#"{"a": "\u00e9"}"#, r#"{"a": "é"}"#),
            (r#"{"a": 1.10}"#, r#"{"a": 1.1}"#),
            (r#"{"a": [1e400, 1.0]}"#, r#"{"a": [1e400, 1]}"#),
            (r#"{"a": -0.0}"#, r#"{"a": 0}"#),
            (r#"{"a": 100e-2}"#, r#"{"a": 1}"#),
        ] {
            assert_eq!(value_differences(first, second), 0, "{first} {second}");
        }
    }

    #[pg_test]
    fn numbers_of_patterns_are_compared_to_their_last_digit() {
        for (first, second) in [
            (
                "12345678901234567890.123456789",
                "12345678901234567890.123456788",
            ),
            ("9007199254740993", "9007199254740992"),
            ("1e400", "1e401"),
            ("1e-400", "1e-401"),
            ("0.1", "0.10000000000000000001"),
            ("10", "1"),
        ] {
            let (first, second) = (
                format!("{{\"a\": {first}}}"),
                format!("{{\"a\": {second}}}"),
            );
            assert_eq!(value_differences(&first, &second), 1, "{first} {second}");
        }
    }

    #[pg_test]
    fn a_pattern_with_a_json_library_s_own_key_is_a_pattern() {
        let keyed = |key: &str, value: &str| format!("{{\"a\": {{\"{key}\": \"{value}\"}}}}");
        for key in [
            "$serde_json::private::Number",
            "$serde_json::private::RawValue",
        ] {
            assert_eq!(
                value_differences(&keyed(key, "1.0"), &keyed(key, "1.00")),
                1,
                "{key}"
            );
            assert_eq!(
                value_differences(&keyed(key, "x"), &keyed(key, "x")),
                0,
                "{key}"
            );
        }
        assert_eq!(
            value_differences(&keyed("$serde_json::private::Number", "1"), r#"{"a": 1}"#),
            1
        );
    }

    #[pg_test]
    fn deep_patterns_are_compared_like_flat_ones() {
        let deep = |inmost: &str| format!("{}{inmost}{}", "{\"a\":".repeat(300), "}".repeat(300));
        assert_eq!(value_differences(&deep("1"), &deep("1")), 0);
        assert_eq!(value_differences(&deep("1"), &deep("2")), 1);
        assert_eq!(value_differences(&deep("1.10"), &deep("1.1")), 0);
    }

    #[pg_test]
    fn options_never_differ() {
        assert_eq!(
            differences(
                r#"{"steps": [{"slug": "a", "options": {"maxAttempts": 1, "baseDelay": 2, "timeout": 3, "startDelay": 4}}],
                    "options": {"maxAttempts": 1, "baseDelay": 2, "timeout": 3}}"#,
                r#"{"steps": [{"slug": "a", "options": {"maxAttempts": 9}}], "options": {"timeout": 9}}"#
            ),
            NONE
        );
        assert_eq!(
            differences(
                r#"{"steps": [{"slug": "a", "options": {"startDelay": 4}}], "options": {"maxAttempts": 1}}"#,
                r#"{"steps": [{"slug": "a"}]}"#
            ),
            NONE
        );
    }

    #[pg_test]
    fn differences_come_by_count_then_step_then_key() {
        let none = r#"{"defined": false}"#;
        let some = r#"{"value": {"x": 1}, "defined": true}"#;
        assert_eq!(
            differences(
                &format!(
                    r#"{{"steps": [
                         {{"forbiddenInputPattern": {none}, "requiredInputPattern": {none}, "whenExhausted": "fail",
                           "whenUnmet": "skip", "dependencies": ["y"], "stepType": "single", "slug": "a"}},
                         {{"slug": "b", "whenUnmet": "fail"}},
                         {{"slug": "c"}}]}}"#
                ),
                &format!(
                    r#"{{"steps": [
                         {{"slug": "z", "stepType": "map", "dependencies": ["y", "x"], "whenUnmet": "fail",
                           "whenExhausted": "skip", "requiredInputPattern": {some}, "forbiddenInputPattern": {some}}},
                         {{"slug": "b", "whenUnmet": "skip"}}]}}"#
                )
            ),
            [
                "Step count differs: 3 vs 2".to_string(),
                "Step at index 0: slug differs 'a' vs 'z'".into(),
                "Step at index 0: type differs 'single' vs 'map'".into(),
                "Step at index 0: dependencies differ [y] vs [x, y]".into(),
                "Step at index 0: whenUnmet differs 'skip' vs 'fail'".into(),
                "Step at index 0: whenExhausted differs 'fail' vs 'skip'".into(),
                format!("Step at index 0: requiredInputPattern differs '{none}' vs '{some}'"),
                format!("Step at index 0: forbiddenInputPattern differs '{none}' vs '{some}'"),
                "Step at index 1: whenUnmet differs 'fail' vs 'skip'".into(),
                "Step at index 2: missing in second shape (first has 'c')".into(),
            ]
        );
    }

    // What is no shape.

    /// Values that are JSON and no shape.
    const MALFORMED: [&str; 26] = [
        "null",
        "1",
        "\"x\"",
        "[]",
        "[[]]",
        "[[], null]",
        "[[{\"slug\": \"a\"}], {}]",
        r#"{"steps": {}}"#,
        r#"{"steps": "a"}"#,
        r#"{"steps": [1]}"#,
        r#"{"steps": ["a"]}"#,
        r#"{"steps": [null]}"#,
        r#"{"steps": [[]]}"#,
        r#"{"steps": [["a", "single", [], "skip", "fail", null, null, null]]}"#,
        r#"{"steps": [{"slug": 1}]}"#,
        r#"{"steps": [{"slug": "a", "stepType": ["map"]}]}"#,
        r#"{"steps": [{"slug": "a", "dependencies": "b"}]}"#,
        r#"{"steps": [{"slug": "a", "dependencies": [1]}]}"#,
        r#"{"steps": [{"slug": "a", "whenUnmet": 1}]}"#,
        r#"{"steps": [{"slug": "a", "whenExhausted": {}}]}"#,
        r#"{"steps": [{"slug": "a", "options": [1, 2, 3, 4]}]}"#,
        r#"{"steps": [{"slug": "a", "options": {"timeout": "3"}}]}"#,
        r#"{"steps": [{"slug": "a", "options": {"timeout": 1.5}}]}"#,
        r#"{"steps": [{"slug": "a", "options": {"timeout": 3000000000}}]}"#,
        r#"{"steps": [], "options": 1}"#,
        r#"{"steps": [], "options": {"maxAttempts": "3"}}"#,
    ];

    /// Patterns that are neither `{"defined": false}` nor `{"defined": true, "value": {...}}`.
    const MALFORMED_PATTERNS: [&str; 6] = [
        "1",
        "{}",
        r#"{"value": {"a": 1}}"#,
        r#"{"defined": "true", "value": {}}"#,
        r#"{"defined": false, "value": {"a": 1}}"#,
        r#"[true, {"a": 1}]"#,
    ];

    fn malformed() -> Vec<String> {
        let patterns = ["requiredInputPattern", "forbiddenInputPattern"]
            .into_iter()
            .flat_map(|name| {
                MALFORMED_PATTERNS.map(|pattern| {
                    format!(r#"{{"steps": [{{"slug": "a", "{name}": {pattern}}}]}}"#)
                })
            });
        MALFORMED
            .map(String::from)
            .into_iter()
            .chain(patterns)
            .collect()
    }

    /// The malformed shapes that a call takes for shapes, or refuses with another code than 22023.
    fn accepted(call: impl Fn(&str) -> String) -> Vec<String> {
        run("create or replace function pg_temp.code(sql text) returns text language plpgsql as $$
             begin execute sql; raise exception using errcode = 'P9999'; exception when others then return sqlstate; end $$");
        malformed()
            .into_iter()
            .map(|shape| {
                let sql = call(&shape).replace('\'', "''");
                let code = text(&format!("select pg_temp.code('{sql}')"));
                format!("{code} {shape}")
            })
            .filter(|refusal| !refusal.starts_with("22023 "))
            .collect()
    }

    #[pg_test]
    fn comparing_what_is_no_shape_is_refused() {
        // Patterns are compared whole, whatever they are: only the shape around them is read.
        let is_pattern = |refusal: &String| refusal.contains("InputPattern");
        let shape = r#"{"steps": []}"#;
        let first = accepted(|malformed| {
            format!("select pgflow._compare_flow_shapes('{malformed}', '{shape}')")
        });
        let second = accepted(|malformed| {
            format!("select pgflow._compare_flow_shapes('{shape}', '{malformed}')")
        });
        for found in [first, second] {
            let shapes: Vec<_> = found.into_iter().filter(|r| !is_pattern(r)).collect();
            assert_eq!(shapes, NONE);
        }
    }

    #[pg_test]
    fn making_a_flow_from_what_is_no_shape_is_refused() {
        assert_eq!(
            accepted(|shape| format!("select pgflow._create_flow_from_shape('f', '{shape}')")),
            NONE
        );
        assert_eq!(rows("select flow_slug from pgflow.flows"), NONE);
        assert_eq!(rows("select queue_name from pgmq.list_queues()"), NONE);
    }

    #[pg_test]
    fn compiling_what_is_no_shape_is_refused() {
        assert_eq!(
            accepted(|shape| format!("select pgflow.ensure_flow_compiled('f', '{shape}')")),
            NONE
        );
        assert_eq!(rows("select flow_slug from pgflow.flows"), NONE);
        assert_eq!(rows("select queue_name from pgmq.list_queues()"), NONE);
    }

    #[pg_test]
    fn no_flow_is_recompiled_into_what_is_no_shape() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let before = snapshot(id);
        run("set local app.settings.jwt_secret = 'super-secret-jwt-token-with-at-least-32-characters-long'");
        assert_eq!(
            accepted(|shape| format!("select pgflow.ensure_flow_compiled('f', '{shape}')")),
            NONE
        );
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_null_shape_is_refused() {
        for call in [
            "select pgflow._create_flow_from_shape('f', null)",
            "select pgflow.ensure_flow_compiled('f', null)",
        ] {
            assert_eq!(failure(call).code, "22023", "{call}");
        }
        assert_eq!(rows("select flow_slug from pgflow.flows"), NONE);
    }
}
