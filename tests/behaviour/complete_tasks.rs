//! complete_tasks: several results in one call, with the effect of complete_task on each. That both agree on random
//! flows is the random model's business (tests/model); here is what is particular to the call.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    const MAP: &str = "'m', step_type => 'map'";

    /// Run, step, task index and output.
    type Report<'a> = (Uuid, &'a str, i32, &'a str);

    /// Reports in one call; the rows that come back as `step[index] status`.
    fn complete_all(reports: &[Report]) -> Vec<String> {
        let list =
            |of: &dyn Fn(&Report) -> String| reports.iter().map(of).collect::<Vec<_>>().join(", ");
        rows(&format!(
            "select format('%s[%s] %s', t.step_slug, t.task_index, t.status)
             from pgflow.complete_tasks(array[{}]::uuid[], array[{}]::text[], array[{}]::integer[], array[{}]::jsonb[])
                  with ordinality as t
             order by t.ordinality",
            list(&|report| format!("'{}'", report.0)),
            list(&|report| format!("'{}'", report.1)),
            list(&|report| report.2.to_string()),
            list(&|report| format!("'{}'", report.3)),
        ))
    }

    #[pg_test]
    fn a_batch_completes_a_map_and_what_follows_starts() {
        flow("f", &[MAP, "'end', array['m']"]);
        let id = start("f", "[1, 2, 3]");
        claim("f");
        assert_eq!(
            complete_all(&[(id, "m", 2, "\"c\""), (id, "m", 0, "\"a\"")]),
            ["m[2] completed", "m[0] completed"]
        );
        assert_eq!(of_step(id, "m", "remaining_tasks"), "1");
        assert_eq!(messages("f"), "1/2");
        complete_all(&[(id, "m", 1, "\"b\"")]);
        assert_eq!(of_step(id, "m", "output"), "[\"a\", \"b\", \"c\"]");
        assert_eq!(claim("f"), ["end[0] {\"m\": [\"a\", \"b\", \"c\"]}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_batch_moves_several_runs_of_several_flows() {
        flow("f", &["'a'", "'b', array['a']"]);
        flow("g", &["'a'"]);
        let [one, two, other] = [start("f", "{}"), start("f", "{}"), start("g", "{}")];
        claim("f");
        claim("g");
        assert_eq!(
            complete_all(&[(two, "a", 0, "2"), (other, "a", 0, "3"), (one, "a", 0, "1")]),
            ["a[0] completed", "a[0] completed", "a[0] completed"]
        );
        assert_eq!(outcome(other), "completed {\"a\": 3}");
        let mut claimed = claim("f");
        claimed.sort();
        assert_eq!(claimed, ["b[0] {\"a\": 1}", "b[0] {\"a\": 2}"]);
        assert_eq!([messages("f"), messages("g")], ["2/2", "0/1"]);
        invariants_hold();
    }

    #[pg_test]
    fn rows_come_in_input_order_none_for_unknown_tasks_or_nulls() {
        flow("f", &[MAP]);
        let id = start("f", "[1, 2, 3]");
        claim("f");
        let found = rows(&format!(
            "select t.task_index
             from pgflow.complete_tasks(array['{id}', '{id}', null, gen_random_uuid(), '{id}']::uuid[],
                                        array['m', 'nobody', 'm', 'm', 'm'], array[2, 0, 1, 0, 0], array_fill('1'::jsonb, array[5]))
                  with ordinality as t
             order by t.ordinality"
        ));
        assert_eq!(found, ["2", "0"]);
        assert_eq!(
            tasks(id),
            ["m[0]:completed", "m[1]:started", "m[2]:completed"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_null_output_is_a_result() {
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        run(&format!(
            "select pgflow.complete_tasks(array['{id}']::uuid[], array['a'], array[0], array[null]::jsonb[])"
        ));
        assert_eq!(claim("f"), ["b[0] {\"a\": null}"]);
        invariants_hold();
    }

    #[pg_test]
    fn null_or_empty_arrays_complete_nothing() {
        for arguments in [
            "null, null, null, null",
            "'{}', '{}', '{}', '{}'",
            "null, '{}', null, '{}'",
            "array[null]::uuid[], '{a}', '{0}', '{1}'",
        ] {
            assert_eq!(
                rows(&format!(
                    "select t::text from pgflow.complete_tasks({arguments}) t"
                )),
                NONE
            );
        }
    }

    #[pg_test]
    fn reports_of_different_length_are_refused() {
        flow("f", &[MAP]);
        let id = start("f", "[1, 2]");
        claim("f");
        let failure = failure(&format!(
            "select pgflow.complete_tasks(array['{id}', '{id}']::uuid[], '{{m}}', '{{0, 1}}', null)"
        ));
        assert_eq!(failure.code, "22023");
        assert_eq!(
            failure.message,
            "run_ids, step_slugs, task_indexes and outputs differ in length"
        );
        assert_eq!(
            failure.detail,
            "run_ids: 2, step_slugs: 1, task_indexes: 2, outputs: 0."
        );
        assert_eq!(tasks(id), ["m[0]:started", "m[1]:started"]);
    }

    #[pg_test]
    fn a_task_given_twice_counts_once_with_its_first_output() {
        flow("f", &[MAP]);
        let id = start("f", "[1, 2]");
        claim("f");
        assert_eq!(
            complete_all(&[(id, "m", 0, "1"), (id, "m", 0, "2")]),
            ["m[0] completed", "m[0] completed"]
        );
        assert_eq!(of_step(id, "m", "remaining_tasks"), "1");
        complete_all(&[(id, "m", 1, "3"), (id, "m", 1, "4"), (id, "m", 0, "5")]);
        assert_eq!(outcome(id), "completed {\"m\": [1, 3]}");
        invariants_hold();
    }

    #[pg_test]
    fn a_report_after_the_one_that_ended_its_step_is_late_and_archives_its_message() {
        flow("f", &[MAP]);
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "m", 0, "1");
        unarchive("f");
        assert_eq!(messages("f"), "2/0");
        complete_all(&[(id, "m", 1, "2"), (id, "m", 0, "3")]);
        assert_eq!(messages("f"), "0/2");
        assert_eq!(outcome(id), "completed {\"m\": [1, 2]}");
        invariants_hold();
    }

    #[pg_test]
    fn what_comes_after_a_type_violation_in_the_same_run_is_late() {
        flow(
            "f",
            &[
                "'a'",
                "'b'",
                "'c'",
                "'m', array['b'], step_type => 'map'",
                "'d', array['a']",
            ],
        );
        let [id, other] = [start("f", "{}"), start("f", "{}")];
        claim("f");
        assert_eq!(
            complete_all(&[
                (id, "a", 0, "1"),
                (id, "b", 0, "\"no array\""),
                (id, "c", 0, "3"),
                (other, "c", 0, "3"),
            ]),
            [
                "a[0] completed",
                "b[0] failed",
                "c[0] cancelled",
                "c[0] completed"
            ]
        );
        assert_eq!(of_run(id, "status"), "failed");
        assert_eq!(of_run(other, "status"), "started");
        assert_eq!(
            tasks(id),
            [
                "a[0]:completed",
                "b[0]:failed",
                "c[0]:cancelled",
                "d[0]:cancelled"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn an_unmet_condition_fails_the_run_before_the_next_report_is_taken() {
        flow(
            "f",
            &[
                "'a'",
                "'b'",
                "'c', array['a'], required_input_pattern => '{\"a\": 1}', when_unmet => 'fail'",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        assert_eq!(
            complete_all(&[(id, "a", 0, "2"), (id, "b", 0, "3")]),
            ["a[0] completed", "b[0] cancelled"]
        );
        assert_eq!(of_run(id, "status"), "failed");
        assert_eq!(messages("f"), "0/2");
        invariants_hold();
    }

    #[pg_test]
    fn each_queue_is_served_once_and_only_with_its_own_messages() {
        flow("f", &["'a'", "'b'", "'c', array['a', 'b']"]);
        run("select pgmq.create('side')");
        route("f", "b", "side");
        let id = start("f", "{}");
        claim("f");
        claim_from("f", "side");
        complete_all(&[(id, "a", 0, "1"), (id, "b", 0, "2")]);
        assert_eq!([messages("f"), messages("side")], ["1/1", "0/1"]);
        assert_eq!(claim("f"), ["c[0] {\"a\": 1, \"b\": 2}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_batch_sends_each_event_once_and_in_order() {
        record_events();
        flow("f", &[MAP, "'end', array['m']"]);
        let id = start("f", "[1, 2]");
        claim("f");
        let before = events().len();
        complete_all(&[(id, "m", 1, "1"), (id, "m", 0, "2")]);
        assert_eq!(events()[before..], ["step:m:completed", "step:end:started"]);
        invariants_hold();
    }
}
