//! start_tasks: which tasks a worker gets for the messages it read. Inputs are in `task_inputs`.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    /// The messages of a queue as they are: a message that is left alone stays like this.
    fn queue(name: &str) -> Vec<String> {
        rows(&format!(
            "select q::text from pgmq.q_{name} q order by msg_id"
        ))
    }

    /// Claims with these arguments after `flow_slug` and `msg_ids`; the number of tasks.
    fn claimed(arguments: &str) -> String {
        text(&format!(
            "select count(*) from pgflow.start_tasks({arguments})"
        ))
    }

    #[pg_test]
    fn a_queued_task_is_claimed_and_started() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        assert_eq!(claim("f"), ["a[0] {}"]);
        assert_eq!(tasks(id), ["a[0]:started"]);
        assert_eq!(of_task(id, "a", 0, "started_at >= queued_at"), "true");
        invariants_hold();
    }

    #[pg_test]
    fn a_claim_returns_what_the_worker_needs() {
        flow("OrderFlow", &["'pickUp'"]);
        let id = start("OrderFlow", "{\"x\": 1}");
        let worker = worker();
        assert_eq!(
            text(&format!(
                "select to_jsonb(t) from pgflow.start_tasks('OrderFlow', '{{1}}', '{worker}') t"
            )),
            text(&format!(
                "select jsonb_build_object('flow_slug', 'OrderFlow', 'run_id', '{id}', 'step_slug', 'pickUp',
                   'input', '{{}}'::jsonb, 'msg_id', 1, 'task_index', 0, 'flow_input', '{{\"x\": 1}}'::jsonb)"
            ))
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_claim_counts_an_attempt() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        assert_eq!(of_task(id, "a", 0, "attempts_count"), "0");
        claim("f");
        assert_eq!(of_task(id, "a", 0, "attempts_count"), "1");
        fail(id, "a", 0, "x");
        assert_eq!(claim_hidden("f"), ["a[0] {}"]);
        assert_eq!(of_task(id, "a", 0, "attempts_count"), "2");
        invariants_hold();
    }

    #[pg_test]
    fn a_claim_remembers_the_worker() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let worker = worker();
        run(&format!(
            "select pgflow.start_tasks('f', '{{1}}', '{worker}')"
        ));
        assert_eq!(of_task(id, "a", 0, "last_worker_id"), worker.to_string());
        invariants_hold();
    }

    #[pg_test]
    fn a_worker_without_a_row_claims_nothing() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let before = queue("f");
        let refusal = failure("select pgflow.start_tasks('f', '{1}', gen_random_uuid())");
        assert_eq!(refusal.code, "23503");
        assert_eq!(tasks(id), ["a[0]:queued"]);
        assert_eq!(queue("f"), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_claim_without_a_worker_is_allowed() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        assert_eq!(claimed("'f', '{1}', null"), "1");
        assert_eq!(
            of_task(id, "a", 0, "status || coalesce(last_worker_id::text, '')"),
            "started"
        );
        invariants_hold();
    }

    #[pg_test]
    fn released_callers_claim_with_three_arguments_by_name() {
        flow("OrderFlow", &["'a'"]);
        start("OrderFlow", "{}");
        let worker = worker();
        assert_eq!(
            claimed(&format!(
                "flow_slug => 'OrderFlow', msg_ids => '{{1}}', worker_id => '{worker}'"
            )),
            "1"
        );
        invariants_hold();
    }

    #[pg_test]
    fn the_queue_is_the_fourth_argument_and_has_a_name() {
        flow("f", &["'a'", "'b'"]);
        start("f", "{}");
        let worker = worker();
        assert_eq!(
            claimed(&format!(
                "flow_slug => 'f', msg_ids => '{{1}}', worker_id => '{worker}', queue_name => 'f'"
            )),
            "1"
        );
        assert_eq!(claimed(&format!("'f', '{{2}}', '{worker}', 'f'")), "1");
        invariants_hold();
    }

    #[pg_test]
    fn a_null_queue_means_the_flow_s_default_queue() {
        flow("OrderFlow", &["'a'"]);
        start("OrderFlow", "{}");
        assert_eq!(claimed("'OrderFlow', '{1}', null, null"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn any_spelling_of_the_queue_is_accepted() {
        flow("OrderFlow", &["'a'", "'b'", "'c'"]);
        start("OrderFlow", "{}");
        assert_eq!(claimed("'OrderFlow', '{1}', null, 'orderflow'"), "1");
        assert_eq!(claimed("'OrderFlow', '{2}', null, 'OrderFlow'"), "1");
        assert_eq!(claimed("'OrderFlow', '{3}', null, 'ORDERFLOW'"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn a_queue_listed_in_mixed_case_is_worked_through() {
        run("select pgmq.create('OrderFlow'); insert into pgflow.flows (flow_slug) values ('OrderFlow')");
        run("select pgflow.add_step('OrderFlow', 'a'); select pgflow.add_step('OrderFlow', 'm', array['a'], step_type => 'map')");
        let id = start("OrderFlow", "{}");
        claim("OrderFlow");
        complete(id, "a", 0, "[1, 2]");
        assert_eq!(claim("OrderFlow"), ["m[0] 1", "m[1] 2"]);
        complete(id, "m", 0, "3");
        complete(id, "m", 1, "4");
        assert_eq!(outcome(id), "completed {\"m\": [3, 4]}");
        assert_eq!(messages("orderflow"), "0/3");
        invariants_hold();
    }

    // Visibility.

    #[pg_test]
    fn a_claimed_message_is_hidden_for_the_flow_s_timeout_and_2_s() {
        run("select pgflow.create_flow('f', timeout => 100); select pgflow.add_step('f', 'a')");
        start("f", "{}");
        claim("f");
        assert_eq!(visible_in("f", 1), 102);
        invariants_hold();
    }

    #[pg_test]
    fn a_step_s_timeout_goes_before_the_flow_s() {
        run("select pgflow.create_flow('f', timeout => 100); select pgflow.add_step('f', 'a', timeout => 7)");
        start("f", "{}");
        claim("f");
        assert_eq!(visible_in("f", 1), 9);
        invariants_hold();
    }

    #[pg_test]
    fn the_timeout_is_read_when_the_task_is_claimed() {
        flow("f", &["'a'"]);
        start("f", "{}");
        run("update pgflow.steps set opt_timeout = 200");
        claim("f");
        assert_eq!(visible_in("f", 1), 202);
        invariants_hold();
    }

    #[pg_test]
    fn each_message_of_a_batch_is_hidden_for_its_own_step_s_timeout() {
        flow("f", &["'a', timeout => 10", "'b', timeout => 20", "'c'"]);
        let id = start("f", "{}");
        claim("f");
        let hidden = |step| visible_in("f", of_task(id, step, 0, "message_id").parse().unwrap());
        assert_eq!(["a", "b", "c"].map(hidden), [12, 22, 62]);
        invariants_hold();
    }

    #[pg_test]
    fn the_largest_timeout_does_not_overflow() {
        flow(
            "f",
            &["'a', timeout => 2147483647", "'b', timeout => 2147483647"],
        );
        start("f", "{}");
        assert_eq!(claim("f").len(), 2);
        assert!(visible_in("f", 1) >= 2147483646);
        assert!(visible_in("f", 2) >= 2147483646);
        invariants_hold();
    }

    #[pg_test]
    fn one_claimed_message_that_is_gone_is_an_error() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run("select pgmq.delete('f', 1)");
        let refusal = failure("select pgflow.start_tasks('f', '{1}', null)");
        assert_eq!(refusal.code, "55000");
        assert!(refusal.message.contains("\"f\""), "{refusal:?}");
        assert!(refusal.detail.contains("[1]"), "{refusal:?}");
        assert_eq!(of_task(id, "a", 0, "status || attempts_count"), "queued0");
    }

    #[pg_test]
    fn when_one_message_of_a_batch_is_gone_nothing_is_claimed() {
        flow("f", &["'a'", "'b'", "'c'"]);
        let id = start("f", "{}");
        run("select pgmq.archive('f', 2::bigint)");
        let refusal = failure("select pgflow.start_tasks('f', '{1, 2, 3}', null)");
        assert_eq!(refusal.code, "55000");
        assert_eq!(tasks(id), ["a[0]:queued", "b[0]:queued", "c[0]:queued"]);
    }

    // The table of queue identity: what becomes of each kind of message.

    #[pg_test]
    fn a_started_task_is_not_claimed_again() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        let (task, message) = (snapshot(id), queue("f"));
        let warnings = logged(|| assert_eq!(claim_hidden("f"), NONE));
        assert_eq!(warnings, NONE);
        assert_eq!(snapshot(id), task);
        assert_eq!(queue("f"), message);
        invariants_hold();
    }

    #[pg_test]
    fn a_completed_task_is_not_claimed_again() {
        flow("f", &["'m', step_type => 'map'"]);
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "m", 0, "1");
        unarchive("f");
        let (before, message) = (snapshot(id), queue("f"));
        let warnings = logged(|| assert_eq!(claim_ids("f", "values (1::bigint)"), NONE));
        assert_eq!(warnings, NONE);
        assert_eq!(snapshot(id), before);
        assert_eq!(queue("f"), message);
    }

    #[pg_test]
    fn tasks_of_a_failed_run_are_not_claimed() {
        flow("f", &["'a', max_attempts => 1", "'b'"]);
        let id = start("f", "{}");
        claim_ids("f", "values (1::bigint)");
        fail(id, "a", 0, "x");
        assert_eq!(tasks(id), ["a[0]:failed", "b[0]:cancelled"]);
        unarchive("f");
        let (before, message) = (snapshot(id), queue("f"));
        let warnings = logged(|| assert_eq!(claim_hidden("f"), NONE));
        assert_eq!(warnings, NONE);
        assert_eq!(snapshot(id), before);
        assert_eq!(queue("f"), message);
    }

    #[pg_test]
    fn tasks_of_a_skipped_step_are_not_claimed() {
        flow("f", &["'a'", "'b'"]);
        let id = start("f", "{}");
        run(&format!(
            "select pgflow._cascade_force_skip_steps('{id}', 'a', 'condition_unmet')"
        ));
        unarchive("f");
        let before = of_task(id, "a", 0, "to_jsonb(step_tasks)");
        let warnings = logged(|| assert_eq!(claim("f"), ["b[0] {}"]));
        assert_eq!(warnings, NONE);
        assert_eq!(of_task(id, "a", 0, "to_jsonb(step_tasks)"), before);
    }

    #[pg_test]
    fn a_permanently_stalled_task_is_not_claimed_again() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        claim("f");
        run("update pgflow.step_tasks set requeued_count = 3, queued_at = queued_at - interval '1 hour',
                                          started_at = started_at - interval '1 hour'");
        run("select pgflow.requeue_stalled_tasks()");
        assert_eq!(messages("f"), "0/1");
        unarchive("f");
        let (before, message) = (snapshot(id), queue("f"));
        let warnings = logged(|| assert_eq!(claim_hidden("f"), NONE));
        assert_eq!(warnings, NONE);
        assert_eq!(snapshot(id), before);
        assert_eq!(queue("f"), message);
    }

    #[pg_test]
    fn a_failed_task_of_a_run_that_goes_on_is_not_claimed_again() {
        flow(
            "f",
            &["'a', max_attempts => 1, when_exhausted => 'skip'", "'b'"],
        );
        let id = start("f", "{}");
        claim_ids("f", "values (1::bigint)");
        fail(id, "a", 0, "x");
        assert_eq!(tasks(id), ["a[0]:failed", "b[0]:queued"]);
        unarchive("f");
        let before = (snapshot(id), queue("f"));
        let warnings = logged(|| assert_eq!(claimed("'f', '{1}', null"), "0"));
        assert_eq!(warnings, NONE);
        assert_eq!((snapshot(id), queue("f")), before);
    }

    #[pg_test]
    fn every_kind_of_message_in_one_batch_gets_what_is_due_to_it() {
        flow("f", &["'m', step_type => 'map'"]);
        flow("g", &["'m', step_type => 'map'"]);
        route("g", "m", "f");
        let own = start("f", "[7, 8, 9]");
        let foreign = start("g", "[7]");
        run("select pgmq.send('f', '{}')");
        claim_ids("f", "values (1::bigint), (2)");
        complete(own, "m", 0, "1");
        unarchive("f");
        let (task, before) = (snapshot(foreign), queue("f"));
        let warnings = logged(|| {
            assert_eq!(
                claim_ids("f", "select generate_series(1, 6)::bigint"),
                ["m[2] 9"]
            );
        });
        assert_eq!(
            warnings,
            [
                "WARNING: queue \"f\" holds messages without a task: 5, 6",
                "WARNING: queue \"f\" holds messages whose task is not of flow \"f\": 4"
            ]
        );
        assert_eq!(
            tasks(own),
            ["m[0]:completed", "m[1]:started", "m[2]:started"]
        );
        assert_eq!(of_task(own, "m", 1, "attempts_count"), "1");
        assert_eq!(snapshot(foreign), task);
        let untouched = |queue: &[String]| [&queue[..2], &queue[3..]].concat();
        assert_eq!(untouched(&queue("f")), untouched(&before));
    }

    #[pg_test]
    fn a_queued_task_is_not_claimed_when_its_run_is_not_started() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run("update pgflow.runs set status = 'failed', failed_at = now()");
        assert_eq!(claim("f"), NONE);
        assert_eq!(of_task(id, "a", 0, "status || attempts_count"), "queued0");
    }

    #[pg_test]
    fn a_queued_task_is_not_claimed_when_its_step_is_not_started() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run("update pgflow.step_states set status = 'created', remaining_tasks = null");
        assert_eq!(claim("f"), NONE);
        assert_eq!(of_task(id, "a", 0, "status || attempts_count"), "queued0");
    }

    #[pg_test]
    fn a_message_without_a_task_is_left_alone_with_a_warning() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run("select pgmq.send('f', '{\"secret\": 1}'), pgmq.send('f', '{\"secret\": 2}')");
        let before = queue("f");
        let warnings = logged(|| assert_eq!(claimed("'f', '{3, 2, 1}', null"), "1"));
        assert_eq!(
            warnings,
            ["WARNING: queue \"f\" holds messages without a task: 2, 3"]
        );
        assert_eq!(queue("f")[1..], before[1..]);
        assert_eq!(tasks(id), ["a[0]:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_warning_holds_no_message_body() {
        flow("f", &["'a'"]);
        flow("g", &["'x'"]);
        route("g", "x", "f");
        start("g", "{}");
        run("select pgmq.send('f', '{\"secret\": 1}')");
        let warnings = logged_whole(|| assert_eq!(claimed("'f', '{1, 2}', null"), "0"));
        assert_eq!(warnings.len(), 2);
        for warning in warnings {
            assert!(!warning.contains("secret"), "{warning}");
            assert!(!warning.contains("step_slug"), "{warning}");
        }
        invariants_hold();
    }

    #[pg_test]
    fn a_message_body_does_not_authorize_a_claim() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run("select pgmq.send('f', (select message from pgmq.q_f))");
        logged(|| assert_eq!(claimed("'f', '{2}', null"), "0"));
        assert_eq!(tasks(id), ["a[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn an_id_that_is_in_no_queue_is_named_in_the_warning() {
        flow("f", &["'a'"]);
        start("f", "{}");
        let warnings = logged(|| assert_eq!(claimed("'f', '{-1, 0, 77}', null"), "0"));
        assert_eq!(
            warnings,
            ["WARNING: queue \"f\" holds messages without a task: -1, 0, 77"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_task_of_another_flow_is_left_alone_with_a_warning() {
        flow("f", &["'a'"]);
        flow("g", &["'x'"]);
        route("g", "x", "f");
        let foreign = start("g", "{}");
        let own = start("f", "{}");
        let (task, message) = (snapshot(foreign), queue("f"));
        let warnings = logged(|| assert_eq!(claimed("'f', '{1, 2}', null"), "1"));
        assert_eq!(
            warnings,
            ["WARNING: queue \"f\" holds messages whose task is not of flow \"f\": 1"]
        );
        assert_eq!(tasks(own), ["a[0]:started"]);
        assert_eq!(snapshot(foreign), task);
        assert_eq!(queue("f")[0], message[0]);
        invariants_hold();
    }

    #[pg_test]
    fn a_task_of_another_flow_is_left_alone_also_when_steps_have_the_same_name() {
        flow("f", &["'a'", "'m', step_type => 'map'"]);
        flow("g", &["'a'", "'m', step_type => 'map'"]);
        route("g", "a", "f");
        route("g", "m", "f");
        let foreign = start("g", "[7, 8]");
        let (task, message) = (snapshot(foreign), queue("f"));
        let warnings = logged(|| assert_eq!(claimed("'f', '{1}', null"), "0"));
        assert_eq!(warnings.len(), 1);
        let warnings = logged(|| assert_eq!(claimed("'f', '{1, 2, 3}', null"), "0"));
        assert_eq!(
            warnings,
            ["WARNING: queue \"f\" holds messages whose task is not of flow \"f\": 1, 2, 3"]
        );
        assert_eq!(snapshot(foreign), task);
        assert_eq!(queue("f"), message);
        invariants_hold();
    }

    #[pg_test]
    fn an_ended_task_of_another_flow_is_warned_of_too() {
        flow("f", &["'a'"]);
        flow("g", &["'a'"]);
        route("g", "a", "f");
        let foreign = start("g", "{}");
        run("select pgflow.start_tasks('g', '{1}', null, 'f')");
        complete(foreign, "a", 0, "1");
        unarchive("f");
        let (task, message) = (snapshot(foreign), queue("f"));
        let warnings = logged(|| assert_eq!(claimed("'f', '{1}', null"), "0"));
        assert_eq!(
            warnings,
            ["WARNING: queue \"f\" holds messages whose task is not of flow \"f\": 1"]
        );
        assert_eq!(snapshot(foreign), task);
        assert_eq!(queue("f"), message);
    }

    #[pg_test]
    fn a_flow_slug_in_other_case_is_another_flow() {
        flow("OrderFlow", &["'a'"]);
        let id = start("OrderFlow", "{}");
        let warnings = logged(|| assert_eq!(claimed("'orderflow', '{1}', null"), "0"));
        assert_eq!(
            warnings,
            ["WARNING: queue \"orderflow\" holds messages whose task is not of flow \"orderflow\": 1"]
        );
        assert_eq!(tasks(id), ["a[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn each_kind_of_odd_message_is_warned_of_once_per_call() {
        flow("f", &["'a'"]);
        flow("g", &["'x'", "'y'"]);
        route("g", "x", "f");
        route("g", "y", "f");
        start("g", "{}");
        start("f", "{}");
        let warnings = logged(|| assert_eq!(claimed("'f', '{9, 8, 3, 2, 1}', null"), "1"));
        assert_eq!(
            warnings,
            [
                "WARNING: queue \"f\" holds messages without a task: 8, 9",
                "WARNING: queue \"f\" holds messages whose task is not of flow \"f\": 1, 2"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_claim_without_odd_messages_warns_of_nothing() {
        flow("f", &["'a'", "'b'"]);
        start("f", "{}");
        assert_eq!(logged(|| assert_eq!(claim("f").len(), 2)), NONE);
        invariants_hold();
    }

    #[pg_test]
    fn the_same_id_in_another_queue_is_another_message() {
        flow("f", &["'a'"]);
        flow("g", &["'x'"]);
        let f = start("f", "{}");
        let g = start("g", "{}");
        assert_eq!(claim("f"), ["a[0] {}"]);
        assert_eq!(tasks(f), ["a[0]:started"]);
        assert_eq!(tasks(g), ["x[0]:queued"]);
        assert!(visible_in("g", 1) <= 0);
        invariants_hold();
    }

    #[pg_test]
    fn a_claim_from_one_queue_takes_no_task_of_another() {
        flow("f", &["'a'", "'b'"]);
        route("f", "b", "elsewhere");
        let id = start("f", "{}");
        assert_eq!(claimed("'f', '{1}', null"), "1");
        assert_eq!(tasks(id), ["a[0]:started", "b[0]:queued"]);
        assert_eq!(claimed("'f', '{1}', null, 'Elsewhere'"), "1");
        assert_eq!(tasks(id), ["a[0]:started", "b[0]:started"]);
        invariants_hold();
    }

    // Arrays.

    #[pg_test]
    fn null_or_empty_message_ids_claim_nothing() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let warnings = logged(|| {
            assert_eq!(claimed("'f', null, null"), "0");
            assert_eq!(claimed("'f', '{}', null"), "0");
            assert_eq!(claimed("'f', '{null}', null"), "0");
        });
        assert_eq!(warnings, NONE);
        assert_eq!(tasks(id), ["a[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_null_flow_claims_nothing() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        assert_eq!(claimed("null, '{1}', null, 'f'"), "0");
        assert_eq!(tasks(id), ["a[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_repeated_message_id_counts_once() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let warnings = logged(|| assert_eq!(claimed("'f', '{1, 1, 1}', null"), "1"));
        assert_eq!(warnings, NONE);
        assert_eq!(of_task(id, "a", 0, "attempts_count"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn a_repeated_odd_id_is_named_once() {
        flow("f", &["'a'"]);
        start("f", "{}");
        let warnings = logged(|| assert_eq!(claimed("'f', '{{9, null}, {9, 8}}', null"), "0"));
        assert_eq!(
            warnings,
            ["WARNING: queue \"f\" holds messages without a task: 8, 9"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn null_message_ids_among_others_are_passed_over() {
        flow("f", &["'a'", "'b'"]);
        start("f", "{}");
        let warnings = logged(|| assert_eq!(claimed("'f', '{null, 1, null, 2}', null"), "2"));
        assert_eq!(warnings, NONE);
        invariants_hold();
    }

    #[pg_test]
    fn the_shape_of_the_array_of_message_ids_does_not_matter() {
        flow("f", &["'a'", "'b'", "'c'", "'d'", "'e'"]);
        start("f", "{}");
        assert_eq!(claimed("'f', '{{1, 2}, {3, null}}', null"), "3");
        assert_eq!(claimed("'f', '[-3:-3]={5}', null"), "1");
        assert_eq!(claimed("'f', '[0:1][7:7]={{4}, {4}}', null"), "1");
        invariants_hold();
    }

    #[pg_test]
    fn the_order_of_message_ids_does_not_matter() {
        flow("f", &["'m', step_type => 'map'"]);
        start("f", "[\"x\", \"y\", \"z\"]");
        assert_eq!(
            claim_ids("f", "values (3::bigint), (1), (2)"),
            ["m[0] \"x\"", "m[1] \"y\"", "m[2] \"z\""]
        );
        invariants_hold();
    }

    #[pg_test]
    fn message_ids_beyond_2_to_the_53_are_exact() {
        flow("f", &["'a'", "'b'"]);
        run("alter table pgmq.q_f alter column msg_id restart with 9007199254740993");
        let id = start("f", "{}");
        assert_eq!(of_task(id, "b", 0, "message_id"), "9007199254740994");
        let ids =
            rows("select msg_id::text from pgflow.start_tasks('f', '{9007199254740993}', null)");
        assert_eq!(ids, ["9007199254740993"]);
        assert_eq!(tasks(id), ["a[0]:started", "b[0]:queued"]);
        assert_eq!(visible_in("f", 9007199254740993), 62);
        assert!(visible_in("f", 9007199254740994) <= 0);
        complete(id, "a", 0, "1");
        assert_eq!(rows("select msg_id from pgmq.q_f"), ["9007199254740994"]);
        invariants_hold();
    }

    #[pg_test]
    fn the_largest_message_id_is_exact() {
        flow("f", &["'a'"]);
        run("alter table pgmq.q_f alter column msg_id restart with 9223372036854775807");
        let id = start("f", "{}");
        assert_eq!(
            claimed("'f', array['9223372036854775807'::bigint], null"),
            "1"
        );
        assert_eq!(tasks(id), ["a[0]:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_thousand_tasks_are_claimed_in_one_call() {
        flow("f", &["'m', step_type => 'map', timeout => 10"]);
        let input = text("select jsonb_agg(i) from generate_series(0, 999) i");
        let id = start("f", &input);
        assert_eq!(
            rows(
                "select count(*) || ' ' || bool_and(task_index::text = input::text)
                 from pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 1000)), null)"
            ),
            ["1000 true"]
        );
        assert_eq!(of_step(id, "m", "remaining_tasks"), "1000");
        assert_eq!([1, 500, 1000].map(|id| visible_in("f", id)), [12, 12, 12]);
        invariants_hold();
    }

    /// A plan is kept while the tables grow: it must not read all of them because they were tiny when it was made.
    #[pg_test]
    fn a_plan_made_for_tiny_tables_serves_large_ones() {
        flow("f", &["'m', step_type => 'map'"]);
        start("f", "[1, 2, 3]");
        run("analyze pgflow.runs, pgflow.step_states, pgflow.step_tasks, pgflow.flows, pgflow.steps, pgmq.q_f");
        let claim = "select count(input) from pgflow.start_tasks(
            'f', array(select msg_id from pgmq.q_f where vt <= clock_timestamp() order by msg_id limit 3), null)";
        run(claim);
        run("select pgflow.start_flow('f', (select jsonb_agg(i) from generate_series(1, 5000) i))");
        let pages = pages_of(claim);
        assert!(pages < 500.0, "{pages} pages for a claim of three tasks");
    }
}
