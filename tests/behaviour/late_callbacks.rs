//! Reports that come too late: on a failed run, or about a step that is not started. The message is archived through
//! the task's stored queue and nothing else changes.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// A run that failed by `a` while `b` was being worked on, whose messages are back in the queue.
    fn failed_run() -> Uuid {
        flow("f", &["'a', max_attempts => 1", "'b'", "'c', array['b']"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        assert_eq!(messages("f"), "0/2");
        unarchive("f");
        id
    }

    /// A run whose step `a` was skipped while it was being worked on, with its message back in the queue.
    fn run_with_skipped_step() -> Uuid {
        flow("f", &["'a'", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        run(&format!(
            "select pgflow._cascade_force_skip_steps('{id}', 'a', 'condition_unmet')"
        ));
        assert_eq!(messages("f"), "1/1");
        unarchive("f");
        id
    }

    #[pg_test]
    fn a_result_on_a_failed_run_only_archives_the_message() {
        let id = failed_run();
        let before = snapshot(id);
        assert_eq!(complete(id, "b", 0, "1"), "cancelled");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/1");
        assert_eq!(
            text("select msg_id from pgmq.a_f"),
            of_task(id, "b", 0, "message_id")
        );
    }

    #[pg_test]
    fn a_failure_on_a_failed_run_only_archives_the_message() {
        let id = failed_run();
        let before = snapshot(id);
        assert_eq!(fail(id, "b", 0, "y"), "cancelled");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/1");
        assert_eq!(
            text("select msg_id from pgmq.a_f"),
            of_task(id, "b", 0, "message_id")
        );
    }

    #[pg_test]
    fn a_result_of_a_skipped_step_only_archives_the_message() {
        let id = run_with_skipped_step();
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "1"), "skipped");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_failure_of_a_skipped_step_only_archives_the_message() {
        let id = run_with_skipped_step();
        let before = snapshot(id);
        assert_eq!(fail(id, "a", 0, "x"), "skipped");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_second_result_of_a_completed_step_archives_its_message() {
        flow("f", &["'a'", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        unarchive("f");
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "2"), "completed");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_failure_of_a_completed_step_archives_its_message() {
        flow("f", &["'a'", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        unarchive("f");
        let before = snapshot(id);
        assert_eq!(fail(id, "a", 0, "x"), "completed");
        assert_eq!(snapshot(id), before);
        assert_eq!(messages("f"), "1/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_late_callback_after_the_message_was_archived_is_no_error() {
        flow("f", &["'a', max_attempts => 1", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        assert_eq!(complete(id, "b", 0, "1"), "cancelled");
        assert_eq!(fail(id, "b", 0, "1"), "cancelled");
        assert_eq!(messages("f"), "0/2");
        invariants_hold();
    }

    #[pg_test]
    fn a_late_callback_of_a_task_without_a_message_is_no_error() {
        let id = failed_run();
        run("set local session_replication_role = 'replica'; update pgflow.step_tasks set message_id = null;
             set local session_replication_role = 'origin'");
        assert_eq!(complete(id, "b", 0, "1"), "cancelled");
        assert_eq!(fail(id, "b", 0, "x"), "cancelled");
        assert_eq!(messages("f"), "2/0");
    }

    /// Found by the random model: the message was taken for archived, because the task had stalled for good.
    #[pg_test]
    fn a_late_callback_archives_a_message_that_came_back_after_a_final_stall() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        run("update pgflow.step_tasks set requeued_count = 3, queued_at = queued_at - interval '1 h',
                    started_at = started_at - interval '1 h'");
        run("select pgflow.requeue_stalled_tasks()");
        complete(id, "a", 0, "1");
        assert_eq!(of_run(id, "status"), "completed");
        unarchive("f");
        assert_eq!(messages("f"), "1/0");
        complete(id, "a", 0, "2");
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_late_callback_returns_the_task_s_row() {
        let id = failed_run();
        let of = |call: &str| {
            text(&format!(
                "select to_jsonb(t) from pgflow.{call}_task('{id}', 'b', 0, null) t"
            ))
        };
        let row = of_task(id, "b", 0, "to_jsonb(step_tasks)");
        assert_eq!(of("complete"), row);
        assert_eq!(of("fail"), row);
    }

    #[pg_test]
    fn a_late_callback_archives_through_the_stored_queue() {
        flow("f", &["'a', max_attempts => 1", "'b'"]);
        route("f", "b", "elsewhere");
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        unarchive("f");
        unarchive("elsewhere");
        assert_eq!(
            of_task(id, "a", 0, "message_id"),
            of_task(id, "b", 0, "message_id")
        );
        complete(id, "b", 0, "1");
        assert_eq!(messages("elsewhere"), "0/1");
        assert_eq!(messages("f"), "1/0");
    }

    #[pg_test]
    fn a_late_result_violates_no_type() {
        flow(
            "f",
            &[
                "'a'",
                "'m', array['a'], step_type => 'map'",
                "'z', max_attempts => 1",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        fail(id, "z", 0, "x");
        let before = snapshot(id);
        assert_eq!(complete(id, "a", 0, "{}"), "cancelled");
        assert_eq!(snapshot(id), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_late_callback_sends_no_event() {
        record_events();
        let id = failed_run();
        let before = events();
        complete(id, "b", 0, "1");
        fail(id, "b", 0, "x");
        assert_eq!(events(), before);
    }
}
