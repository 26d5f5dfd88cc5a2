//! create_flow: the flow's row and its default queue.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    #[pg_test]
    fn a_flow_gets_a_queue_named_after_its_slug_in_lower_case() {
        run("select pgflow.create_flow('OrderFlow')");
        assert_eq!(
            rows("select queue_name from pgmq.list_queues()"),
            ["orderflow"]
        );
    }

    #[pg_test]
    fn null_options_mean_three_attempts_five_seconds_and_sixty_seconds() {
        run("select pgflow.create_flow('f', null, null, null)");
        assert_eq!(
            text("select format('%s %s %s', opt_max_attempts, opt_base_delay, opt_timeout) from pgflow.flows"),
            "3 5 60"
        );
    }

    #[pg_test]
    fn a_new_flow_whose_queue_is_listed_already_is_refused() {
        run("select pgmq.create('Taken')");
        let failure = failure("select pgflow.create_flow('taken')");
        assert_eq!(failure.code, "23505");
        assert_eq!(
            failure.message,
            "queue \"taken\" of flow \"taken\" already exists"
        );
        assert_eq!(
            rows("select flow_slug from pgflow.flows"),
            Vec::<String>::new()
        );
        assert_eq!(rows("select queue_name from pgmq.list_queues()"), ["Taken"]);
    }
}
