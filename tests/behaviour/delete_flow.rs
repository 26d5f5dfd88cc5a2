//! delete_flow_and_data: a flow, all that ran of it and its queues are gone, or nothing is.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    const QUEUES: &str = "select queue_name from pgmq.list_queues() order by 1";
    /// Every table of every queue.
    const TABLES: &str = "select relname from pg_class
        where relnamespace = 'pgmq'::regnamespace and relkind = 'r' and relname ~ '^[qa]_' order by 1";

    fn delete(slug: &str) {
        run(&format!("select pgflow.delete_flow_and_data('{slug}')"));
    }

    /// How many rows of a flow each table has; those of other flows do not count.
    fn rows_of(slug: &str) -> String {
        text(&format!(
            "select format('%s flows, %s steps, %s deps, %s runs, %s states, %s tasks',
               (select count(*) from pgflow.flows where flow_slug = '{slug}'),
               (select count(*) from pgflow.steps where flow_slug = '{slug}'),
               (select count(*) from pgflow.deps where flow_slug = '{slug}'),
               (select count(*) from pgflow.runs where flow_slug = '{slug}'),
               (select count(*) from pgflow.step_states where flow_slug = '{slug}'),
               (select count(*) from pgflow.step_tasks where flow_slug = '{slug}'))"
        ))
    }
    const NO_ROWS: &str = "0 flows, 0 steps, 0 deps, 0 runs, 0 states, 0 tasks";

    /// Everything stored about a flow.
    fn everything(slug: &str) -> Vec<String> {
        ["flows", "steps", "deps", "runs", "step_states", "step_tasks"]
            .iter()
            .flat_map(|table| {
                rows(&format!(
                    "select (t.ctid, t)::text from pgflow.{table} t where flow_slug = '{slug}' order by t.ctid"
                ))
            })
            .collect()
    }

    /// Has every dropped table leave a NOTICE.
    fn watch_drops() {
        run("create function public.tell_drop() returns event_trigger language plpgsql as $$
             declare dropped record;
             begin
               for dropped in select * from pg_event_trigger_dropped_objects() where object_type = 'table' loop
                 raise notice 'dropped %', dropped.object_identity;
               end loop;
             end $$;
             create event trigger tell_drop on sql_drop execute function public.tell_drop()");
    }

    /// The deletion is refused with this SQLSTATE, before anything is dropped, and nothing is lost.
    fn refused(slug: &str, code: &str) {
        let before = (everything(slug), rows(QUEUES), rows(TABLES));
        watch_drops();
        let logged = logged(|| {
            let failure = failure(&format!("select pgflow.delete_flow_and_data('{slug}')"));
            assert_eq!(failure.code, code, "{failure:?}");
        });
        assert!(
            !logged.iter().any(|line| line.contains("dropped")),
            "{logged:?}"
        );
        assert_eq!((everything(slug), rows(QUEUES), rows(TABLES)), before);
    }

    // What goes.

    #[pg_test]
    fn deletion_leaves_no_row_and_no_queue_of_a_flow() {
        flow("f", &DIAMOND);
        let done = start("f", "{}");
        claim("f");
        complete(done, "a", 0, "1");
        start("f", "{}");
        claim("f");
        start("f", "{}");
        delete("f");
        assert_eq!(rows_of("f"), NO_ROWS);
        assert_eq!(rows(QUEUES), NONE);
        assert_eq!(rows(TABLES), NONE);
        invariants_hold();
    }

    #[pg_test]
    fn deletion_takes_runs_and_tasks_of_every_status() {
        flow(
            "f",
            &[
                "'a', max_attempts => 1",
                "'b'",
                "'c', required_input_pattern => '{\"never\": 1}'",
                "'d', array['c']",
            ],
        );
        let failed = start("f", "{}");
        claim("f");
        fail(failed, "a", 0, "x");
        let completed = start("f", "{}");
        claim("f");
        for step in ["a", "b", "d"] {
            complete(completed, step, 0, "1");
            claim("f");
        }
        let skipped = start("f", "{}");
        run(&format!(
            "select pgflow._cascade_force_skip_steps('{skipped}', 'a', 'condition_unmet')"
        ));
        assert_eq!(
            rows("select distinct status from pgflow.step_tasks order by 1"),
            ["cancelled", "completed", "failed", "queued", "skipped"]
        );
        delete("f");
        assert_eq!(rows_of("f"), NO_ROWS);
        invariants_hold();
    }

    #[pg_test]
    fn deletion_takes_its_argument_by_name() {
        flow("f", &["'a'"]);
        run("select pgflow.delete_flow_and_data(p_flow_slug => 'f')");
        assert_eq!(rows_of("f"), NO_ROWS);
    }

    #[pg_test]
    fn deletion_drops_the_default_queue_of_a_flow_without_steps() {
        run("select pgflow.create_flow('OrderFlow')");
        delete("OrderFlow");
        assert_eq!(rows_of("OrderFlow"), NO_ROWS);
        assert_eq!(rows(QUEUES), NONE);
        assert_eq!(rows(TABLES), NONE);
    }

    #[pg_test]
    fn deletion_drops_every_queue_that_a_step_is_routed_to() {
        flow("f", &["'a'", "'b'", "'c'", "'d'"]);
        route("f", "b", "second");
        route("f", "c", "third");
        route("f", "d", "second");
        run("select pgmq.create('unrelated')");
        start("f", "{}");
        let logged = logged(|| delete("f"));
        assert_eq!(logged, NONE);
        assert_eq!(rows(QUEUES), ["unrelated"]);
        assert_eq!(rows(TABLES), ["a_unrelated", "q_unrelated"]);
        assert_eq!(rows_of("f"), NO_ROWS);
    }

    #[pg_test]
    fn deletion_leaves_a_default_queue_that_no_step_is_routed_to() {
        flow("f", &["'a'"]);
        route("f", "a", "elsewhere");
        delete("f");
        assert_eq!(rows(QUEUES), ["f"]);
        assert_eq!(rows_of("f"), NO_ROWS);
    }

    #[pg_test]
    fn deletion_drops_a_queue_under_its_listed_spelling() {
        run("select pgflow.create_flow('OrderFlow'), pgmq.drop_queue('orderflow'), pgmq.create('OrderFlow')");
        run("select pgflow.add_step('OrderFlow', 'a'), pgflow.add_step('OrderFlow', 'b')");
        run("select pgmq.create('Second')");
        run("update pgflow.steps set queue_name = 'second' where step_slug = 'b'");
        start("OrderFlow", "{}");
        delete("OrderFlow");
        assert_eq!(rows(QUEUES), NONE);
        assert_eq!(rows(TABLES), NONE);
        assert_eq!(rows_of("OrderFlow"), NO_ROWS);
    }

    #[pg_test]
    fn deletion_drops_an_empty_flow_s_queue_under_its_spelling() {
        run("select pgflow.create_flow('OrderFlow'), pgmq.drop_queue('orderflow'), pgmq.create('OrderFlow')");
        delete("OrderFlow");
        assert_eq!(rows(QUEUES), NONE);
        assert_eq!(rows(TABLES), NONE);
    }

    #[pg_test]
    fn deletion_archives_no_message_first() {
        flow("f", &["'a'", "'m', step_type => 'map'"]);
        start("f", "[1, 2]");
        claim("f");
        run(
            "create function public.refuse() returns trigger language plpgsql as $$
             begin raise exception 'a message was moved'; end $$;
             create trigger no_message before insert on pgmq.a_f execute function public.refuse();
             create trigger no_message before delete on pgmq.q_f execute function public.refuse()",
        );
        delete("f");
        assert_eq!(rows(TABLES), NONE);
    }

    #[pg_test]
    fn deletion_sends_no_event() {
        record_events();
        flow("f", &["'a'"]);
        start("f", "{}");
        let before = events();
        delete("f");
        assert_eq!(events(), before);
    }

    #[pg_test]
    fn deletion_locks_the_normalized_slug() {
        let locks = || {
            text(
                "select count(*) from pg_locks
                 where locktype = 'advisory' and pid = pg_backend_pid() and granted and objsubid = 2
                   and classid = 1 and objid = (hashtext('orderflow')::bigint & 4294967295)::oid",
            )
        };
        run("insert into pgflow.flows (flow_slug) values ('OrderFlow'); select pgmq.create('orderflow')");
        assert_eq!(locks(), "0");
        delete("OrderFlow");
        assert_eq!(locks(), "1");
    }

    // What stays.

    #[pg_test]
    fn deletion_leaves_other_flows_alone() {
        flow("f", &["'a'", "'b', array['a']"]);
        flow("f2", &["'a'", "'b', array['a']"]);
        start("f", "{}");
        let other = start("f2", "{}");
        claim("f");
        claim("f2");
        let before = (everything("f2"), text("select q::text from pgmq.q_f2 q"));
        delete("f");
        assert_eq!(
            (everything("f2"), text("select q::text from pgmq.q_f2 q")),
            before
        );
        assert_eq!(rows(QUEUES), ["f2"]);
        complete(other, "a", 0, "1");
        claim("f2");
        complete(other, "b", 0, "2");
        assert_eq!(outcome(other), "completed {\"b\": 2}");
        invariants_hold();
    }

    #[pg_test]
    fn deletion_leaves_workers_and_their_functions() {
        flow("f", &["'a'"]);
        start("f", "{}");
        claim("f");
        run("select pgflow.track_worker_function('f')");
        let before = rows("select w::text from pgflow.workers w");
        delete("f");
        assert_eq!(rows("select w::text from pgflow.workers w"), before);
        assert_eq!(
            rows("select function_name from pgflow.worker_functions"),
            ["f"]
        );
    }

    #[pg_test]
    fn deleting_a_slug_in_another_case_does_nothing() {
        flow("OrderFlow", &["'a'"]);
        start("OrderFlow", "{}");
        let before = (everything("OrderFlow"), rows(QUEUES), messages("orderflow"));
        let logged = logged(|| {
            delete("orderflow");
            delete("ORDERFLOW");
        });
        assert_eq!(logged, NONE);
        assert_eq!(
            (everything("OrderFlow"), rows(QUEUES), messages("orderflow")),
            before
        );
        invariants_hold();
    }

    #[pg_test]
    fn deleting_an_unknown_flow_leaves_a_queue_of_its_name() {
        run("select pgmq.create('nope')");
        let logged = logged(|| {
            delete("nope");
            delete("Nope");
            delete("");
            run("select pgflow.delete_flow_and_data(null)");
        });
        assert_eq!(logged, NONE);
        assert_eq!(rows(QUEUES), ["nope"]);
        assert_eq!(messages("nope"), "0/0");
    }

    #[pg_test]
    fn deleting_a_flow_twice_is_no_error() {
        flow("f", &["'a'"]);
        delete("f");
        assert_eq!(logged(|| delete("f")), NONE);
    }

    #[pg_test]
    fn a_deleted_flow_can_be_created_and_run_again() {
        flow("f", &["'a'", "'b', array['a']"]);
        start("f", "{}");
        claim("f");
        delete("f");
        flow("f", &["'z'"]);
        let id = start("f", "{}");
        assert_eq!(claim("f"), ["z[0] {}"]);
        complete(id, "z", 0, "1");
        assert_eq!(outcome(id), "completed {\"z\": 1}");
        assert_eq!(messages("f"), "0/1");
        invariants_hold();
    }

    #[pg_test]
    fn a_deleted_flow_can_be_created_again_in_another_case() {
        flow("OrderFlow", &["'a'"]);
        delete("OrderFlow");
        flow("orderFlow", &["'a'"]);
        let id = start("orderFlow", "{}");
        claim("orderFlow");
        complete(id, "a", 0, "1");
        assert_eq!(outcome(id), "completed {\"a\": 1}");
        invariants_hold();
    }

    // What PGMQ lists, and what it does not drop.

    #[pg_test]
    fn a_queue_that_is_not_listed_does_not_stop_deletion() {
        flow("f", &["'a'", "'b'", "'c'"]);
        route("f", "b", "second");
        route("f", "c", "third");
        start("f", "{}");
        run("select pgmq.drop_queue('second')");
        let logged = logged(|| delete("f"));
        assert_eq!(logged.len(), 1, "{logged:?}");
        assert!(logged[0].starts_with("NOTICE: "), "{logged:?}");
        assert!(logged[0].contains("\"second\""), "{logged:?}");
        assert_eq!(rows_of("f"), NO_ROWS);
        assert_eq!(rows(QUEUES), NONE);
        assert_eq!(rows(TABLES), NONE);
    }

    #[pg_test]
    fn an_empty_flow_s_queue_that_is_not_listed_gives_a_notice() {
        run("select pgflow.create_flow('f'), pgmq.drop_queue('f')");
        let logged = logged(|| delete("f"));
        assert_eq!(logged.len(), 1, "{logged:?}");
        assert!(logged[0].contains("\"f\""), "{logged:?}");
        assert_eq!(rows_of("f"), NO_ROWS);
    }

    #[pg_test]
    fn an_ambiguous_queue_is_refused_before_anything_is_dropped() {
        flow("f", &["'a'", "'b'", "'c'"]);
        route("f", "b", "earlier");
        route("f", "c", "z_later");
        start("f", "{}");
        run("insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('F', false, false)");
        refused("f", "42725");
        invariants_hold();
    }

    #[pg_test]
    fn an_ambiguous_queue_of_a_step_is_refused_too() {
        flow("f", &["'a'", "'b'"]);
        route("f", "b", "second");
        start("f", "{}");
        run("insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('SECOND', false, false)");
        refused("f", "42725");
    }

    #[pg_test]
    fn an_ambiguous_queue_of_an_empty_flow_is_refused_too() {
        run("select pgflow.create_flow('f')");
        run("insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('F', false, false)");
        refused("f", "42725");
    }

    #[pg_test]
    fn an_ambiguous_queue_of_another_flow_does_not_matter() {
        flow("f", &["'a'"]);
        flow("g", &["'a'"]);
        run("insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('G', false, false)");
        delete("f");
        assert_eq!(rows(QUEUES), ["G", "g"]);
        assert_eq!(rows_of("f"), NO_ROWS);
    }

    #[pg_test]
    fn the_refusal_of_an_ambiguous_queue_names_its_spellings() {
        run("select pgflow.create_flow('f')");
        run("insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('F', false, false)");
        let failure = failure("select pgflow.delete_flow_and_data('f')");
        let said = format!("{} {}", failure.message, failure.detail);
        assert!(
            said.contains("F, f") || said.contains("f, F"),
            "{failure:?}"
        );
    }

    #[pg_test]
    fn a_listed_queue_that_pgmq_does_not_drop_is_an_error() {
        flow("f", &["'a'", "'b'"]);
        route("f", "b", "z_later");
        let id = start("f", "{}");
        run("drop table pgmq.q_z_later");
        let before = (everything("f"), rows(QUEUES), rows(TABLES), messages("f"));
        let failure = failure("select pgflow.delete_flow_and_data('f')");
        assert_eq!(failure.code, "55000");
        assert!(failure.message.contains("\"z_later\""), "{failure:?}");
        assert_eq!(
            (everything("f"), rows(QUEUES), rows(TABLES), messages("f")),
            before
        );
        assert_eq!(tasks(id), ["a[0]:queued", "b[0]:queued"]);
    }

    #[pg_test]
    fn an_error_after_the_queues_were_dropped_brings_them_back() {
        flow("f", &["'a'", "'b'"]);
        route("f", "b", "second");
        let id = start("f", "{}");
        run(&format!(
            "create table public.report (run_id uuid references pgflow.runs (run_id));
             insert into public.report values ('{id}')"
        ));
        let before = (everything("f"), rows(QUEUES), rows(TABLES));
        assert_eq!(
            failure("select pgflow.delete_flow_and_data('f')").code,
            "23503"
        );
        assert_eq!((everything("f"), rows(QUEUES), rows(TABLES)), before);
        assert_eq!([messages("f"), messages("second")], ["1/0", "1/0"]);
        invariants_hold();
    }
}
