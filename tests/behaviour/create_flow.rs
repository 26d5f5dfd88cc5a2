//! create_flow: the flow's row and its default queue.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    const QUEUES: &str = "select queue_name from pgmq.list_queues() order by 1";
    const FLOWS: &str = "select flow_slug from pgflow.flows order by 1";
    const OPTIONS: &str =
        "select format('%s %s %s', opt_max_attempts, opt_base_delay, opt_timeout) from pgflow.flows";

    /// The call fails with this SQLSTATE, and leaves no flow and no queue.
    fn refused(call: &str, code: &str) {
        assert_eq!(failure(call).code, code, "{call}");
        assert_eq!(rows(FLOWS), NONE, "{call}");
        assert_eq!(rows(QUEUES), NONE, "{call}");
    }

    #[pg_test]
    fn a_flow_gets_a_queue_named_after_its_slug_in_lower_case() {
        run("select pgflow.create_flow('OrderFlow')");
        assert_eq!(rows(QUEUES), ["orderflow"]);
    }

    #[pg_test]
    fn a_flow_keeps_the_spelling_of_its_slug() {
        run("select pgflow.create_flow('OrderFlow')");
        assert_eq!(rows(FLOWS), ["OrderFlow"]);
    }

    #[pg_test]
    fn null_options_mean_3_attempts_5_seconds_and_60_seconds() {
        run("select pgflow.create_flow('f', null, null, null)");
        assert_eq!(text(OPTIONS), "3 5 60");
    }

    #[pg_test]
    fn omitted_options_mean_what_null_options_mean() {
        run("select pgflow.create_flow('f')");
        assert_eq!(text(OPTIONS), "3 5 60");
    }

    #[pg_test]
    fn options_are_stored_as_given_by_position_and_by_name() {
        run("select pgflow.create_flow('f', 7, 8, 9)");
        assert_eq!(text(OPTIONS), "7 8 9");
        run("select pgflow.create_flow(flow_slug => 'g', max_attempts => 1, base_delay => 2, timeout => 3)");
        assert_eq!(text(&format!("{OPTIONS} where flow_slug = 'g'")), "1 2 3");
    }

    #[pg_test]
    fn no_attempts_and_no_delay_are_valid_options() {
        run("select pgflow.create_flow('f', 0, 0, 1)");
        assert_eq!(text(OPTIONS), "0 0 1");
    }

    #[pg_test]
    fn create_flow_returns_the_stored_row() {
        let returned = text("select to_jsonb(f) from pgflow.create_flow('F', 1, 2, 3) f");
        assert_eq!(returned, text("select to_jsonb(f) from pgflow.flows f"));
    }

    #[pg_test]
    fn repeating_create_flow_ignores_other_options() {
        run("select pgflow.create_flow('f', 7, 8, 9)");
        let row = text("select (ctid, f)::text from pgflow.flows f");
        let returned = text("select f::text from pgflow.create_flow('f', 1, 2, 3) f");
        assert_eq!(returned, text("select f::text from pgflow.flows f"));
        assert_eq!(row, text("select (ctid, f)::text from pgflow.flows f"));
    }

    #[pg_test]
    fn repeating_create_flow_ignores_invalid_options_too() {
        run("select pgflow.create_flow('f', 7, 8, 9)");
        run("select pgflow.create_flow('f', -1, -1, 0)");
        assert_eq!(text(OPTIONS), "7 8 9");
    }

    #[pg_test]
    fn repeating_create_flow_makes_no_second_queue() {
        run("select pgflow.create_flow('OrderFlow')");
        run("select pgflow.create_flow('OrderFlow')");
        assert_eq!(rows(QUEUES), ["orderflow"]);
    }

    #[pg_test]
    fn repeating_create_flow_recreates_a_missing_queue() {
        run("select pgflow.create_flow('OrderFlow')");
        run("select pgmq.drop_queue('orderflow')");
        run("select pgflow.create_flow('OrderFlow')");
        assert_eq!(rows(QUEUES), ["orderflow"]);
        assert_eq!(messages("orderflow"), "0/0");
    }

    #[pg_test]
    fn an_existing_flow_reuses_its_queue_listed_in_mixed_case() {
        run("select pgflow.create_flow('OrderFlow')");
        run("select pgmq.drop_queue('orderflow')");
        run("select pgmq.create('OrderFlow')");
        run("select pgflow.create_flow('OrderFlow')");
        assert_eq!(rows(QUEUES), ["OrderFlow"]);
    }

    #[pg_test]
    fn a_new_flow_whose_queue_is_listed_already_is_refused() {
        run("select pgmq.create('taken')");
        let failure = failure("select pgflow.create_flow('taken')");
        assert_eq!(failure.code, "23505");
        assert_eq!(
            failure.message,
            "queue \"taken\" of flow \"taken\" already exists"
        );
        assert_eq!(rows(FLOWS), NONE);
        assert_eq!(rows(QUEUES), ["taken"]);
    }

    #[pg_test]
    fn a_new_flow_whose_queue_is_listed_in_other_case_is_refused() {
        run("select pgmq.create('Taken')");
        let failure = failure("select pgflow.create_flow('takeN')");
        assert_eq!(failure.code, "23505");
        assert!(failure.detail.contains("\"Taken\""), "{failure:?}");
        assert!(failure.hint.contains("drop_queue('Taken')"), "{failure:?}");
        assert_eq!(rows(FLOWS), NONE);
        assert_eq!(rows(QUEUES), ["Taken"]);
    }

    #[pg_test]
    fn a_second_flow_that_differs_in_case_is_refused() {
        run("select pgflow.create_flow('OrderFlow')");
        assert_eq!(
            failure("select pgflow.create_flow('orderflow')").code,
            "23505"
        );
        assert_eq!(rows(FLOWS), ["OrderFlow"]);
        assert_eq!(rows(QUEUES), ["orderflow"]);
    }

    #[pg_test]
    fn a_flow_that_differs_in_case_is_refused_without_a_queue_too() {
        run("select pgflow.create_flow('OrderFlow')");
        run("select pgmq.drop_queue('orderflow')");
        assert_eq!(
            failure("select pgflow.create_flow('ORDERFLOW')").code,
            "23505"
        );
        assert_eq!(rows(FLOWS), ["OrderFlow"]);
        assert_eq!(rows(QUEUES), NONE);
    }

    #[pg_test]
    fn a_direct_insert_of_a_flow_in_other_case_is_refused() {
        run("select pgflow.create_flow('OrderFlow')");
        let failure = failure("insert into pgflow.flows (flow_slug) values ('orderFlow')");
        assert_eq!(failure.code, "23505");
        assert!(
            failure.message.contains("idx_flows_normalized_slug"),
            "{failure:?}"
        );
    }

    #[pg_test]
    fn a_slug_of_47_characters_makes_a_flow_and_one_of_48_none() {
        let slug = "x".repeat(48);
        let refusal = failure(&format!("select pgflow.create_flow('{slug}')"));
        assert_eq!(refusal.code, "22023");
        assert!(refusal.message.contains(&slug), "{refusal:?}");
        assert_eq!(rows(FLOWS), NONE);
        assert_eq!(rows(QUEUES), NONE);
        run(&format!("select pgflow.create_flow('{}')", &slug[1..]));
        assert_eq!(rows(QUEUES), [&slug[1..]]);
    }

    #[pg_test]
    fn create_flow_refuses_invalid_slugs() {
        for slug in ["", "run", "1a", "a-b", "a b", "a''b", "é"] {
            refused(&format!("select pgflow.create_flow('{slug}')"), "23514");
        }
        let long = "x".repeat(129);
        refused(&format!("select pgflow.create_flow('{long}')"), "23514");
    }

    #[pg_test]
    fn create_flow_refuses_a_null_slug() {
        refused("select pgflow.create_flow(null)", "23502");
    }

    #[pg_test]
    fn create_flow_refuses_negative_attempts_and_delays() {
        refused(
            "select pgflow.create_flow('f', max_attempts => -1)",
            "23514",
        );
        refused("select pgflow.create_flow('f', base_delay => -1)", "23514");
    }

    #[pg_test]
    fn create_flow_refuses_a_timeout_below_1_second() {
        refused("select pgflow.create_flow('f', timeout => 0)", "23514");
        refused("select pgflow.create_flow('f', timeout => -1)", "23514");
    }

    #[pg_test]
    fn create_flow_locks_the_normalized_slug() {
        run("select pgflow.create_flow('OrderFlow')");
        assert_eq!(text(&definition_locks("orderflow")), "1");
    }

    #[pg_test]
    fn add_step_locks_the_normalized_slug() {
        run("insert into pgflow.flows (flow_slug) values ('OrderFlow')");
        assert_eq!(text(&definition_locks("orderflow")), "0");
        run("select pgflow.add_step('OrderFlow', 'a')");
        assert_eq!(text(&definition_locks("orderflow")), "1");
    }

    /// Counts this backend's holds of `pg_advisory_xact_lock(1, hashtext(slug))`.
    fn definition_locks(slug: &str) -> String {
        format!(
            "select count(*) from pg_locks
             where locktype = 'advisory' and pid = pg_backend_pid() and granted and objsubid = 2
               and classid = 1 and objid = (hashtext('{slug}')::bigint & 4294967295)::oid"
        )
    }
}
