//! queue_depth: what PGMQ measures of a flow's queues, with the tasks that should be in them and the workers there.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    /// `flow queue length/ever, unfinished tasks, live workers` of each row.
    fn depths(arguments: &str) -> Vec<String> {
        rows(&format!(
            "select format('%s %s %s/%s, %s, %s', flow_slug, queue_name, coalesce(queue_length::text, '?'),
                           coalesce(total_messages::text, '?'), unfinished_tasks, live_workers)
             from pgflow.queue_depth({arguments})"
        ))
    }

    #[pg_test]
    fn a_queue_s_depth_follows_its_messages() {
        flow("f", &["'m', step_type => 'map'"]);
        assert_eq!(depths("'f'"), ["f f 0/0, 0, 0"]);
        let id = start("f", "[1, 2, 3]");
        assert_eq!(depths("'f'"), ["f f 3/3, 3, 0"]);
        claim_ids("f", "select msg_id from pgmq.q_f where msg_id < 3");
        complete(id, "m", 0, "1");
        run(
            "insert into pgflow.workers (worker_id, queue_name, function_name)
             values (gen_random_uuid(), 'F', 'test'), (gen_random_uuid(), 'f', 'test')",
        );
        assert_eq!(depths("'f'"), ["f f 2/3, 2, 2"]);
    }

    #[pg_test]
    fn messages_that_no_worker_sees_yet_are_not_in_the_visible_length() {
        flow("f", &["'m', step_type => 'map'"]);
        start("f", "[1, 2, 3]");
        run("update pgmq.q_f set vt = now() + make_interval(secs => msg_id - 2)");
        assert_eq!(
            text("select queue_length || ' ' || queue_visible_length from pgflow.queue_depth('f')"),
            "3 2"
        );
    }

    #[pg_test]
    fn ages_are_those_of_the_oldest_and_the_newest_message() {
        flow("f", &["'m', step_type => 'map'"]);
        let ages = "select concat_ws(' ', oldest_msg_age_sec, newest_msg_age_sec) from pgflow.queue_depth('f')";
        assert_eq!(text(ages), "");
        start("f", "[1, 2, 3]");
        run("update pgmq.q_f set enqueued_at = now() - make_interval(secs => msg_id * 100)");
        assert_eq!(text(ages), "300 100");
    }

    #[pg_test]
    fn without_an_argument_every_flow_is_measured() {
        flow("b", &["'x'"]);
        flow("A", &[]);
        start("b", "{}");
        let all = ["A a 0/0, 0, 0", "b b 1/1, 1, 0"];
        assert_eq!(depths(""), all);
        assert_eq!(depths("null"), all);
        assert_eq!(depths("flow_slug => 'b'"), all[1..]);
        assert_eq!(depths("'a'"), NONE);
    }

    #[pg_test]
    fn queues_that_steps_are_routed_to_and_tasks_were_sent_to_are_measured() {
        flow("f", &["'a'", "'b'"]);
        route("f", "a", "old");
        start("f", "{}");
        route("f", "a", "new");
        assert_eq!(
            depths("'f'"),
            ["f f 1/1, 1, 0", "f new 0/0, 0, 0", "f old 1/1, 1, 0"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_lost_message_shows_as_a_task_more_than_the_queue_has_messages() {
        flow("f", &["'m', step_type => 'map'"]);
        start("f", "[1, 2, 3]");
        run("select pgmq.delete('f', 2::bigint)");
        assert_eq!(depths("'f'"), ["f f 2/3, 3, 0"]);
    }

    #[pg_test]
    fn tasks_that_recovery_gave_up_should_have_no_message() {
        flow("f", &["'a'"]);
        start("f", "{}");
        claim("f");
        run("update pgflow.step_tasks set queued_at = now() - interval '1 day', started_at = now() - interval '1 hour', requeued_count = 3;
             select pgflow.requeue_stalled_tasks()");
        assert_eq!(depths("'f'"), ["f f 0/1, 0, 0"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_queue_listed_in_mixed_case_is_measured_once() {
        flow("Mixed", &["'a'"]);
        run("update pgmq.meta set queue_name = 'Mixed' where queue_name = 'mixed'");
        start("Mixed", "{}");
        assert_eq!(depths("'Mixed'"), ["Mixed mixed 1/1, 1, 0"]);
        run("insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('mixed', false, false)");
        assert_eq!(depths("'Mixed'"), ["Mixed mixed 1/1, 1, 0"]);
    }

    #[pg_test]
    fn a_queue_that_is_not_listed_has_no_measures() {
        flow("f", &["'a'"]);
        flow("g", &[]);
        run("select pgmq.drop_queue('f')");
        assert_eq!(depths(""), ["f f ?/?, 0, 0", "g g 0/0, 0, 0"]);
    }

    #[pg_test]
    fn a_listed_queue_whose_table_is_gone_is_an_error() {
        flow("f", &["'a'"]);
        run("drop table pgmq.q_f");
        assert_eq!(failure("select pgflow.queue_depth('f')").code, "42P01");
    }

    #[pg_test]
    fn a_queue_s_depth_needs_the_right_to_read_tables_and_queues() {
        flow("f", &["'a'"]);
        run("create role pgflow_viewer; grant usage on schema pgflow to pgflow_viewer;
             create function pg_temp.code() returns text language plpgsql as
             $$ begin perform * from pgflow.queue_depth(); return 'done'; exception when others then return sqlstate; end $$");
        let code = || {
            run("set local role pgflow_viewer");
            let code = text("select pg_temp.code()");
            run("reset role");
            code
        };
        assert_eq!(code(), "42501");
        run("grant select on all tables in schema pgflow to pgflow_viewer");
        assert_eq!(code(), "42501");
        run("grant usage on schema pgmq to pgflow_viewer; grant select on all tables in schema pgmq to pgflow_viewer;
             grant select on all sequences in schema pgmq to pgflow_viewer");
        assert_eq!(code(), "done");
    }

    /// A view on `pgmq.metrics` would keep PGMQ's updates from replacing it, as that from 1.4.5 to 1.5.0 does.
    #[pg_test]
    fn queues_are_measured_by_pgmq_1_5_1_too_and_pgmq_can_replace_what_measures() {
        flow("f", &["'a'"]);
        let ages = "select concat_ws(' ', queue_visible_length, oldest_msg_age_sec, newest_msg_age_sec) from pgflow.queue_depth('f')";
        assert_eq!(text(ages), "0");
        run(include_str!("../fixtures/metrics_1_5_1.sql"));
        start("f", "{}");
        run("update pgmq.q_f set vt = now(), enqueued_at = now() - interval '10 seconds'");
        assert_eq!(depths("'f'"), ["f f 1/1, 1, 0"]);
        assert_eq!(text(ages), "1 10 10");
    }
}
