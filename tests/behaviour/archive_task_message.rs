//! _archive_task_message: puts a task's message away, through its stored queue.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    #[pg_test]
    fn archiving_moves_the_task_s_message_and_changes_no_row() {
        flow("f", &["'m', step_type => 'map'"]);
        let id = start("f", "[1, 2]");
        let before = snapshot(id);
        run(&format!(
            "select pgflow._archive_task_message('{id}', 'm', 1)"
        ));
        assert_eq!(rows("select msg_id from pgmq.q_f"), ["1"]);
        assert_eq!(rows("select msg_id from pgmq.a_f"), ["2"]);
        assert_eq!(snapshot(id), before);
    }

    #[pg_test]
    fn archiving_takes_its_arguments_by_name() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run(&format!(
            "select pgflow._archive_task_message(p_task_index => 0, p_step_slug => 'a', p_run_id => '{id}')"
        ));
        assert_eq!(messages("f"), "0/1");
    }

    #[pg_test]
    fn archiving_goes_through_the_stored_queue() {
        flow("f", &["'a'", "'b'"]);
        route("f", "b", "elsewhere");
        let id = start("f", "{}");
        route("f", "b", "f");
        run(&format!(
            "select pgflow._archive_task_message('{id}', 'b', 0)"
        ));
        assert_eq!([messages("f"), messages("elsewhere")], ["1/0", "0/1"]);
    }

    #[pg_test]
    fn archiving_twice_is_no_error() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let call = format!("select pgflow._archive_task_message('{id}', 'a', 0)");
        run(&call);
        run(&call);
        assert_eq!(messages("f"), "0/1");
    }

    #[pg_test]
    fn a_task_without_a_message_has_nothing_to_archive() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run("update pgflow.step_tasks set message_id = null");
        run(&format!(
            "select pgflow._archive_task_message('{id}', 'a', 0)"
        ));
        assert_eq!(messages("f"), "1/0");
    }

    #[pg_test]
    fn an_unknown_or_null_task_has_nothing_to_archive() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        for arguments in [
            "gen_random_uuid(), 'a', 0".to_string(),
            format!("'{id}', 'nope', 0"),
            format!("'{id}', 'a', 1"),
            "null, 'a', 0".into(),
            format!("'{id}', null, 0"),
            format!("'{id}', 'a', null"),
        ] {
            run(&format!("select pgflow._archive_task_message({arguments})"));
        }
        assert_eq!(messages("f"), "1/0");
        invariants_hold();
    }
}
