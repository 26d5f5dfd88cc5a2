//! complete_task: a result is stored, the step ends, its dependents go on. Type violations and late reports have
//! files of their own.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    const MAP: &str = "'m', step_type => 'map'";

    #[pg_test]
    fn a_completed_task_keeps_its_output() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(complete(id, "a", 0, "{\"x\": 1}"), "completed");
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "format('%s %s %s', status, output, completed_at >= started_at)"
            ),
            "completed {\"x\": 1} t"
        );
        invariants_hold();
    }

    #[pg_test]
    fn complete_task_returns_the_task_s_row() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        let returned = text(&format!(
            "select to_jsonb(t) from pgflow.complete_task('{id}', 'a', 0, '{{\"x\": 1.10}}') t"
        ));
        assert_eq!(returned, of_task(id, "a", 0, "to_jsonb(step_tasks)"));
        invariants_hold();
    }

    #[pg_test]
    fn complete_task_takes_its_arguments_by_name() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        run(&format!(
            "select pgflow.complete_task(output => '1', task_index => 0, step_slug => 'a', run_id => '{id}')"
        ));
        assert_eq!(outcome(id), "completed {\"a\": 1}");
        invariants_hold();
    }

    #[pg_test]
    fn the_message_of_a_completed_task_is_archived() {
        flow("f", &["'a'", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(messages("f"), "1/1");
        assert_eq!(
            text("select msg_id from pgmq.a_f"),
            of_task(id, "a", 0, "message_id")
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_single_step_completes_with_its_task_s_output() {
        flow("f", &["'a'", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "{\"x\": 1}");
        assert_eq!(
            of_step(
                id,
                "a",
                "format('%s %s %s %s', status, output, remaining_tasks, completed_at >= started_at)"
            ),
            "completed {\"x\": 1} 0 t"
        );
        assert_eq!(of_run(id, "remaining_steps"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn a_null_output_leaves_the_step_s_output_null() {
        flow("f", &["'a'", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(complete(id, "a", 0, None), "completed");
        assert_eq!(of_task(id, "a", 0, "output"), "NULL");
        assert_eq!(
            of_step(id, "a", "coalesce(output::text, 'SQL NULL')"),
            "SQL NULL"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_chain_runs_step_by_step() {
        flow("f", &["'a'", "'b', array['a']", "'c', array['b']"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(steps(id), ["a:completed", "b:started", "c:created"]);
        claim("f");
        complete(id, "b", 0, "2");
        assert_eq!(steps(id), ["a:completed", "b:completed", "c:started"]);
        claim("f");
        complete(id, "c", 0, "3");
        assert_eq!(outcome(id), "completed {\"c\": 3}");
        assert_eq!(
            of_run(id, "remaining_steps || ' ' || (completed_at >= started_at)"),
            "0 true"
        );
        assert_eq!(messages("f"), "0/3");
        invariants_hold();
    }

    #[pg_test]
    fn a_diamond_joins_when_both_sides_are_done() {
        flow("f", &DIAMOND);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        claim("f");
        complete(id, "c", 0, "3");
        assert_eq!(of_step(id, "d", "status || remaining_deps"), "created1");
        complete(id, "b", 0, "2");
        assert_eq!(of_step(id, "d", "status || remaining_deps"), "started0");
        claim("f");
        complete(id, "d", 0, "4");
        assert_eq!(outcome(id), "completed {\"d\": 4}");
        invariants_hold();
    }

    #[pg_test]
    fn a_map_step_completes_with_its_last_task() {
        flow("f", &[MAP]);
        let id = start("f", "[1, 2, 3]");
        claim("f");
        complete(id, "m", 2, "\"c\"");
        complete(id, "m", 0, "\"a\"");
        assert_eq!(of_step(id, "m", "status || remaining_tasks"), "started1");
        assert_eq!(of_step(id, "m", "output"), "NULL");
        complete(id, "m", 1, "\"b\"");
        assert_eq!(
            of_step(
                id,
                "m",
                "format('%s %s %s', status, remaining_tasks, output)"
            ),
            "completed 0 [\"a\", \"b\", \"c\"]"
        );
        assert_eq!(outcome(id), "completed {\"m\": [\"a\", \"b\", \"c\"]}");
        invariants_hold();
    }

    #[pg_test]
    fn a_null_output_of_a_map_task_is_json_null_in_the_array() {
        flow("f", &[MAP]);
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "m", 0, None);
        complete(id, "m", 1, "null");
        assert_eq!(outcome(id), "completed {\"m\": [null, null]}");
        invariants_hold();
    }

    #[pg_test]
    fn a_map_of_1000_completes_in_the_order_of_its_input() {
        flow("f", &[MAP]);
        let input = text("select jsonb_agg(i) from generate_series(0, 999) i");
        let id = start("f", &input);
        run("select pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 1000)), null)");
        run(&format!(
            "select pgflow.complete_task('{id}', 'm', i, to_jsonb(i)) from generate_series(999, 0, -1) as i"
        ));
        assert_eq!(of_run(id, "status"), "completed");
        assert_eq!(of_run(id, "output -> 'm'"), input);
        assert_eq!(messages("f"), "0/1000");
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_map_learns_its_tasks_from_a_single_step_s_array() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "[1, 2, 3]");
        assert_eq!(
            of_step(
                id,
                "m",
                "format('%s %s %s', status, initial_tasks, remaining_tasks)"
            ),
            "started 3 3"
        );
        assert_eq!(
            tasks(id),
            [
                "a[0]:completed",
                "m[0]:queued",
                "m[1]:queued",
                "m[2]:queued"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_map_learns_its_tasks_from_its_parent_map() {
        flow("f", &[MAP, "'n', array['m'], step_type => 'map'"]);
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "m", 0, "[1, 2, 3]");
        assert_eq!(of_step(id, "n", "initial_tasks"), "NULL");
        complete(id, "m", 1, "{}");
        assert_eq!(
            of_step(id, "n", "format('%s %s', status, initial_tasks)"),
            "started 2"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_map_over_an_empty_output_completes_at_once() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "[]");
        assert_eq!(steps(id), ["a:completed", "m:completed"]);
        assert_eq!(outcome(id), "completed {\"m\": []}");
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_chain_of_maps_over_an_empty_output_lets_the_rest_go_on() {
        flow(
            "f",
            &[
                "'a'",
                "'m', array['a'], step_type => 'map'",
                "'n', array['m'], step_type => 'map'",
                "'s', array['n', 'a']",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "[]");
        assert_eq!(
            steps(id),
            ["a:completed", "m:completed", "n:completed", "s:started"]
        );
        assert_eq!(claim("f"), ["s[0] {\"a\": [], \"n\": []}"]);
        invariants_hold();
    }

    #[pg_test]
    fn one_step_can_release_several_steps_of_both_types() {
        flow(
            "f",
            &[
                "'a'",
                "'b', array['a']",
                "'m', array['a'], step_type => 'map'",
                "'n', array['a'], step_type => 'map'",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "[5, 6]");
        assert_eq!(
            claim("f"),
            [
                "b[0] {\"a\": [5, 6]}",
                "m[0] 5",
                "m[1] 6",
                "n[0] 5",
                "n[1] 6"
            ]
        );
        assert_eq!(
            text("select count(*) from pgflow.step_tasks t join pgmq.q_f q on q.msg_id = t.message_id
                  where q.message ->> 'step_slug' = t.step_slug and q.message ->> 'task_index' = t.task_index::text"),
            "5"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_step_s_start_delay_counts_from_its_release() {
        flow("f", &["'a'", "'b', array['a'], start_delay => 30"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(visible_in("f", 2), 30);
        invariants_hold();
    }

    #[pg_test]
    fn completing_a_task_twice_changes_nothing() {
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "2"), "completed");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/1");
        invariants_hold();
    }

    #[pg_test]
    fn completing_a_map_task_twice_does_not_count_twice() {
        flow("f", &[MAP]);
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "m", 0, "1");
        let before = snapshot(id);
        assert_eq!(complete(id, "m", 0, "2"), "completed");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_result_of_a_queued_task_changes_nothing() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "1"), "queued");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/0");
        invariants_hold();
    }

    #[pg_test]
    fn a_result_of_a_task_that_waits_for_its_retry_changes_nothing() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "1"), "queued");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/0");
        invariants_hold();
    }

    #[pg_test]
    fn an_unknown_task_gives_no_row_and_no_error() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(complete(id, "a", 1, "1"), "no task");
        assert_eq!(complete(id, "a", -1, "1"), "no task");
        assert_eq!(complete(id, "nope", 0, "1"), "no task");
        assert_eq!(
            rows("select pgflow.complete_task(gen_random_uuid(), 'a', 0, '1')"),
            NONE
        );
        assert_eq!(tasks(id), ["a[0]:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_null_key_gives_no_row_and_no_error() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        assert_eq!(rows("select pgflow.complete_task(null, 'a', 0, '1')"), NONE);
        assert_eq!(
            rows(&format!(
                "select pgflow.complete_task('{id}', null, 0, '1')"
            )),
            NONE
        );
        assert_eq!(
            rows(&format!(
                "select pgflow.complete_task('{id}', 'a', null, '1')"
            )),
            NONE
        );
        assert_eq!(tasks(id), ["a[0]:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_task_of_a_deleted_run_gives_no_row_and_no_error() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        run("delete from pgflow.step_tasks; delete from pgflow.step_states; delete from pgflow.runs");
        assert_eq!(complete(id, "a", 0, "1"), "no task");
        assert_eq!(fail(id, "a", 0, "x"), "no task");
    }

    #[pg_test]
    fn a_result_in_one_run_does_not_touch_another() {
        flow("f", &["'a'", "'b', array['a']"]);
        let other = start("f", "1");
        let id = start("f", "2");
        claim("f");
        let before = snapshot(other);
        complete(id, "a", 0, "1");
        assert_eq!(snapshot(other), before);
        assert_eq!(steps(id), ["a:completed", "b:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_worker_s_claim_is_still_seen_on_the_completed_task() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        let claimed = of_task(
            id,
            "a",
            0,
            "(last_worker_id, started_at, attempts_count)::text",
        );
        complete(id, "a", 0, "1");
        assert_eq!(
            of_task(
                id,
                "a",
                0,
                "(last_worker_id, started_at, attempts_count)::text"
            ),
            claimed
        );
        invariants_hold();
    }
}
