//! A message's identity is (queue_name, message_id): stored with the task, used for everything that follows.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// Inserts a task for step `a` of a run of flow `f`, past the engine.
    fn insert_task(id: Uuid, index: i32, queue_and_message: &str) -> String {
        format!(
            "insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, queue_name, message_id)
             values ('f', '{id}', 'a', {index}, {queue_and_message})"
        )
    }

    // The stored columns.

    #[pg_test]
    fn two_tasks_cannot_have_the_same_message() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let refusal = failure(&insert_task(id, 1, "'f', 1"));
        assert_eq!(refusal.code, "23505");
        assert!(
            refusal.message.contains("idx_step_tasks_queue_message"),
            "{refusal:?}"
        );
    }

    #[pg_test]
    fn two_tasks_can_have_the_same_message_id_in_different_queues() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run(&insert_task(id, 1, "'elsewhere', 1"));
        assert_eq!(tasks(id).len(), 2);
    }

    #[pg_test]
    fn several_tasks_can_be_without_a_message() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run(&insert_task(id, 1, "'f', null"));
        run(&insert_task(id, 2, "'f', null"));
        assert_eq!(tasks(id).len(), 3);
    }

    #[pg_test]
    fn a_task_cannot_be_without_a_queue() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        assert_eq!(failure(&insert_task(id, 1, "null, 9")).code, "23502");
    }

    #[pg_test]
    fn a_task_cannot_have_an_invalid_queue() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        for queue in ["", "F", "a;b", &"q".repeat(48)] {
            let refusal = failure(&insert_task(id, 1, &format!("'{queue}', 9")));
            assert_eq!(refusal.code, "23514", "{queue}");
            assert!(refusal.message.contains("queue_name_is_valid"), "{queue}");
        }
    }

    #[pg_test]
    fn a_step_cannot_be_without_a_queue() {
        flow("f", &[]);
        assert_eq!(
            failure("insert into pgflow.steps (flow_slug, step_slug) values ('f', 'a')").code,
            "23502"
        );
    }

    #[pg_test]
    fn a_step_cannot_have_an_invalid_queue() {
        flow("f", &["'a'"]);
        for queue in ["", "F", "a;b", &"q".repeat(48)] {
            let refusal = failure(&format!("update pgflow.steps set queue_name = '{queue}'"));
            assert_eq!(refusal.code, "23514", "{queue}");
            assert!(refusal.message.contains("queue_name_is_valid"), "{queue}");
        }
    }

    #[pg_test]
    fn queue_identity_is_stored_on_steps_and_tasks_alone_and_guarded_by_no_trigger() {
        assert_eq!(
            rows("select table_name || '.' || column_name
                  from information_schema.columns join information_schema.tables using (table_schema, table_name)
                  where table_schema = 'pgflow' and table_type = 'BASE TABLE'
                    and column_name ~ 'queue_name' and table_name <> 'workers' order by 1"),
            ["step_tasks.queue_name", "steps.queue_name"]
        );
        assert_eq!(
            rows(
                "select tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
                  where c.relnamespace = 'pgflow'::regnamespace and not t.tgisinternal"
            ),
            NONE
        );
    }

    // Where messages go.

    #[pg_test]
    fn messages_are_sent_through_the_step_s_queue() {
        flow("f", &["'a'", "'m', step_type => 'map'", "'z'"]);
        route("f", "m", "elsewhere");
        let id = start("f", "[1, 2]");
        assert_eq!(messages("f"), "2/0");
        assert_eq!(messages("elsewhere"), "2/0");
        assert_eq!(
            rows("select step_slug || task_index || queue_name || message_id from pgflow.step_tasks order by 1"),
            ["a0f1", "m0elsewhere1", "m1elsewhere2", "z0f2"]
        );
        assert_eq!(tasks(id).len(), 4);
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_step_s_messages_go_to_its_own_queue() {
        flow("f", &["'a'", "'b', array['a']"]);
        route("f", "b", "elsewhere");
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(of_task(id, "b", 0, "queue_name"), "elsewhere");
        assert_eq!(messages("elsewhere"), "1/0");
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_task_keeps_its_queue_when_its_step_is_routed_elsewhere() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        route("f", "a", "elsewhere");
        claim("f");
        fail(id, "a", 0, "x");
        claim_hidden("f");
        complete(id, "a", 0, "1");
        assert_eq!(of_task(id, "a", 0, "queue_name || message_id"), "f1");
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn new_tasks_follow_the_step_s_new_queue() {
        flow("f", &["'a'"]);
        let old = start("f", "{}");
        route("f", "a", "elsewhere");
        let new = start("f", "{}");
        assert_eq!(of_task(old, "a", 0, "queue_name"), "f");
        assert_eq!(of_task(new, "a", 0, "queue_name"), "elsewhere");
        invariants_hold();
    }

    // After a task was created: everything goes through the stored queue. In each test message 1 of queue `f` is
    // step `a`'s, and message 1 of `elsewhere` is step `b`'s, which must not be touched.

    fn two_queues(of_a: &str) -> Uuid {
        flow("f", &[&format!("'a'{of_a}"), "'b'"]);
        route("f", "b", "elsewhere");
        let id = start("f", "{}");
        assert_eq!(
            rows("select queue_name || message_id from pgflow.step_tasks order by step_slug"),
            ["f1", "elsewhere1"]
        );
        id
    }

    fn elsewhere() -> String {
        text("select q::text from pgmq.q_elsewhere q")
    }

    #[pg_test]
    fn a_claim_hides_the_message_in_the_polled_queue_only() {
        let id = two_queues("");
        let other = elsewhere();
        claim("f");
        assert_eq!(tasks(id), ["a[0]:started", "b[0]:queued"]);
        assert_eq!(elsewhere(), other);
        invariants_hold();
    }

    #[pg_test]
    fn a_completion_archives_in_the_stored_queue_only() {
        let id = two_queues("");
        let other = elsewhere();
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(messages("f"), "0/1");
        assert_eq!(elsewhere(), other);
        invariants_hold();
    }

    #[pg_test]
    fn a_retry_hides_the_message_in_the_stored_queue_only() {
        let id = two_queues(", base_delay => 50");
        let other = elsewhere();
        claim("f");
        fail(id, "a", 0, "x");
        assert_eq!(visible_in("f", 1), 100);
        assert_eq!(elsewhere(), other);
        invariants_hold();
    }

    #[pg_test]
    fn an_exhausted_skip_archives_in_the_stored_queue_only() {
        let id = two_queues(", max_attempts => 1, when_exhausted => 'skip'");
        let other = elsewhere();
        claim("f");
        fail(id, "a", 0, "x");
        assert_eq!(messages("f"), "0/1");
        assert_eq!(elsewhere(), other);
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_archives_in_each_stored_queue() {
        let id = two_queues(", max_attempts => 1");
        claim("f");
        fail(id, "a", 0, "x");
        assert_eq!(tasks(id), ["a[0]:failed", "b[0]:cancelled"]);
        assert_eq!([messages("f"), messages("elsewhere")], ["0/1", "0/1"]);
        invariants_hold();
    }

    #[pg_test]
    fn two_flows_with_the_same_message_id_end_apart() {
        flow("f", &["'a', max_attempts => 1"]);
        flow("g", &["'x'"]);
        let f = start("f", "{}");
        let g = start("g", "{}");
        claim("f");
        claim("g");
        fail(f, "a", 0, "x");
        assert_eq!([messages("f"), messages("g")], ["0/1", "1/0"]);
        assert_eq!(complete(g, "x", 0, "1"), "completed");
        assert_eq!([messages("f"), messages("g")], ["0/1", "0/1"]);
        assert_eq!(
            [outcome(f), outcome(g)],
            ["failed NULL", "completed {\"x\": 1}"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_shared_queue_serves_each_flow_its_own_tasks() {
        flow("f", &["'a'"]);
        flow("g", &["'x'"]);
        route("g", "x", "f");
        let f = start("f", "{}");
        let g = start("g", "{}");
        assert_eq!(
            rows("select run_id || step_slug from pgflow.start_tasks('g', '{2}', null, 'f')"),
            [format!("{g}x")]
        );
        assert_eq!(tasks(f), ["a[0]:queued"]);
        complete(g, "x", 0, "1");
        assert_eq!(rows("select msg_id from pgmq.q_f"), ["1"]);
        invariants_hold();
    }
}
