//! The queue that a task stores when it is created is its queue for life, whatever becomes of its step's route.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// Routes step `a` of flow `f` to a new queue before and after each operation; its task stays in queue `f`.
    fn rerouted(id: Uuid, operations: &[fn(Uuid)]) {
        for (number, operation) in operations.iter().enumerate() {
            route("f", "a", &format!("route{number}"));
            operation(id);
            assert_eq!(
                of_task(id, "a", 0, "queue_name || message_id"),
                "f1",
                "after operation {number}"
            );
        }
        for number in 0..operations.len() {
            assert_eq!(messages(&format!("route{number}")), "0/0");
        }
    }

    fn claim_all(_: Uuid) {
        assert!(!claim_hidden("f").is_empty());
    }

    fn fail_a(id: Uuid) {
        fail(id, "a", 0, "x");
    }

    fn stall_a(id: Uuid) {
        run(&format!(
            "update pgflow.step_tasks
             set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
             where run_id = '{id}'"
        ));
        run("select pgflow.requeue_stalled_tasks()");
    }

    #[pg_test]
    fn a_task_that_is_retried_recovered_and_completed_stays_in_its_queue() {
        flow("f", &["'a', max_attempts => 9"]);
        let id = start("f", "{}");
        rerouted(
            id,
            &[
                claim_all,
                fail_a,
                claim_all,
                stall_a,
                claim_all,
                |id| assert_eq!(complete(id, "a", 0, "1"), "completed"),
                |id| assert_eq!(complete(id, "a", 0, "1"), "completed"),
            ],
        );
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_task_that_fails_stays_in_its_queue() {
        for mode in ["fail", "skip", "skip-cascade"] {
            flow(
                "f",
                &[&format!(
                    "'a', max_attempts => 2, when_exhausted => '{mode}'"
                )],
            );
            let id = start("f", "{}");
            rerouted(id, &[claim_all, fail_a, claim_all, fail_a, fail_a]);
            assert_eq!(tasks(id), ["a[0]:failed"], "{mode}");
            assert_eq!(messages("f"), "0/1", "{mode}");
            invariants_hold();
            run("select pgflow.delete_flow_and_data('f');
                 select pgmq.drop_queue(queue_name::text) from pgmq.list_queues()");
        }
    }

    #[pg_test]
    fn a_task_that_is_cancelled_stays_in_its_queue() {
        flow("f", &["'a'", "'b', max_attempts => 1"]);
        let id = start("f", "{}");
        rerouted(
            id,
            &[
                claim_all,
                |id| assert_eq!(fail(id, "b", 0, "x"), "failed"),
                |id| assert_eq!(complete(id, "a", 0, "1"), "cancelled"),
            ],
        );
        assert_eq!(messages("f"), "0/2");
        invariants_hold();
    }

    #[pg_test]
    fn a_task_that_is_skipped_stays_in_its_queue() {
        flow("f", &["'a'", "'b'"]);
        let id = start("f", "{}");
        rerouted(
            id,
            &[
                claim_all,
                |id| {
                    run(&format!(
                        "select pgflow._cascade_force_skip_steps('{id}', 'a', 'condition_unmet')"
                    ));
                },
                |id| assert_eq!(fail(id, "a", 0, "x"), "skipped"),
            ],
        );
        assert_eq!(messages("f"), "1/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_task_that_stalls_for_good_stays_in_its_queue() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        rerouted(
            id,
            &[
                claim_all, stall_a, claim_all, stall_a, claim_all, stall_a, claim_all, stall_a,
            ],
        );
        assert_eq!(
            of_task(id, "a", 0, "permanently_stalled_at is not null"),
            "true"
        );
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_step_that_starts_after_its_route_changed_goes_the_new_way() {
        flow("f", &["'a'", "'b', array['a']", "'c', array['b']"]);
        let id = start("f", "{}");
        claim("f");
        route("f", "b", "second");
        complete(id, "a", 0, "1");
        assert_eq!(claim_from("f", "second"), ["b[0] {\"a\": 1}"]);
        route("f", "b", "never");
        route("f", "c", "third");
        complete(id, "b", 0, "2");
        assert_eq!(claim_from("f", "third"), ["c[0] {\"b\": 2}"]);
        complete(id, "c", 0, "3");
        assert_eq!(
            rows("select step_slug || queue_name || message_id from pgflow.step_tasks order by 1"),
            ["af1", "bsecond1", "cthird1"]
        );
        assert_eq!(
            ["f", "second", "third", "never"].map(messages),
            ["0/1", "0/1", "0/1", "0/0"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn the_next_run_goes_the_new_way_and_the_old_one_ends_the_old_way() {
        flow("f", &["'m', step_type => 'map'"]);
        let old = start("f", "[7, 8]");
        claim("f");
        route("f", "m", "elsewhere");
        let new = start("f", "[7, 8]");
        assert_eq!(claim_from("f", "elsewhere"), ["m[0] 7", "m[1] 8"]);
        for id in [old, new] {
            complete(id, "m", 0, "1");
            complete(id, "m", 1, "2");
            assert_eq!(outcome(id), "completed {\"m\": [1, 2]}");
        }
        assert_eq!([messages("f"), messages("elsewhere")], ["0/2", "0/2"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_message_id_that_a_task_of_the_queue_has_already_starts_nothing() {
        flow("f", &["'a'"]);
        let first = start("f", "{}");
        run("select pgmq.drop_queue('f'), pgmq.create('f')");
        let refusal = failure("select pgflow.start_flow('f', '{}')");
        assert_eq!(refusal.code, "23505");
        assert!(
            refusal.message.contains("idx_step_tasks_queue_message"),
            "{refusal:?}"
        );
        assert_eq!(rows("select run_id from pgflow.runs"), [first.to_string()]);
        assert_eq!(messages("f"), "0/0");
    }
}
