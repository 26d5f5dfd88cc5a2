//! Which of PGMQ's functions are called when: only definition and deletion list, create and drop queues; messages are
//! read by workers alone, and moved one by one or in one batch per queue.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// From now on, calling one of PGMQ's functions is an error: all of a name, or the one with these arguments.
    fn forbid(function: &str) {
        let replaced = rows(&format!(
            "select format('create or replace function pgmq.%I(%s) returns %s language plpgsql as
                            $f$ begin raise exception ''%s is called''; end $f$',
                           p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
                           p.oid::regprocedure)
             from pg_proc p
             where p.pronamespace = 'pgmq'::regnamespace
               and '{function}' in (p.proname, replace(p.oid::regprocedure::text, 'pgmq.', ''))"
        ));
        assert!(!replaced.is_empty(), "PGMQ has no {function}");
        for statement in replaced {
            run(&statement);
        }
    }

    /// The calls that [`forbid`] has made an error, as they are met.
    fn forbidden(sql: &str, function: &str) {
        let refusal = failure(sql);
        assert!(
            refusal.message.starts_with("pgmq.")
                && refusal.message.contains(function)
                && refusal.message.ends_with("is called"),
            "{sql}: {refusal:?}"
        );
    }

    /// A flow with all that can happen to a task: retries, skips, cascades, conditions, maps. Two of its steps go
    /// another way.
    fn define() {
        flow(
            "whole",
            &[
                "'a', max_attempts => 2, base_delay => 0",
                "'m', array['a'], step_type => 'map'",
                "'s', max_attempts => 1, when_exhausted => 'skip'",
                "'after_s', array['s']",
                "'k', max_attempts => 1, when_exhausted => 'skip-cascade'",
                "'after_k', array['k']",
                "'c', required_input_pattern => '{\"never\": 1}'",
            ],
        );
        route("whole", "m", "aside");
        route("whole", "s", "aside");
    }

    fn work() -> usize {
        claim("whole").len() + claim_from("whole", "aside").len()
    }

    fn stall(id: Uuid) -> String {
        run(&format!(
            "update pgflow.step_tasks
             set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
             where run_id = '{id}' and status = 'started'"
        ));
        text("select pgflow.requeue_stalled_tasks()")
    }

    /// Everything that happens to messages between definition and deletion.
    fn whole_life() {
        retried_recovered_and_completed();
        failed_with_late_reports();
        of_the_wrong_type();
        stalled_for_good();
    }

    fn retried_recovered_and_completed() {
        let id = start("whole", "{}");
        assert_eq!(work(), 3);
        assert_eq!(fail(id, "a", 0, "x"), "queued");
        assert_eq!(fail(id, "s", 0, "x"), "failed");
        assert_eq!(fail(id, "k", 0, "x"), "failed");
        assert_eq!(work(), 2);
        assert_eq!(stall(id), "2");
        assert_eq!(work(), 2);
        assert_eq!(complete(id, "a", 0, "[7, 8]"), "completed");
        assert_eq!(work(), 2);
        for (step, index) in [("m", 0), ("m", 1), ("after_s", 0)] {
            assert_eq!(complete(id, step, index, "1"), "completed");
        }
        assert_eq!(outcome(id), "completed {\"m\": [1, 1], \"after_s\": 1}");
    }

    fn failed_with_late_reports() {
        let id: Uuid = one(
            "select (pgflow.start_flow_with_states('whole', '{}') -> 'run' ->> 'run_id')::uuid",
        );
        work();
        fail(id, "a", 0, "x");
        work();
        assert_eq!(fail(id, "a", 0, "x"), "failed");
        assert_eq!(complete(id, "s", 0, "1"), "cancelled");
        assert_eq!(fail(id, "k", 0, "1"), "cancelled");
        run(&format!(
            "select pgflow._archive_task_message('{id}', 's', 0)"
        ));
    }

    fn of_the_wrong_type() {
        let id = start("whole", "{}");
        work();
        assert_eq!(complete(id, "a", 0, "{}"), "failed");
    }

    fn stalled_for_good() {
        let id = start("whole", "{}");
        for requeued in ["3", "3", "3", "0"] {
            assert_eq!(work(), 3);
            assert_eq!(stall(id), requeued);
        }
        run("select pgflow.set_vt_batch('whole', '{1, 2}', '{0, 0}')");
        assert_eq!(messages("whole").split('/').next(), Some("0"));
        assert_eq!(messages("aside").split('/').next(), Some("0"));
    }

    #[pg_test]
    fn no_message_operation_lists_queues() {
        define();
        forbid("list_queues");
        whole_life();
        run("select pgflow.add_step('whole', 'z')");
        whole_life_of_new_step();
        invariants_hold();
    }

    fn whole_life_of_new_step() {
        let id = start("whole", "{}");
        work();
        assert_eq!(complete(id, "z", 0, "1"), "completed");
    }

    #[pg_test]
    fn definition_and_deletion_list_queues() {
        define();
        forbid("list_queues");
        forbidden("select pgflow.create_flow('new')", "list_queues");
        forbidden(
            "select pgflow.ensure_flow_compiled('new', '{\"steps\": []}')",
            "list_queues",
        );
        forbidden("select pgflow.delete_flow_and_data('whole')", "list_queues");
    }

    #[pg_test]
    fn no_message_operation_creates_alters_or_drops_anything() {
        define();
        for function in [
            "create",
            "create_non_partitioned",
            "create_unlogged",
            "drop_queue",
            "purge_queue",
        ] {
            forbid(function);
        }
        run("create function pgflow_invariants.refuse_ddl() returns event_trigger language plpgsql as $$
             begin raise exception 'ddl: %', tg_tag; end $$");
        run("create event trigger no_ddl on ddl_command_start execute function pgflow_invariants.refuse_ddl()");
        whole_life();
        run("drop event trigger no_ddl");
        invariants_hold();
    }

    #[pg_test]
    fn a_claim_reads_no_message_again() {
        flow("f", &["'a'", "'m', step_type => 'map'"]);
        start("f", "[7, 8]");
        run("select pgmq.read('f', 30, 1000)");
        let before = rows("select to_jsonb(q) - 'vt' from pgmq.q_f q order by msg_id");
        for function in ["read", "read_with_poll", "pop"] {
            forbid(function);
        }
        assert_eq!(claim_ids("f", "values (1::bigint)"), ["a[0] {}"]);
        assert_eq!(
            claim_ids("f", "values (2::bigint), (3)"),
            ["m[0] 7", "m[1] 8"]
        );
        assert_eq!(
            rows("select to_jsonb(q) - 'vt' from pgmq.q_f q order by msg_id"),
            before
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_message_s_body_is_never_looked_at() {
        define();
        run("create function pgflow_invariants.spoil() returns trigger language plpgsql as $$
             begin
               new.message := '{\"flow_slug\": \"other\", \"run_id\": 7, \"step_slug\": \"nope\", \"task_index\": -1}';
               return new;
             end $$");
        for queue in ["whole", "aside"] {
            run(&format!(
                "create trigger spoil before insert on pgmq.q_{queue} for each row
                 execute function pgflow_invariants.spoil()"
            ));
        }
        assert!(logged(whole_life).is_empty());
        invariants_hold();
    }

    // One task: PGMQ's call for one message. Several: one call for each queue.

    #[pg_test]
    fn one_task_is_sent_claimed_retried_recovered_and_archived_alone() {
        flow("f", &["'a', base_delay => 0"]);
        for function in [
            "send_batch",
            "archive(text,bigint[])",
            "set_vt(text,bigint[],integer)",
            "delete",
        ] {
            forbid(function);
        }
        let id = start("f", "{}");
        claim("f");
        fail(id, "a", 0, "x");
        claim("f");
        assert_eq!(stall(id), "1");
        claim("f");
        complete(id, "a", 0, "1");
        assert_eq!(outcome(id), "completed {\"a\": 1}");
        invariants_hold();
    }

    #[pg_test]
    fn one_claimed_message_is_hidden_by_pgmq_s_own_function() {
        flow("f", &["'a'"]);
        start("f", "{}");
        forbid("set_vt(text,bigint,integer)");
        forbidden("select pgflow.start_tasks('f', '{1}', null)", "set_vt");
    }

    #[pg_test]
    fn several_tasks_are_sent_claimed_recovered_and_archived_in_one_batch() {
        flow("f", &["'m', step_type => 'map', max_attempts => 1"]);
        for function in [
            "send(text,jsonb,integer)",
            "set_vt(text,bigint,integer)",
            "archive(text,bigint)",
        ] {
            forbid(function);
        }
        let id = start("f", "[7, 8, 9]");
        assert_eq!(claim("f").len(), 3);
        assert_eq!(stall(id), "3");
        assert_eq!(claim("f").len(), 3);
        assert_eq!(fail(id, "m", 1, "x"), "failed");
        assert_eq!(messages("f"), "0/3");
        invariants_hold();
    }

    // Deletion.

    #[pg_test]
    fn deletion_archives_and_deletes_no_message() {
        define();
        let id = start("whole", "{}");
        work();
        for function in ["archive", "delete", "purge_queue", "read", "set_vt"] {
            forbid(function);
        }
        run("select pgflow.delete_flow_and_data('whole')");
        assert_eq!(snapshot(id), NONE);
        assert_eq!(rows("select queue_name from pgmq.list_queues()"), NONE);
    }

    #[pg_test]
    fn a_queue_that_cannot_be_dropped_leaves_the_flow_whole() {
        define();
        let id = start("whole", "{}");
        let queues = || (messages("whole"), messages("aside"));
        let before = (snapshot(id), queues());
        forbid("drop_queue(text)");
        forbidden("select pgflow.delete_flow_and_data('whole')", "drop_queue");
        assert_eq!((snapshot(id), queues()), before);
        assert_eq!(rows("select flow_slug from pgflow.flows"), ["whole"]);
        assert_eq!(work(), 3);
        invariants_hold();
    }

    #[pg_test]
    fn a_queue_that_cannot_be_created_leaves_no_flow() {
        forbid("create");
        forbidden("select pgflow.create_flow('new')", "create");
        assert_eq!(rows("select flow_slug from pgflow.flows"), NONE);
    }
}
