//! Values pass through unchanged: as jsonb stores them, never as a program's numbers.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    /// Values that a detour through another representation would change.
    fn values() -> Vec<String> {
        let deep = format!("{}1.10{}", "[".repeat(100), "]".repeat(100));
        let deep_object = format!("{}1.10{}", "{\"k\": ".repeat(100), "}".repeat(100));
        [
            "12345678901234567890.123456789",
            "1e400",
            "1.10",
            "-0.0",
            "0.1e-300",
            "\"\"",
            "\"\\u00e9\\n\\\"\\\\ \u{1F600}\"",
            "null",
            "true",
            "[]",
            "{}",
            "{\"\": {\"b\": 1.00, \"a\": [null]}}",
            &deep,
            &deep_object,
        ]
        .map(String::from)
        .to_vec()
    }

    /// The value as PostgreSQL prints it.
    fn stored(json: &str) -> String {
        Spi::get_one_with_args::<String>("select $1::jsonb::text", &[json.into()])
            .unwrap()
            .unwrap()
    }

    #[pg_test]
    fn an_input_is_stored_and_handed_out_unchanged() {
        flow("f", &["'a'"]);
        for json in values() {
            let id = start("f", &json);
            assert_eq!(
                of_run(id, "coalesce(input::text, 'SQL NULL')"),
                stored(&json)
            );
            assert_eq!(
                rows("select flow_input::text from pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 1)), null)"),
                [stored(&json)]
            );
        }
        invariants_hold();
    }

    #[pg_test]
    fn an_output_is_stored_on_task_and_step_unchanged() {
        flow("f", &["'a'", "'b', array['a']"]);
        for json in values() {
            let id = start("f", "{}");
            claim("f");
            complete(id, "a", 0, json.as_str());
            assert_eq!(of_task(id, "a", 0, "output::text"), stored(&json));
            assert_eq!(of_step(id, "a", "output::text"), stored(&json));
        }
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_step_gets_an_output_unchanged() {
        flow("f", &["'a'", "'b', array['a']"]);
        for json in values() {
            let id = start("f", "{}");
            claim("f");
            complete(id, "a", 0, json.as_str());
            assert_eq!(
                rows("select (input -> 'a')::text from pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 10)), null)"),
                [stored(&json)]
            );
        }
        invariants_hold();
    }

    #[pg_test]
    fn the_run_s_output_holds_an_output_unchanged() {
        flow("f", &["'a'"]);
        for json in values() {
            let id = start("f", "{}");
            claim("f");
            complete(id, "a", 0, json.as_str());
            assert_eq!(of_run(id, "(output -> 'a')::text"), stored(&json));
        }
        invariants_hold();
    }

    #[pg_test]
    fn the_elements_of_a_root_map_are_handed_out_unchanged() {
        flow("f", &["'m', step_type => 'map'"]);
        start("f", &format!("[{}]", values().join(", ")));
        assert_eq!(
            rows(
                "select input::text from pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 100)), null)
                 order by task_index"
            ),
            values().iter().map(|json| stored(json)).collect::<Vec<_>>()
        );
        invariants_hold();
    }

    #[pg_test]
    fn the_outputs_of_a_map_are_gathered_unchanged() {
        flow(
            "f",
            &[
                "'m', step_type => 'map'",
                "'n', array['m'], step_type => 'map'",
            ],
        );
        let count = values().len();
        let id = start("f", &format!("[{}]", vec!["0"; count].join(", ")));
        claim("f");
        for (index, json) in values().iter().enumerate() {
            complete(id, "m", index as i32, json.as_str());
        }
        assert_eq!(
            of_step(id, "m", "output::text"),
            stored(&format!("[{}]", values().join(", ")))
        );
        assert_eq!(
            rows(
                "select input::text from pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 100)), null)
                 order by task_index"
            ),
            values().iter().map(|json| stored(json)).collect::<Vec<_>>()
        );
        invariants_hold();
    }

    #[pg_test]
    fn an_output_of_the_wrong_type_is_kept_unchanged() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "12345678901234567890.123456789");
        assert_eq!(
            of_task(id, "a", 0, "output::text"),
            "12345678901234567890.123456789"
        );
        invariants_hold();
    }

    #[pg_test]
    fn values_in_events_and_shown_runs_are_unchanged() {
        record_events();
        flow("f", &["'a'"]);
        for json in values() {
            run("delete from realtime.sent");
            let id = start("f", &json);
            claim("f");
            complete(id, "a", 0, json.as_str());
            let stored = stored(&json);
            assert_eq!(
                rows("select coalesce(payload -> 'input', payload -> 'output' -> 'a', payload -> 'output')::text
                      from realtime.sent where event <> 'step:a:started' order by id"),
                [stored.as_str(), &stored, &stored]
            );
            assert_eq!(
                text(&format!(
                    "select (pgflow.get_run_with_states('{id}') #> '{{run,input}}')::text"
                )),
                stored
            );
        }
        invariants_hold();
    }

    #[pg_test]
    fn a_pattern_is_stored_unchanged() {
        flow(
            "f",
            &["'a', required_input_pattern => '{\"x\": 12345678901234567890.1234567890}'"],
        );
        assert_eq!(
            text("select required_input_pattern::text from pgflow.steps"),
            "{\"x\": 12345678901234567890.1234567890}"
        );
        let met = start("f", "{\"x\": 12345678901234567890.123456789}");
        assert_eq!(steps(met), ["a:started"]);
        let unmet = start("f", "{\"x\": 12345678901234567890.123456788}");
        assert_eq!(steps(unmet), ["a:skipped"]);
        invariants_hold();
    }

    #[pg_test]
    fn values_of_forty_megabytes_pass_through_every_place() {
        flow("f", &["'a'", "'b', array['a']"]);
        run(
            "create temp table v as
             select to_jsonb(string_agg(md5(i::text), '')) as big from generate_series(1, 1250000) i",
        );
        assert_eq!(text("select length(big #>> '{}') from v"), "40000000");
        run("select pgflow.start_flow('f', big) from v");
        let id: pgrx::Uuid = one("select run_id from pgflow.runs");
        let same = |query: &str| assert_eq!(text(query), "true");
        same("select flow_input = big from v, pgflow.start_tasks('f', '{1}', null)");
        run(&format!(
            "select pgflow.complete_task('{id}', 'a', 0, big) from v"
        ));
        same("select input -> 'a' = big from v, pgflow.start_tasks('f', '{2}', null)");
        same(&format!(
            "select output = big from v, pgflow.complete_task('{id}', 'b', 0, big)"
        ));
        same("select output -> 'b' = big from v, pgflow.runs");
        invariants_hold();
    }

    #[pg_test]
    fn a_large_array_is_mapped_element_by_element() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        let id = start("f", "{}");
        claim("f");
        run(&format!(
            "select pgflow.complete_task('{id}', 'a', 0,
               (select jsonb_agg(repeat(md5(i::text), 100)) from generate_series(0, 299) i))"
        ));
        assert_eq!(
            text(
                "select count(*) filter (where input = to_jsonb(repeat(md5(task_index::text), 100)))
                 from pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 1000)), null)"
            ),
            "300"
        );
        invariants_hold();
    }

    #[pg_test]
    fn values_from_a_table_pass_however_they_are_stored() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        run("create temp table v (kind text, j jsonb);
             alter table v alter column j set storage extended;
             insert into v values
               ('short', '[1.10]'),
               ('compressed', (select jsonb_agg(repeat('x', 1000)) from generate_series(1, 100))),
               ('external', (select jsonb_agg(md5(i::text)) from generate_series(1, 1000) i))");
        for kind in ["short", "compressed", "external"] {
            run(&format!(
                "select pgflow.start_flow('f', j) from v where kind = '{kind}'"
            ));
            let id: pgrx::Uuid = one("select run_id from pgflow.runs where status = 'started'");
            claim("f");
            run(&format!(
                "select pgflow.complete_task('{id}', 'a', 0, j) from v where kind = '{kind}'"
            ));
            run("select pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 1000)), null)");
            run(&format!(
                "select pgflow.complete_task('{id}', 'm', i::integer - 1, e)
                 from v, jsonb_array_elements(j) with ordinality as k (e, i) where kind = '{kind}'"
            ));
            assert_eq!(
                text(&format!(
                    "select output -> 'm' = j and input = j from pgflow.runs, v
                     where run_id = '{id}' and kind = '{kind}'"
                )),
                "true",
                "{kind}"
            );
        }
        invariants_hold();
    }
}
