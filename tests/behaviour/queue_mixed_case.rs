//! Queues that PGMQ lists in mixed case, as installed flows may have them: usable to the end, under one listing.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    const LISTED: &str = "select queue_name from pgmq.meta order by queue_name collate \"C\"";
    const TABLES: &str = "select tablename from pg_tables where schemaname = 'pgmq'
                          and (tablename ilike 'q\\_%' or tablename ilike 'a\\_%') order by 1";

    /// Flow `MyFlow` as 0.16.0 left it: the queue was created in the flow's spelling, the rows are there, and the
    /// steps' queue is the flow's slug in lower case.
    fn installed() {
        run("select pgmq.create('MyFlow')");
        run("insert into pgflow.flows (flow_slug) values ('MyFlow')");
        run(
            "insert into pgflow.steps (flow_slug, step_slug, step_index, queue_name)
             values ('MyFlow', 'first', 0, 'myflow')",
        );
        run(include_str!("../fixtures/terminal_rows.sql"));
        one_queue();
    }

    /// PGMQ lists the queue once, in its first spelling, and there is one pair of tables.
    fn one_queue() {
        assert_eq!(rows(LISTED), ["MyFlow"]);
        assert_eq!(rows(TABLES), ["a_myflow", "q_myflow"]);
    }

    fn stall(id: Uuid) {
        run(&format!(
            "update pgflow.step_tasks
             set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
             where run_id = '{id}' and status = 'started'"
        ));
    }

    #[pg_test]
    fn an_installed_mixed_case_flow_lives_its_whole_life_on_one_queue() {
        installed();
        run("select pgflow.create_flow('MyFlow')");
        one_queue();
        run("select pgflow.add_step('MyFlow', 'first')");
        run("select pgflow.add_step('MyFlow', 'each', array['first'], step_type => 'map')");
        one_queue();
        let id = start("MyFlow", "{}");
        assert_eq!(
            of_task(id, "first", 0, "queue_name || message_id"),
            "myflow1"
        );
        assert_eq!(claim_from("MyFlow", "MyFlow"), ["first[0] {}"]);
        assert_eq!(visible_in("myflow", 1), 62);
        assert_eq!(fail(id, "first", 0, "x"), "queued");
        assert_eq!(visible_in("myflow", 1), 2);
        assert_eq!(claim_hidden("MyFlow"), ["first[0] {}"]);
        stall(id);
        assert_eq!(text("select pgflow.requeue_stalled_tasks()"), "1");
        assert_eq!(claim_from("MyFlow", "myflow"), ["first[0] {}"]);
        one_queue();
        complete(id, "first", 0, "[7, 8, 9]");
        assert_eq!(
            claim_from("MyFlow", "MYFLOW"),
            ["each[0] 7", "each[1] 8", "each[2] 9"]
        );
        for index in 0..3 {
            complete(id, "each", index, "1");
        }
        assert_eq!(outcome(id), "completed {\"each\": [1, 1, 1]}");
        assert_eq!(messages("myflow"), "0/4");
        one_queue();
        invariants_hold();
        run("select pgflow.delete_flow_and_data('MyFlow')");
        assert_eq!(rows(LISTED), NONE);
        assert_eq!(rows(TABLES), NONE);
        assert_eq!(rows("select flow_slug from pgflow.flows"), NONE);
    }

    #[pg_test]
    fn a_mixed_case_flow_fails_and_is_cancelled_on_its_one_queue() {
        installed();
        run("select pgflow.add_step('MyFlow', 'bad', max_attempts => 1); select pgflow.add_step('MyFlow', 'other')");
        let id = start("MyFlow", "{}");
        claim("MyFlow");
        fail(id, "bad", 0, "x");
        assert_eq!(
            tasks(id),
            ["bad[0]:failed", "first[0]:cancelled", "other[0]:cancelled"]
        );
        assert_eq!(messages("myflow"), "0/3");
        one_queue();
        invariants_hold();
    }

    #[pg_test]
    fn a_mixed_case_flow_stalls_for_good_on_its_one_queue() {
        installed();
        let id = start("MyFlow", "{}");
        for _ in 0..4 {
            claim_hidden("MyFlow");
            stall(id);
            run("select pgflow.requeue_stalled_tasks()");
        }
        assert_eq!(messages("myflow"), "0/1");
        one_queue();
        invariants_hold();
    }

    #[pg_test]
    fn a_deleted_mixed_case_flow_can_be_created_again_with_a_queue_in_lower_case() {
        installed();
        run("select pgflow.delete_flow_and_data('MyFlow')");
        run("select pgflow.create_flow('MyFlow'); select pgflow.add_step('MyFlow', 'first')");
        assert_eq!(rows(LISTED), ["myflow"]);
        start("MyFlow", "{}");
        assert_eq!(claim("MyFlow"), ["first[0] {}"]);
        invariants_hold();
    }

    const OTHER_SHAPE: &str =
        r#"{"steps": [{"slug": "second", "stepType": "single", "dependencies": []}]}"#;

    fn compiled(shape: &str) -> String {
        text(&format!(
            "select pgflow.ensure_flow_compiled('MyFlow', '{shape}') ->> 'status'"
        ))
    }

    #[pg_test]
    fn compiling_an_unchanged_mixed_case_flow_leaves_its_one_queue() {
        installed();
        let same_shape = text("select pgflow._get_flow_shape('MyFlow')");
        assert_eq!(compiled(&same_shape), "verified");
        assert_eq!(compiled(OTHER_SHAPE), "mismatch");
        one_queue();
    }

    #[pg_test]
    fn recompiling_a_mixed_case_flow_locally_leaves_one_listing() {
        installed();
        run("set local app.settings.jwt_secret = 'super-secret-jwt-token-with-at-least-32-characters-long'");
        assert_eq!(compiled(OTHER_SHAPE), "recompiled");
        assert_eq!(rows(LISTED), ["myflow"]);
        assert_eq!(rows(TABLES), ["a_myflow", "q_myflow"]);
    }

    #[pg_test]
    fn a_mixed_case_queue_of_another_name_is_nobody_s_business() {
        run("select pgmq.create('MyFlow2'), pgmq.create('xMyFlow')");
        run("select pgflow.create_flow('MyFlow')");
        assert_eq!(rows(LISTED), ["MyFlow2", "myflow", "xMyFlow"]);
    }

    // Two listings of one queue: nothing that pgflow does leads there, and only deletion needs to know which is right.

    fn listed_twice() {
        installed();
        run("select pgmq.create('myflow')");
        assert_eq!(rows(LISTED), ["MyFlow", "myflow"]);
    }

    #[pg_test]
    fn a_queue_listed_twice_is_worked_through() {
        listed_twice();
        run("select pgflow.create_flow('MyFlow')");
        let id = start("MyFlow", "{}");
        claim("MyFlow");
        fail(id, "first", 0, "x");
        claim_hidden("MyFlow");
        complete(id, "first", 0, "1");
        assert_eq!(outcome(id), "completed {\"first\": 1}");
        assert_eq!(rows(LISTED), ["MyFlow", "myflow"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_queue_listed_twice_is_not_dropped_until_one_listing_is_gone() {
        listed_twice();
        run("select pgflow.add_step('MyFlow', 'earlier')");
        route("MyFlow", "earlier", "earlier");
        let id = start("MyFlow", "{}");
        let before = (snapshot(id), messages("myflow"), messages("earlier"));
        let refusal = failure("select pgflow.delete_flow_and_data('MyFlow')");
        assert_eq!(refusal.code, "42725");
        for listed in ["MyFlow", "myflow"] {
            assert!(refusal.detail.contains(listed), "{refusal:?}");
        }
        assert_eq!(
            (snapshot(id), messages("myflow"), messages("earlier")),
            before
        );
        run("delete from pgmq.meta where queue_name = 'myflow'");
        run("select pgflow.delete_flow_and_data('MyFlow')");
        assert_eq!(rows(LISTED), NONE);
        assert_eq!(rows(TABLES), NONE);
    }

    #[pg_test]
    fn a_new_flow_is_refused_when_its_queue_is_listed_twice() {
        run("select pgmq.create('Taken'), pgmq.create('TAKEN')");
        assert_eq!(failure("select pgflow.create_flow('taken')").code, "23505");
        assert_eq!(rows(LISTED), ["TAKEN", "Taken"]);
    }
}
