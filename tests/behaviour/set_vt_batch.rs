//! set_vt_batch: each message of a queue gets its own visibility.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    /// Creates queue `Jobs` with messages 1, 2 and 3.
    fn queue_of_three() {
        run("select pgmq.create('Jobs'); select pgmq.send_batch('Jobs', array['{\"n\": 1}', '{\"n\": 2}', '{\"n\": 3}']::jsonb[])");
    }

    fn set(arguments: &str) -> Vec<String> {
        rows(&format!(
            "select msg_id from pgflow.set_vt_batch({arguments}) order by msg_id"
        ))
    }

    fn visibility() -> [i64; 3] {
        [1, 2, 3].map(|id| visible_in("jobs", id).max(0))
    }

    #[pg_test]
    fn each_message_gets_its_own_offset_from_now() {
        queue_of_three();
        assert_eq!(
            set("'jobs', '{3, 1, 2}', '{300, 100, 200}'"),
            ["1", "2", "3"]
        );
        assert_eq!(visibility(), [100, 200, 300]);
    }

    #[pg_test]
    fn offsets_count_from_the_clock_not_from_the_transaction() {
        queue_of_three();
        run("select pg_sleep(1.1)");
        set("'jobs', '{1}', '{10}'");
        assert_eq!(visibility(), [10, 0, 0]);
    }

    #[pg_test]
    fn set_vt_batch_returns_the_messages_as_they_are_now() {
        queue_of_three();
        run("select pgmq.read('jobs', 1, 1)");
        let returned =
            text("select to_jsonb(m) from pgflow.set_vt_batch('jobs', '{1}', '{100}') m");
        assert_eq!(
            returned,
            text(
                "select jsonb_build_object('msg_id', msg_id, 'read_ct', read_ct, 'enqueued_at', enqueued_at, 'vt', vt,
                                           'message', message, 'headers', headers)
                 from pgmq.q_jobs where msg_id = 1"
            )
        );
        assert_eq!(
            text(&format!("select '{returned}'::jsonb ->> 'read_ct'")),
            "1"
        );
    }

    #[pg_test]
    fn set_vt_batch_touches_only_the_messages_named() {
        queue_of_three();
        set("'jobs', '{2}', '{100}'");
        assert_eq!(visibility(), [0, 100, 0]);
    }

    #[pg_test]
    fn offsets_may_be_0_or_negative() {
        queue_of_three();
        set("'jobs', '{1, 2, 3}', '{100, 100, 100}'");
        set("'jobs', '{1, 2}', '{0, -50}'");
        assert_eq!(visibility(), [0, 0, 100]);
        assert!(visible_in("jobs", 2) < -45);
    }

    #[pg_test]
    fn the_largest_offset_does_not_overflow() {
        queue_of_three();
        set("'jobs', '{1}', '{2147483647}'");
        assert!(visible_in("jobs", 1) >= 2147483646);
    }

    #[pg_test]
    fn any_spelling_of_the_queue_reaches_its_messages() {
        queue_of_three();
        assert_eq!(set("'JOBS', '{1}', '{100}'"), ["1"]);
        assert_eq!(set("'Jobs', '{2}', '{100}'"), ["2"]);
        assert_eq!(visibility(), [100, 100, 0]);
    }

    #[pg_test]
    fn ids_that_are_not_in_the_queue_give_no_row() {
        queue_of_three();
        assert_eq!(
            set("'jobs', '{1, 77, -1, null}', '{100, 100, 100, 100}'"),
            ["1"]
        );
    }

    #[pg_test]
    fn a_repeated_id_gives_one_row() {
        queue_of_three();
        assert_eq!(set("'jobs', '{1, 1}', '{100, 100}'"), ["1"]);
        assert_eq!(visibility(), [100, 0, 0]);
    }

    #[pg_test]
    fn null_or_empty_arrays_give_no_rows() {
        queue_of_three();
        for arguments in [
            "null, '{1}', '{1}'",
            "'jobs', null, '{1}'",
            "'jobs', '{1}', null",
            "'jobs', '{}', '{}'",
        ] {
            assert_eq!(set(arguments), NONE, "{arguments}");
        }
        assert_eq!(visibility(), [0, 0, 0]);
    }

    #[pg_test]
    fn arrays_that_differ_in_length_are_refused() {
        queue_of_three();
        for arguments in [
            "'jobs', '{1, 2}', '{1}'",
            "'jobs', '{1}', '{1, 2}'",
            "'jobs', '{}', '{1}'",
        ] {
            let refusal = failure(&format!("select pgflow.set_vt_batch({arguments})"));
            assert_eq!(refusal.code, "22023", "{arguments}");
        }
        assert_eq!(visibility(), [0, 0, 0]);
    }

    #[pg_test]
    fn a_null_offset_is_refused() {
        queue_of_three();
        assert_eq!(
            failure("select pgflow.set_vt_batch('jobs', '{1, 2}', '{10, null}')").code,
            "23502"
        );
    }

    #[pg_test]
    fn the_shape_of_the_arrays_does_not_matter() {
        queue_of_three();
        assert_eq!(set("'jobs', '[7:8]={1, 2}', '{{10, 20}}'"), ["1", "2"]);
        assert_eq!(visibility(), [10, 20, 0]);
    }

    #[pg_test]
    fn a_queue_that_does_not_exist_is_an_error() {
        assert_eq!(
            failure("select pgflow.set_vt_batch('nope', '{1}', '{1}')").code,
            "42P01"
        );
    }

    #[pg_test]
    fn a_queue_name_cannot_carry_sql() {
        queue_of_three();
        for name in [
            "jobs q set vt = vt; drop table pgmq.q_jobs",
            "jobs\" --",
            "jobs'",
        ] {
            let quoted = name.replace('\'', "''");
            failure(&format!(
                "select pgflow.set_vt_batch('{quoted}', '{{1}}', '{{1}}')"
            ));
        }
        assert_eq!(messages("jobs"), "3/0");
    }

    #[pg_test]
    fn ids_beyond_2_to_the_53_are_exact_in_a_batch() {
        run("select pgmq.create('jobs'); alter table pgmq.q_jobs alter column msg_id restart with 9007199254740993");
        run("select pgmq.send_batch('jobs', array['1', '2']::jsonb[])");
        assert_eq!(
            set("'jobs', '{9007199254740993, 9007199254740994}', '{100, 200}'"),
            ["9007199254740993", "9007199254740994"]
        );
        assert_eq!(visible_in("jobs", 9007199254740993), 100);
        assert_eq!(visible_in("jobs", 9007199254740994), 200);
    }

    #[pg_test]
    fn two_queues_are_told_apart_in_one_session() {
        queue_of_three();
        run("select pgmq.create('other'); select pgmq.send('other', '1')");
        set("'jobs', '{1}', '{100}'");
        set("'other', '{1}', '{200}'");
        set("'jobs', '{2}', '{300}'");
        assert_eq!(visibility(), [100, 300, 0]);
        assert_eq!(visible_in("other", 1), 200);
    }

    #[pg_test]
    fn a_queue_that_was_dropped_and_created_again_is_found() {
        queue_of_three();
        set("'jobs', '{1}', '{100}'");
        run("select pgmq.drop_queue('Jobs')");
        queue_of_three();
        set("'jobs', '{1}', '{200}'");
        assert_eq!(visibility(), [200, 0, 0]);
    }
}
