//! start_flow: the run, its step states, and the first tasks.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    const RUN_ID: &str = "11111111-2222-3333-4444-555555555555";
    const MAP: &str = "'m', step_type => 'map'";

    /// The call fails with this SQLSTATE, and leaves no run, state, task or message of flow `f`.
    fn refused(call: &str, code: &str) -> Failure {
        let refusal = failure(call);
        assert_eq!(refusal.code, code, "{call}");
        assert_eq!(
            text(
                "select (select count(*) from pgflow.runs) + (select count(*) from pgflow.step_states)
                      + (select count(*) from pgflow.step_tasks)"
            ),
            "0"
        );
        assert_eq!(messages("f"), "0/0");
        refusal
    }

    #[pg_test]
    fn a_run_is_started_with_all_its_steps_remaining() {
        flow("f", &DIAMOND);
        let id = start("f", "{\"x\": 1}");
        assert_eq!(
            of_run(
                id,
                "format('%s %s %s %s', flow_slug, status, input, remaining_steps)"
            ),
            "f started {\"x\": 1} 4"
        );
        assert_eq!(
            of_run(id, "num_nulls(output, completed_at, failed_at)"),
            "3"
        );
        invariants_hold();
    }

    #[pg_test]
    fn steps_without_dependencies_start_and_the_others_wait() {
        flow("f", &["'a'", "'b'", "'c', array['a', 'b']"]);
        let id = start("f", "{}");
        assert_eq!(steps(id), ["a:started", "b:started", "c:created"]);
        assert_eq!(tasks(id), ["a[0]:queued", "b[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_waiting_step_knows_how_many_dependencies_remain() {
        flow("f", &["'a'", "'b'", "'c', array['a', 'b']"]);
        let id = start("f", "{}");
        assert_eq!(of_step(id, "a", "remaining_deps"), "0");
        assert_eq!(of_step(id, "c", "remaining_deps"), "2");
        invariants_hold();
    }

    #[pg_test]
    fn a_waiting_step_has_not_started_and_counts_no_remaining_task() {
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{}");
        assert_eq!(
            of_step(id, "b", "num_nulls(remaining_tasks, started_at, completed_at, failed_at, skipped_at, output)"),
            "6"
        );
        invariants_hold();
    }

    #[pg_test]
    fn initial_tasks_are_1_the_array_s_length_or_not_yet_known() {
        flow(
            "f",
            &[
                MAP,
                "'s', array['m']",
                "'d', array['s'], step_type => 'map'",
            ],
        );
        let id = start("f", "[7, 8, 9]");
        assert_eq!(of_step(id, "m", "initial_tasks"), "3");
        assert_eq!(of_step(id, "s", "initial_tasks"), "1");
        assert_eq!(of_step(id, "d", "initial_tasks"), "NULL");
        invariants_hold();
    }

    #[pg_test]
    fn a_started_step_has_all_its_tasks_remaining() {
        flow("f", &[MAP]);
        let id = start("f", "[7, 8, 9]");
        assert_eq!(
            of_step(
                id,
                "m",
                "remaining_tasks || ' ' || (started_at >= created_at)"
            ),
            "3 true"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_task_s_message_names_flow_run_step_and_index() {
        flow("OrderFlow", &["'pickUp'"]);
        let id = start("OrderFlow", "{}");
        assert_eq!(
            rows("select message from pgmq.q_orderflow"),
            [text(&format!(
                "select jsonb_build_object('flow_slug', 'OrderFlow', 'run_id', '{id}',
                                           'step_slug', 'pickUp', 'task_index', 0)"
            ))]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_task_is_created_queued_unclaimed_and_with_its_queue() {
        flow("OrderFlow", &["'pickUp'"]);
        let id = start("OrderFlow", "{}");
        assert_eq!(
            of_task(id, "pickUp", 0, "format('%s %s %s %s %s', flow_slug, status, queue_name, attempts_count, requeued_count)"),
            "OrderFlow queued orderflow 0 0"
        );
        assert_eq!(
            of_task(id, "pickUp", 0, "num_nulls(started_at, completed_at, failed_at, last_worker_id, output, error_message)"),
            "6"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_task_stores_the_id_of_its_message() {
        flow("f", &["'a'", "'b'"]);
        start("f", "{}");
        assert_eq!(
            rows(
                "select t.step_slug || t.task_index || '=' || (m.message ->> 'step_slug') || (m.message ->> 'task_index')
                 from pgflow.step_tasks t join pgmq.q_f m on m.msg_id = t.message_id order by 1"
            ),
            ["a0=a0", "b0=b0"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_root_map_has_a_task_and_a_message_for_each_element() {
        flow("f", &[MAP]);
        let id = start("f", "[\"x\", null, {\"y\": []}]");
        assert_eq!(tasks(id), ["m[0]:queued", "m[1]:queued", "m[2]:queued"]);
        assert_eq!(
            text(
                "select bool_and(m.message ->> 'task_index' = t.task_index::text) || ' ' || count(*)
                 from pgflow.step_tasks t join pgmq.q_f m on m.msg_id = t.message_id"
            ),
            "true 3"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_root_map_of_one_element_has_one_task() {
        flow("f", &[MAP]);
        let id = start("f", "[[]]");
        assert_eq!(tasks(id), ["m[0]:queued"]);
        assert_eq!(messages("f"), "1/0");
        invariants_hold();
    }

    #[pg_test]
    fn messages_are_visible_at_once() {
        flow("f", &["'a'"]);
        start("f", "{}");
        assert!(visible_in("f", 1) <= 0);
        invariants_hold();
    }

    #[pg_test]
    fn a_start_delay_hides_the_messages_of_its_step_only() {
        flow(
            "f",
            &["'a', start_delay => 100", "'b'", "'c', start_delay => 200"],
        );
        let id = start("f", "{}");
        let delay = |step| visible_in("f", of_task(id, step, 0, "message_id").parse().unwrap());
        assert_eq!(delay("a"), 100);
        assert!(delay("b") <= 0);
        assert_eq!(delay("c"), 200);
        invariants_hold();
    }

    #[pg_test]
    fn a_start_delay_hides_every_message_of_a_map() {
        flow("f", &["'m', step_type => 'map', start_delay => 100"]);
        start("f", "[1, 2, 3]");
        assert_eq!([1, 2, 3].map(|id| visible_in("f", id)), [100, 100, 100]);
        invariants_hold();
    }

    #[pg_test]
    fn an_input_that_is_no_array_is_refused_by_a_root_map() {
        flow("f", &["'a'", MAP]);
        for (input, found) in [
            ("{}", "object"),
            ("1", "number"),
            ("\"x\"", "string"),
            ("true", "boolean"),
            ("null", "null"),
        ] {
            let refusal = refused(
                &format!("select pgflow.start_flow('f', '{input}')"),
                "22023",
            );
            assert!(refusal.detail.contains("\"m\""), "{refusal:?}");
            assert!(refusal.detail.contains(found), "{refusal:?}");
        }
    }

    #[pg_test]
    fn without_a_root_map_any_json_is_an_input() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        for input in ["{}", "1", "\"x\"", "true", "null", "[]"] {
            let id = start("f", input);
            assert_eq!(of_run(id, "input"), input);
        }
        invariants_hold();
    }

    #[pg_test]
    fn a_null_input_is_refused() {
        flow("f", &["'a'"]);
        refused("select pgflow.start_flow('f', null)", "23502");
    }

    #[pg_test]
    fn a_null_input_is_refused_by_a_root_map_too() {
        flow("f", &[MAP]);
        refused("select pgflow.start_flow('f', null)", "23502");
    }

    #[pg_test]
    fn a_run_takes_the_id_that_is_given() {
        flow("f", &["'a'"]);
        run(&format!(
            "select pgflow.start_flow('f', '{{}}', '{RUN_ID}')"
        ));
        assert_eq!(rows("select run_id from pgflow.runs"), [RUN_ID]);
        invariants_hold();
    }

    #[pg_test]
    fn a_null_or_omitted_run_id_is_generated() {
        flow("f", &["'a'"]);
        run("select pgflow.start_flow('f', '{}', null)");
        run("select pgflow.start_flow('f', '{}')");
        assert_eq!(text("select count(distinct run_id) from pgflow.runs"), "2");
        invariants_hold();
    }

    #[pg_test]
    fn a_run_id_that_exists_is_refused() {
        flow("f", &["'a'"]);
        let call = format!("select pgflow.start_flow('f', '{{\"x\": 1}}', '{RUN_ID}')");
        run(&call);
        assert_eq!(failure(&call).code, "23505");
        assert_eq!(messages("f"), "1/0");
        invariants_hold();
    }

    #[pg_test]
    fn a_run_of_an_unknown_flow_is_refused() {
        flow("f", &["'a'"]);
        refused("select pgflow.start_flow('nope', '{}')", "23503");
    }

    #[pg_test]
    fn a_run_of_a_flow_spelled_in_other_case_is_refused() {
        flow("f", &["'a'"]);
        refused("select pgflow.start_flow('F', '{}')", "23503");
    }

    #[pg_test]
    fn a_run_of_a_null_flow_is_refused() {
        flow("f", &["'a'"]);
        refused("select pgflow.start_flow(null, '{}')", "23502");
    }

    #[pg_test]
    fn start_flow_takes_its_arguments_by_name() {
        flow("f", &["'a'"]);
        run(&format!(
            "select pgflow.start_flow(run_id => '{RUN_ID}', input => '{{}}', flow_slug => 'f')"
        ));
        assert_eq!(rows("select run_id from pgflow.runs"), [RUN_ID]);
        invariants_hold();
    }

    #[pg_test]
    fn start_flow_returns_the_run_s_row() {
        flow("f", &["'a'"]);
        let returned = text("select to_jsonb(r) from pgflow.start_flow('f', '{\"x\": 1.10}') r");
        assert_eq!(returned, text("select to_jsonb(r) from pgflow.runs r"));
        invariants_hold();
    }

    #[pg_test]
    fn start_flow_without_a_queue_fails_and_creates_none() {
        flow("f", &["'a'"]);
        run("select pgmq.drop_queue('f')");
        assert_eq!(failure("select pgflow.start_flow('f', '{}')").code, "42P01");
        assert_eq!(rows("select queue_name from pgmq.list_queues()"), NONE);
        assert_eq!(text("select count(*) from pgflow.runs"), "0");
    }

    #[pg_test]
    fn a_flow_without_steps_completes_at_once() {
        flow("f", &[]);
        let returned = text("select to_jsonb(r) from pgflow.start_flow('f', '{}') r");
        assert_eq!(returned, text("select to_jsonb(r) from pgflow.runs r"));
        assert_eq!(
            text(
                "select format('%s %s %s %s', status, remaining_steps, completed_at >= started_at, output is null)
                 from pgflow.runs"
            ),
            "completed 0 t t"
        );
        assert_eq!(messages("f"), "0/0");
        invariants_hold();
    }

    #[pg_test]
    fn a_root_map_over_an_empty_array_completes_at_once() {
        flow("f", &[MAP]);
        let id = start("f", "[]");
        assert_eq!(outcome(id), "completed {\"m\": []}");
        assert_eq!(
            of_step(
                id,
                "m",
                "format('%s %s %s %s', status, output, remaining_tasks, started_at = completed_at)"
            ),
            "completed [] 0 t"
        );
        assert_eq!(messages("f"), "0/0");
        invariants_hold();
    }

    #[pg_test]
    fn a_chain_of_maps_over_an_empty_array_completes_at_once() {
        flow(
            "f",
            &[
                MAP,
                "'n', array['m'], step_type => 'map'",
                "'o', array['n'], step_type => 'map'",
            ],
        );
        let id = start("f", "[]");
        assert_eq!(outcome(id), "completed {\"o\": []}");
        assert_eq!(steps(id), ["m:completed", "n:completed", "o:completed"]);
        assert_eq!(tasks(id), NONE);
        invariants_hold();
    }

    #[pg_test]
    fn a_single_step_after_an_empty_map_starts_at_once() {
        flow("f", &[MAP, "'s', array['m']"]);
        let id = start("f", "[]");
        assert_eq!(steps(id), ["m:completed", "s:started"]);
        assert_eq!(of_run(id, "remaining_steps"), "1");
        assert_eq!(claim("f"), ["s[0] {\"m\": []}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_step_that_also_waits_for_a_task_waits_after_an_empty_map() {
        flow("f", &[MAP, "'a'", "'s', array['m', 'a']"]);
        let id = start("f", "[]");
        assert_eq!(steps(id), ["m:completed", "a:started", "s:created"]);
        assert_eq!(of_step(id, "s", "remaining_deps"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn two_empty_maps_release_their_common_dependent_once() {
        flow(
            "f",
            &[MAP, "'n', step_type => 'map'", "'s', array['m', 'n']"],
        );
        let id = start("f", "[]");
        assert_eq!(steps(id), ["m:completed", "n:completed", "s:started"]);
        assert_eq!(claim("f"), ["s[0] {\"m\": [], \"n\": []}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_skip_and_an_empty_map_release_their_common_dependent_once() {
        flow(
            "f",
            &[
                "'a', required_input_pattern => '{\"x\": 1}'",
                MAP,
                "'s', array['a', 'm']",
            ],
        );
        let id = start("f", "[]");
        assert_eq!(steps(id), ["a:skipped", "m:completed", "s:started"]);
        assert_eq!(claim("f"), ["s[0] {\"m\": []}"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_chain_of_500_empty_maps_completes_at_once() {
        flow("f", &["'s0', step_type => 'map'"]);
        run(
            "select pgflow.add_step('f', 's' || i, array['s' || i - 1], step_type => 'map')
             from generate_series(1, 499) as i",
        );
        let id = start("f", "[]");
        assert_eq!(outcome(id), "completed {\"s499\": []}");
        invariants_hold();
    }

    #[pg_test]
    fn runs_of_a_flow_do_not_touch_each_other() {
        flow("f", &["'a'", "'b', array['a']"]);
        let first = start("f", "1");
        let before = snapshot(first);
        start("f", "2");
        assert_eq!(snapshot(first), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_call_beside_another_set_is_made_once() {
        flow("f", &["'a'"]);
        assert_eq!(
            rows("select (pgflow.start_flow('f', '{}')).status || generate_series(1, 2)"),
            ["started1", "NULL"]
        );
        assert_eq!(one::<i64>("select count(*) from pgflow.runs"), 1);
        claim("f");
        let report = "(run_id, step_slug, task_index";
        for call in [
            format!("pgflow.fail_task{report}, 'again')"),
            format!("pgflow.complete_task{report}, '1')"),
        ] {
            let counted = format!(
                "select count(t) from (select {call} as t, generate_series(1, 3) from pgflow.step_tasks) c"
            );
            assert_eq!(one::<i64>(&counted), 1);
        }
        invariants_hold();
    }
}
