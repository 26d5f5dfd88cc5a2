//! Realtime events: one for each transition, in order, with exactly these keys.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    /// The payload's keys of the only event of this name, in alphabetical order.
    fn keys(event: &str) -> String {
        let found = rows(&format!(
            "select (select string_agg(k, ' ' order by k collate \"C\") from jsonb_object_keys(payload) k)
             from realtime.sent where event = '{event}'"
        ));
        assert_eq!(found.len(), 1, "{event}: {found:?}");
        found[0].clone()
    }

    /// A value of the payload of the only event of this name.
    fn value(event: &str, key: &str) -> String {
        text(&format!(
            "select payload -> '{key}' from realtime.sent where event = '{event}'"
        ))
    }

    #[pg_test]
    fn a_diamond_sends_each_transition_once_parents_first() {
        record_events();
        flow("f", &DIAMOND);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        claim("f");
        complete(id, "b", 0, "2");
        complete(id, "c", 0, "3");
        claim("f");
        complete(id, "d", 0, "4");
        assert_eq!(
            events(),
            [
                "run:started",
                "step:a:started",
                "step:a:completed",
                "step:b:started",
                "step:c:started",
                "step:b:completed",
                "step:c:completed",
                "step:d:started",
                "step:d:completed",
                "run:completed"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn every_event_goes_to_the_run_s_topic_and_is_not_private() {
        record_events();
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(
            rows("select distinct topic || ' ' || private from realtime.sent"),
            [format!("pgflow:run:{id} false")]
        );
        invariants_hold();
    }

    #[pg_test]
    fn every_payload_names_its_type_run_and_status() {
        record_events();
        flow("f", &["'pickUp'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "pickUp", 0, "1");
        assert_eq!(
            rows(
                "select format('%s %s %s', payload ->> 'event_type', payload ->> 'status', payload ->> 'run_id')
                 from realtime.sent order by id"
            ),
            [
                format!("run:started started {id}"),
                format!("step:started started {id}"),
                format!("step:completed completed {id}"),
                format!("run:completed completed {id}")
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn run_started_carries_input_remaining_steps_and_start() {
        record_events();
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{\"x\": 1.10}");
        assert_eq!(
            keys("run:started"),
            "event_type flow_slug input remaining_steps run_id started_at status"
        );
        assert_eq!(value("run:started", "flow_slug"), "\"f\"");
        assert_eq!(value("run:started", "input"), "{\"x\": 1.10}");
        assert_eq!(value("run:started", "remaining_steps"), "2");
        assert_eq!(
            value("run:started", "started_at"),
            of_run(id, "to_jsonb(started_at)")
        );
        invariants_hold();
    }

    #[pg_test]
    fn run_completed_carries_output_and_end() {
        record_events();
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1.10");
        assert_eq!(
            keys("run:completed"),
            "completed_at event_type flow_slug output run_id status"
        );
        assert_eq!(value("run:completed", "flow_slug"), "\"f\"");
        assert_eq!(value("run:completed", "output"), "{\"a\": 1.10}");
        assert_eq!(
            value("run:completed", "completed_at"),
            of_run(id, "to_jsonb(completed_at)")
        );
        invariants_hold();
    }

    #[pg_test]
    fn an_empty_flow_sends_its_start_and_its_completion() {
        record_events();
        flow("f", &[]);
        start("f", "{}");
        assert_eq!(events(), ["run:started", "run:completed"]);
        assert_eq!(value("run:completed", "output"), "null");
        invariants_hold();
    }

    #[pg_test]
    fn step_started_carries_its_tasks_and_dependencies() {
        record_events();
        flow("f", &["'m', step_type => 'map'"]);
        let id = start("f", "[1, 2, 3]");
        assert_eq!(
            keys("step:m:started"),
            "event_type remaining_deps remaining_tasks run_id started_at status step_slug"
        );
        assert_eq!(value("step:m:started", "step_slug"), "\"m\"");
        assert_eq!(value("step:m:started", "remaining_tasks"), "3");
        assert_eq!(value("step:m:started", "remaining_deps"), "0");
        assert_eq!(
            value("step:m:started", "started_at"),
            of_step(id, "m", "to_jsonb(started_at)")
        );
        invariants_hold();
    }

    #[pg_test]
    fn step_completed_carries_output_and_end() {
        record_events();
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1.10");
        assert_eq!(
            keys("step:a:completed"),
            "completed_at event_type output run_id status step_slug"
        );
        assert_eq!(value("step:a:completed", "step_slug"), "\"a\"");
        assert_eq!(value("step:a:completed", "output"), "1.10");
        assert_eq!(
            value("step:a:completed", "completed_at"),
            of_step(id, "a", "to_jsonb(completed_at)")
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_map_sends_one_start_and_one_completion_for_all_its_tasks() {
        record_events();
        flow("f", &["'m', step_type => 'map'"]);
        let id = start("f", "[1, 2, 3]");
        claim("f");
        for index in 0..3 {
            complete(id, "m", index, "1");
        }
        assert_eq!(
            events(),
            [
                "run:started",
                "step:m:started",
                "step:m:completed",
                "run:completed"
            ]
        );
        assert_eq!(value("step:m:completed", "output"), "[1, 1, 1]");
        invariants_hold();
    }

    #[pg_test]
    fn a_taskless_completion_also_carries_its_start_and_zeros() {
        record_events();
        flow("f", &["'m', step_type => 'map'"]);
        start("f", "[]");
        assert_eq!(
            events(),
            ["run:started", "step:m:completed", "run:completed"]
        );
        assert_eq!(
            keys("step:m:completed"),
            "completed_at event_type output remaining_deps remaining_tasks run_id started_at status step_slug"
        );
        assert_eq!(value("step:m:completed", "output"), "[]");
        assert_eq!(value("step:m:completed", "remaining_tasks"), "0");
        assert_eq!(value("step:m:completed", "remaining_deps"), "0");
        assert_eq!(
            value("step:m:completed", "started_at"),
            value("step:m:completed", "completed_at")
        );
        invariants_hold();
    }

    #[pg_test]
    fn taskless_steps_complete_before_their_dependents() {
        record_events();
        flow(
            "f",
            &[
                "'m', step_type => 'map'",
                "'n', array['m'], step_type => 'map'",
                "'s', array['n']",
            ],
        );
        start("f", "[]");
        assert_eq!(
            events(),
            [
                "run:started",
                "step:m:completed",
                "step:n:completed",
                "step:s:started"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_retry_sends_no_event() {
        record_events();
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        assert_eq!(events(), ["run:started", "step:a:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_claim_sends_no_event() {
        record_events();
        flow("f", &["'a'"]);
        start("f", "{}");
        let before = events();
        claim("f");
        assert_eq!(events(), before);
        invariants_hold();
    }

    #[pg_test]
    fn an_exhausted_task_sends_the_step_s_failure_then_the_run_s() {
        record_events();
        flow("f", &["'a', max_attempts => 1", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "no luck");
        assert_eq!(events()[3..], ["step:a:failed", "run:failed"]);
        assert_eq!(
            keys("step:a:failed"),
            "error_message event_type failed_at run_id status step_slug"
        );
        assert_eq!(
            keys("run:failed"),
            "error_message event_type failed_at flow_slug run_id status"
        );
        for event in ["step:a:failed", "run:failed"] {
            assert_eq!(value(event, "error_message"), "\"no luck\"");
            assert_eq!(value(event, "status"), "\"failed\"");
        }
        assert_eq!(
            value("run:failed", "failed_at"),
            of_run(id, "to_jsonb(failed_at)")
        );
        assert_eq!(
            value("step:a:failed", "failed_at"),
            of_step(id, "a", "to_jsonb(failed_at)")
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_type_violation_sends_the_run_s_failure_then_the_step_s() {
        record_events();
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(events()[2..], ["run:failed", "step:a:failed"]);
        assert_eq!(
            keys("run:failed"),
            "event_type failed_at flow_slug run_id status"
        );
        assert_eq!(
            value("step:a:failed", "error_message"),
            "\"[TYPE_VIOLATION] Map step m expects array input but dependency a produced number\""
        );
        invariants_hold();
    }

    #[pg_test]
    fn an_unmet_condition_that_fails_sends_the_step_s_failure_first() {
        record_events();
        flow(
            "f",
            &["'a', required_input_pattern => '{\"x\": 1}', when_unmet => 'fail'"],
        );
        start("f", "{}");
        assert_eq!(events(), ["run:started", "step:a:failed", "run:failed"]);
        for event in ["step:a:failed", "run:failed"] {
            assert_eq!(value(event, "error_message"), "\"Condition not met\"");
        }
        invariants_hold();
    }

    #[pg_test]
    fn step_skipped_carries_reason_and_time() {
        record_events();
        flow("f", &["'a', required_input_pattern => '{\"x\": 1}'", "'b'"]);
        let id = start("f", "{}");
        assert_eq!(
            keys("step:a:skipped"),
            "event_type flow_slug run_id skip_reason skipped_at status step_slug"
        );
        assert_eq!(value("step:a:skipped", "step_slug"), "\"a\"");
        assert_eq!(value("step:a:skipped", "flow_slug"), "\"f\"");
        assert_eq!(value("step:a:skipped", "status"), "\"skipped\"");
        assert_eq!(
            value("step:a:skipped", "skip_reason"),
            "\"condition_unmet\""
        );
        assert_eq!(
            value("step:a:skipped", "skipped_at"),
            of_step(id, "a", "to_jsonb(skipped_at)")
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_skip_after_a_failed_handler_also_carries_the_message() {
        record_events();
        flow(
            "f",
            &[
                "'a', max_attempts => 1, when_exhausted => 'skip-cascade'",
                "'b', array['a']",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "no luck");
        assert_eq!(
            events()[2..],
            ["step:a:skipped", "step:b:skipped", "run:completed"]
        );
        assert_eq!(
            keys("step:a:skipped"),
            "error_message event_type flow_slug run_id skip_reason skipped_at status step_slug"
        );
        assert_eq!(value("step:a:skipped", "error_message"), "\"no luck\"");
        assert_eq!(value("step:a:skipped", "skip_reason"), "\"handler_failed\"");
        assert_eq!(
            keys("step:b:skipped"),
            "event_type flow_slug run_id skip_reason skipped_at status step_slug"
        );
        assert_eq!(
            value("step:b:skipped", "skip_reason"),
            "\"dependency_skipped\""
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_skip_is_sent_before_the_start_of_its_dependents() {
        record_events();
        flow(
            "f",
            &[
                "'a', required_input_pattern => '{\"x\": 1}'",
                "'b', array['a']",
            ],
        );
        start("f", "{}");
        assert_eq!(
            events(),
            ["run:started", "step:a:skipped", "step:b:started"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_cascade_sends_its_skips_in_topological_order() {
        record_events();
        flow(
            "f",
            &[
                "'z', required_input_pattern => '{\"x\": 1}', when_unmet => 'skip-cascade'",
                "'y', array['z']",
                "'c', array['y']",
                "'b', array['z', 'c']",
            ],
        );
        start("f", "{}");
        assert_eq!(
            events(),
            [
                "run:started",
                "step:z:skipped",
                "step:y:skipped",
                "step:c:skipped",
                "step:b:skipped",
                "run:completed"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_repeated_report_sends_no_event() {
        record_events();
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        let before = events();
        complete(id, "a", 0, "1");
        fail(id, "a", 0, "x");
        assert_eq!(events(), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_large_payload_is_passed_whole() {
        record_events();
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        run(&format!(
            "select pgflow.complete_task('{id}', 'a', 0, to_jsonb(repeat('x', 1000000)))"
        ));
        assert_eq!(
            text("select length(payload ->> 'output') from realtime.sent where event = 'step:a:completed'"),
            "1000000"
        );
        invariants_hold();
    }

    #[pg_test]
    fn without_realtime_send_nothing_is_sent_and_all_goes_on() {
        assert_eq!(text("select to_regnamespace('realtime')"), "NULL");
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(of_run(id, "status"), "completed");
        invariants_hold();
    }

    #[pg_test]
    fn a_send_with_other_arguments_is_not_called() {
        run("create schema realtime;
             create function realtime.send(payload jsonb, event text) returns void language plpgsql as
             $$ begin raise exception 'called'; end $$");
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(of_run(id, "status"), "completed");
        invariants_hold();
    }

    #[pg_test]
    fn an_event_that_cannot_be_sent_undoes_its_transition() {
        record_events();
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        run("create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true)
             returns void language plpgsql as $$ begin raise exception 'no connection'; end $$");
        let refusal = failure(&format!("select pgflow.complete_task('{id}', 'a', 0, '1')"));
        assert_eq!(refusal.message, "no connection");
        assert_eq!(tasks(id), ["a[0]:started"]);
        assert_eq!(messages("f"), "1/0");
        invariants_hold();
    }
}
