//! poll_for_tasks: deprecated.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    #[pg_test]
    fn polling_gives_a_notice_and_no_rows() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let message = text("select q::text from pgmq.q_f q");
        let notices = logged(|| {
            assert_eq!(rows("select pgflow.poll_for_tasks('f', 30, 10)"), NONE);
        });
        assert_eq!(notices.len(), 1);
        assert!(notices[0].starts_with("NOTICE: "), "{notices:?}");
        assert!(notices[0].contains("deprecated"), "{notices:?}");
        assert_eq!(tasks(id), ["a[0]:queued"]);
        assert_eq!(text("select q::text from pgmq.q_f q"), message);
        invariants_hold();
    }

    #[pg_test]
    fn polling_takes_every_argument_by_name_and_null_for_each() {
        assert_eq!(
            rows("select * from pgflow.poll_for_tasks(queue_name => 'f', vt => 1, qty => 1, max_poll_seconds => 1,
                                                      poll_interval_ms => 100)"),
            NONE
        );
        assert_eq!(
            rows("select pgflow.poll_for_tasks(null, null, null, null, null)"),
            NONE
        );
    }

    #[pg_test]
    fn polling_does_not_wait() {
        let before = one::<f64>("select extract(epoch from clock_timestamp())::float8");
        rows("select pgflow.poll_for_tasks('f', 30, 10, max_poll_seconds => 5)");
        let after = one::<f64>("select extract(epoch from clock_timestamp())::float8");
        assert!(after - before < 2.0);
    }
}
