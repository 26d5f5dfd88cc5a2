//! The same message id in several queues: whatever is done about a task is done in the queue it stored.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// Three runs of flow `Jobs` with the same tasks and the same message ids, each in a queue of its own: `jobs`, the
    /// flow's default; `own`, the run that a test works on; `later`, to which all steps are routed now. Who looks for
    /// a task's queue anywhere but on the task finds one of the other two.
    struct Runs {
        jobs: Uuid,
        own: Uuid,
        later: Uuid,
    }

    fn three_runs(steps: &[&str], input: &str) -> Runs {
        flow("Jobs", steps);
        let jobs = start("Jobs", input);
        route_all("own");
        let own = start("Jobs", input);
        route_all("later");
        let later = start("Jobs", input);
        for (run, queue) in [(jobs, "jobs"), (own, "own"), (later, "later")] {
            assert_eq!(queues_of(run), [queue]);
        }
        assert_eq!(ids_of(own), ids_of(jobs));
        assert_eq!(ids_of(own), ids_of(later));
        Runs { jobs, own, later }
    }

    fn route_all(queue: &str) {
        for step in rows("select step_slug from pgflow.steps where flow_slug = 'Jobs'") {
            route("Jobs", &step, queue);
        }
    }

    fn queues_of(run: Uuid) -> Vec<String> {
        rows(&format!(
            "select distinct queue_name from pgflow.step_tasks where run_id = '{run}' order by 1"
        ))
    }

    fn ids_of(run: Uuid) -> Vec<String> {
        rows(&format!(
            "select format('%s[%s] %s', step_slug, task_index, message_id) from pgflow.step_tasks
             where run_id = '{run}' order by step_slug, task_index"
        ))
    }

    /// All that is stored about two runs and the messages in their queues.
    fn everything_about(runs: [(Uuid, &str); 2]) -> Vec<String> {
        let mut all = Vec::new();
        for (run, queue) in runs {
            all.extend(snapshot(run));
            for table in [format!("q_{queue}"), format!("a_{queue}")] {
                all.extend(rows(&format!(
                    "select '{table} ' || m::text from pgmq.{table} m order by msg_id"
                )));
            }
        }
        all
    }

    /// Does something about the run in `own`. Not one column of the other runs' rows and messages may change by it.
    fn apart(runs: &Runs, work: impl FnOnce(Uuid)) {
        let others = || everything_about([(runs.jobs, "jobs"), (runs.later, "later")]);
        let before = others();
        work(runs.own);
        let after = others();
        let changed: Vec<_> = before.iter().filter(|row| !after.contains(row)).collect();
        assert!(changed.is_empty(), "changed: {changed:#?}\nnow: {after:#?}");
    }

    /// Makes the started tasks of a run look as if they had been started an hour ago.
    fn age(run_id: Uuid) {
        run(&format!(
            "update pgflow.step_tasks
             set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
             where run_id = '{run_id}' and status = 'started'"
        ));
    }

    fn requeue() -> String {
        text("select pgflow.requeue_stalled_tasks()")
    }

    const MAP: [&str; 1] = ["'m', step_type => 'map'"];

    // Claiming.

    #[pg_test]
    fn one_of_three_equal_ids_is_claimed() {
        apart(&three_runs(&["'a'"], "{}"), |id| {
            assert_eq!(claim_from("Jobs", "own"), ["a[0] {}"]);
            assert_eq!(tasks(id), ["a[0]:started"]);
            assert_eq!(visible_in("own", 1), 62);
        });
        invariants_hold();
    }

    #[pg_test]
    fn a_batch_of_equal_ids_is_claimed_in_the_polled_queue() {
        apart(&three_runs(&MAP, "[7, 8, 9]"), |id| {
            assert_eq!(claim_from("Jobs", "own"), ["m[0] 7", "m[1] 8", "m[2] 9"]);
            assert_eq!(of_step(id, "m", "remaining_tasks"), "3");
            assert_eq!([1, 2, 3].map(|id| visible_in("own", id)), [62, 62, 62]);
        });
        invariants_hold();
    }

    #[pg_test]
    fn equal_ids_are_claimed_queue_by_queue() {
        let runs = three_runs(&MAP, "[7, 8]");
        for (run, queue) in [
            (runs.jobs, "jobs"),
            (runs.own, "own"),
            (runs.later, "later"),
        ] {
            let claimed = rows(&format!(
                "select run_id from pgflow.start_tasks('Jobs', '{{1, 2}}', null, '{queue}')"
            ));
            assert_eq!(claimed, [run.to_string(), run.to_string()]);
        }
        invariants_hold();
    }

    #[pg_test]
    fn an_id_that_only_another_queue_has_is_unknown_here() {
        flow("f", &["'a'", "'b'"]);
        route("f", "b", "elsewhere");
        run("select pgmq.send('elsewhere', '{}'), pgmq.send('elsewhere', '{}')");
        let id = start("f", "{}");
        assert_eq!(of_task(id, "b", 0, "message_id"), "3");
        let before = text("select q::text from pgmq.q_elsewhere q where msg_id = 3");
        let warnings = logged(|| {
            run("select pgflow.start_tasks('f', '{3}', null)");
        });
        assert_eq!(
            warnings,
            ["WARNING: queue \"f\" holds messages without a task: 3"]
        );
        assert_eq!(tasks(id), ["a[0]:queued", "b[0]:queued"]);
        assert_eq!(
            text("select q::text from pgmq.q_elsewhere q where msg_id = 3"),
            before
        );
        invariants_hold();
    }

    #[pg_test]
    fn an_id_of_a_task_is_unknown_where_its_queue_was_not_polled() {
        flow("f", &["'a'"]);
        route("f", "a", "elsewhere");
        let id = start("f", "{}");
        run("select pgmq.send('f', '{}')");
        let warnings = logged(|| {
            run("select pgflow.start_tasks('f', '{1}', null)");
        });
        assert_eq!(
            warnings,
            ["WARNING: queue \"f\" holds messages without a task: 1"]
        );
        assert_eq!(tasks(id), ["a[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_message_of_another_flow_elsewhere_is_no_foreign_one_here() {
        flow("f", &["'a'"]);
        flow("g", &["'a'"]);
        start("f", "{}");
        start("g", "{}");
        let warnings = logged(|| assert_eq!(claim("f"), ["a[0] {}"]));
        assert_eq!(warnings, NONE);
        let warnings = logged(|| assert_eq!(claim("g"), ["a[0] {}"]));
        assert_eq!(warnings, NONE);
        invariants_hold();
    }

    #[pg_test]
    fn a_vanished_message_is_not_looked_for_in_other_queues() {
        for input in ["[7]", "[7, 8]"] {
            let runs = three_runs(&MAP, input);
            run("select pgmq.delete('own', 1)");
            apart(&runs, |id| {
                let before = snapshot(id);
                let claim = "select pgflow.start_tasks('Jobs', '{1, 2}', null, 'own')";
                let refusal = failure(claim);
                assert_eq!(refusal.code, "55000");
                assert!(refusal.message.contains("\"own\""), "{refusal:?}");
                assert_eq!(snapshot(id), before);
            });
            run("select pgflow.delete_flow_and_data('Jobs');
                 select pgmq.drop_queue('jobs'), pgmq.drop_queue('own')");
        }
    }

    // Reports.

    #[pg_test]
    fn one_of_three_equal_ids_is_completed() {
        apart(&three_runs(&["'a'"], "{}"), |id| {
            claim_from("Jobs", "own");
            complete(id, "a", 0, "1");
            assert_eq!(outcome(id), "completed {\"a\": 1}");
            assert_eq!(messages("own"), "0/1");
        });
        invariants_hold();
    }

    #[pg_test]
    fn a_dependent_of_a_completed_step_goes_where_it_is_routed_now() {
        let steps = ["'m', step_type => 'map'", "'z', array['m']"];
        apart(&three_runs(&steps, "[7, 8]"), |id| {
            claim_from("Jobs", "own");
            complete(id, "m", 0, "1");
            complete(id, "m", 1, "2");
            assert_eq!(messages("own"), "0/2");
            assert_eq!(of_task(id, "z", 0, "queue_name || message_id"), "later3");
            run("select pgflow.start_tasks('Jobs', '{3}', null, 'later')");
            complete(id, "z", 0, "3");
            assert_eq!(outcome(id), "completed {\"z\": 3}");
        });
        invariants_hold();
    }

    #[pg_test]
    fn one_of_three_equal_ids_waits_for_its_retry() {
        apart(&three_runs(&["'a', base_delay => 50"], "{}"), |id| {
            claim_from("Jobs", "own");
            assert_eq!(fail(id, "a", 0, "x"), "queued");
            assert_eq!(visible_in("own", 1), 100);
        });
        invariants_hold();
    }

    #[pg_test]
    fn a_retry_whose_message_vanished_is_an_error_and_changes_nothing() {
        let runs = three_runs(&["'a'"], "{}");
        claim_from("Jobs", "own");
        run("select pgmq.delete('own', 1)");
        apart(&runs, |id| {
            let before = snapshot(id);
            let refusal = failure(&format!("select pgflow.fail_task('{id}', 'a', 0, 'x')"));
            assert_eq!(refusal.code, "55000");
            assert!(refusal.message.contains("\"own\""), "{refusal:?}");
            assert_eq!(snapshot(id), before);
        });
    }

    #[pg_test]
    fn an_exhausted_task_fails_its_run_in_its_own_queue() {
        let steps = ["'a', max_attempts => 1", "'b'", "'m', step_type => 'map'"];
        apart(&three_runs(&steps, "[7, 8]"), |id| {
            claim_from("Jobs", "own");
            assert_eq!(fail(id, "a", 0, "x"), "failed");
            assert_eq!(
                tasks(id),
                [
                    "a[0]:failed",
                    "b[0]:cancelled",
                    "m[0]:cancelled",
                    "m[1]:cancelled"
                ]
            );
            assert_eq!(messages("own"), "0/4");
        });
        invariants_hold();
    }

    #[pg_test]
    fn an_exhausted_task_skips_its_step_in_its_own_queue() {
        let steps = [
            "'b'",
            "'m', step_type => 'map', max_attempts => 1, when_exhausted => 'skip'",
            "'z', array['m']",
        ];
        apart(&three_runs(&steps, "[7, 8, 9]"), |id| {
            claim_from("Jobs", "own");
            assert_eq!(fail(id, "m", 1, "x"), "failed");
            assert_eq!(steps_of(id), "b:started m:skipped z:started");
            assert_eq!(messages("own"), "1/3");
            assert_eq!(of_task(id, "z", 0, "queue_name"), "later");
        });
        invariants_hold();
    }

    #[pg_test]
    fn an_exhausted_task_skips_downstream_in_its_own_queue() {
        let steps = [
            "'b'",
            "'m', step_type => 'map', max_attempts => 1, when_exhausted => 'skip-cascade'",
            "'z', array['m']",
        ];
        apart(&three_runs(&steps, "[7, 8, 9]"), |id| {
            claim_from("Jobs", "own");
            assert_eq!(fail(id, "m", 1, "x"), "failed");
            assert_eq!(steps_of(id), "b:started m:skipped z:skipped");
            assert_eq!(messages("own"), "1/3");
        });
        invariants_hold();
    }

    fn steps_of(run: Uuid) -> String {
        steps(run).join(" ")
    }

    #[pg_test]
    fn a_forced_skip_goes_through_the_stored_queue() {
        apart(&three_runs(&["'b'", MAP[0]], "[7, 8]"), |id| {
            claim_from("Jobs", "own");
            run(&format!(
                "select pgflow._cascade_force_skip_steps('{id}', 'm', 'condition_unmet')"
            ));
            assert_eq!(messages("own"), "1/2");
        });
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_condition_cancels_in_the_stored_queue() {
        let steps = [
            "'a'",
            "'b', array['a'], required_input_pattern => '{\"a\": 1}', when_unmet => 'fail'",
            "'m', step_type => 'map'",
        ];
        apart(&three_runs(&steps, "[7, 8]"), |id| {
            claim_from("Jobs", "own");
            assert_eq!(complete(id, "a", 0, "2"), "completed");
            assert_eq!(
                tasks(id),
                ["a[0]:completed", "m[0]:cancelled", "m[1]:cancelled"]
            );
            assert_eq!(messages("own"), "0/3");
        });
        invariants_hold();
    }

    #[pg_test]
    fn a_type_violation_cancels_in_the_stored_queue() {
        let steps = ["'a'", "'m', array['a'], step_type => 'map'", "'b'"];
        apart(&three_runs(&steps, "{}"), |id| {
            claim_from("Jobs", "own");
            assert_eq!(complete(id, "a", 0, "{}"), "failed");
            assert_eq!(tasks(id), ["a[0]:failed", "b[0]:cancelled"]);
            assert_eq!(messages("own"), "0/2");
        });
        invariants_hold();
    }

    #[pg_test]
    fn a_late_result_archives_in_the_stored_queue() {
        let runs = three_runs(&["'a', max_attempts => 1", "'b'"], "{}");
        claim_from("Jobs", "own");
        fail(runs.own, "a", 0, "x");
        unarchive("own");
        apart(&runs, |id| {
            assert_eq!(complete(id, "b", 0, "1"), "cancelled");
            assert_eq!(messages("own"), "1/1");
            assert_eq!(fail(id, "a", 0, "x"), "failed");
            assert_eq!(messages("own"), "0/2");
        });
        invariants_hold();
    }

    #[pg_test]
    fn a_late_report_of_a_skipped_step_archives_in_the_stored_queue() {
        let runs = three_runs(&["'a'", "'b'", "'c'"], "{}");
        claim_from("Jobs", "own");
        for step in ["a", "b"] {
            run(&format!(
                "select pgflow._cascade_force_skip_steps('{}', '{step}', 'condition_unmet')",
                runs.own
            ));
        }
        unarchive("own");
        apart(&runs, |id| {
            assert_eq!(complete(id, "a", 0, "1"), "skipped");
            assert_eq!(messages("own"), "2/1");
            assert_eq!(fail(id, "b", 0, "x"), "skipped");
            assert_eq!(messages("own"), "1/2");
        });
        invariants_hold();
    }

    #[pg_test]
    fn archiving_a_task_s_message_leaves_equal_ids_alone() {
        apart(&three_runs(&["'a'"], "{}"), |id| {
            run(&format!(
                "select pgflow._archive_task_message('{id}', 'a', 0)"
            ));
            assert_eq!(messages("own"), "0/1");
        });
    }

    // Recovery. The other two runs are being worked on as well: a message made visible by mistake would show.

    #[pg_test]
    fn one_stalled_task_is_requeued_in_its_own_queue() {
        let runs = three_runs(&["'a'"], "{}");
        for queue in ["jobs", "own", "later"] {
            assert_eq!(claim_from("Jobs", queue).len(), 1);
        }
        age(runs.own);
        apart(&runs, |id| {
            assert_eq!(requeue(), "1");
            assert_eq!(tasks(id), ["a[0]:queued"]);
            assert!(visible_in("own", 1) <= 0);
        });
        invariants_hold();
    }

    #[pg_test]
    fn a_task_counts_as_stalled_30_seconds_after_its_effective_timeout() {
        flow("f", &["'a', timeout => 100", "'b'"]);
        let id = start("f", "{}");
        claim("f");
        let started_ago = |seconds: i32| {
            run(&format!(
                "update pgflow.step_tasks set queued_at = clock_timestamp() - interval '1 hour',
                   started_at = clock_timestamp() - interval '{seconds} s' where status = 'started'"
            ));
            requeue()
        };
        assert_eq!(started_ago(89), "0");
        assert_eq!(started_ago(91), "1");
        assert_eq!(tasks(id), ["a[0]:started", "b[0]:queued"]);
        assert_eq!(started_ago(129), "0");
        assert_eq!(started_ago(131), "1");
        assert_eq!(tasks(id), ["a[0]:queued", "b[0]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn several_stalled_tasks_are_requeued_in_their_own_queue() {
        let runs = three_runs(&MAP, "[7, 8, 9]");
        for queue in ["jobs", "own", "later"] {
            assert_eq!(claim_from("Jobs", queue).len(), 3);
        }
        age(runs.own);
        apart(&runs, |_| {
            assert_eq!(requeue(), "3");
            assert_eq!(claim_from("Jobs", "own").len(), 3);
        });
        invariants_hold();
    }

    #[pg_test]
    fn one_recovery_requeues_each_task_in_its_own_queue() {
        let runs = three_runs(&MAP, "[7, 8]");
        for queue in ["jobs", "own", "later"] {
            assert_eq!(claim_from("Jobs", queue).len(), 2);
        }
        for run in [runs.own, runs.later] {
            age(run);
        }
        let untouched = rows("select q::text from pgmq.q_jobs q order by msg_id");
        assert_eq!(requeue(), "4");
        for queue in ["own", "later"] {
            assert!(
                [1, 2].iter().all(|id| visible_in(queue, *id) <= 0),
                "{queue}"
            );
        }
        assert_eq!(
            rows("select q::text from pgmq.q_jobs q order by msg_id"),
            untouched
        );
        invariants_hold();
    }

    #[pg_test]
    fn permanently_stalled_tasks_are_archived_in_their_own_queue() {
        for (input, archived) in [("[7]", "0/1"), ("[7, 8, 9]", "0/3")] {
            let runs = three_runs(&MAP, input);
            for queue in ["jobs", "own", "later"] {
                claim_from("Jobs", queue);
            }
            run(&format!(
                "update pgflow.step_tasks set requeued_count = 3 where run_id = '{}'",
                runs.own
            ));
            age(runs.own);
            apart(&runs, |id| {
                assert_eq!(requeue(), "0");
                assert_eq!(
                    of_task(id, "m", 0, "status || (permanently_stalled_at is not null)"),
                    "startedtrue"
                );
                assert_eq!(messages("own"), archived);
            });
            invariants_hold();
            run("select pgflow.delete_flow_and_data('Jobs');
                 select pgmq.drop_queue('jobs'), pgmq.drop_queue('own')");
        }
    }

    // One run in several queues: each task's message is moved in its own, whatever is done to all of them.

    /// Run 1 is in the default queue with ids 1 to 4. Run 2 has `a` and `m` in queue `own`, `b` in `later`, with ids
    /// that run 1 has too.
    fn spread(of_a: &str) -> (Uuid, Uuid) {
        flow("Jobs", &[&format!("'a'{of_a}"), "'b'", MAP[0]]);
        let whole = start("Jobs", "[7, 8]");
        route("Jobs", "a", "own");
        route("Jobs", "b", "later");
        route("Jobs", "m", "own");
        let spread = start("Jobs", "[7, 8]");
        assert_eq!(
            rows(&format!(
                "select step_slug || task_index || queue_name || message_id from pgflow.step_tasks
                 where run_id = '{spread}' order by 1"
            )),
            ["a0own1", "b0later1", "m0own2", "m1own3"]
        );
        (whole, spread)
    }

    fn all_of_default() -> Vec<String> {
        rows("select q::text from pgmq.q_jobs q order by msg_id")
    }

    #[pg_test]
    fn a_run_in_two_queues_is_cancelled_in_both_and_nowhere_else() {
        let (whole, id) = spread(", max_attempts => 1");
        let before = (snapshot(whole), all_of_default());
        assert_eq!(claim_from("Jobs", "own").len(), 3);
        assert_eq!(fail(id, "a", 0, "x"), "failed");
        assert_eq!([messages("own"), messages("later")], ["0/3", "0/1"]);
        assert_eq!((snapshot(whole), all_of_default()), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_run_in_two_queues_recovers_in_both_and_nowhere_else() {
        let (whole, id) = spread("");
        for queue in ["jobs", "own", "later"] {
            claim_from("Jobs", queue);
        }
        age(id);
        let before = (snapshot(whole), all_of_default());
        assert_eq!(requeue(), "4");
        assert!([1, 2, 3].iter().all(|id| visible_in("own", *id) <= 0));
        assert!(visible_in("later", 1) <= 0);
        assert_eq!((snapshot(whole), all_of_default()), before);
        invariants_hold();
    }

    #[pg_test]
    fn a_run_in_two_queues_is_worked_through_from_both() {
        let (whole, id) = spread("");
        let before = (snapshot(whole), all_of_default());
        assert_eq!(claim_from("Jobs", "later"), ["b[0] {}"]);
        assert_eq!(claim_from("Jobs", "own"), ["a[0] {}", "m[0] 7", "m[1] 8"]);
        complete(id, "m", 1, "4");
        complete(id, "b", 0, "2");
        complete(id, "a", 0, "1");
        complete(id, "m", 0, "3");
        assert_eq!(outcome(id), "completed {\"a\": 1, \"b\": 2, \"m\": [3, 4]}");
        assert_eq!([messages("own"), messages("later")], ["0/3", "0/1"]);
        assert_eq!((snapshot(whole), all_of_default()), before);
        invariants_hold();
    }

    // Deletion.

    #[pg_test]
    fn deletion_drops_the_queues_of_its_own_steps_only() {
        let (_, id) = spread("");
        flow("Other", &[MAP[0]]);
        let kept = start("Other", "[7, 8]");
        route("Jobs", "m", "jobs");
        let other = |run| (snapshot(run), rows("select q::text from pgmq.q_other q"));
        let before = other(kept);
        run("select pgflow.delete_flow_and_data('Jobs')");
        assert_eq!(snapshot(id), NONE);
        assert_eq!(rows("select queue_name from pgmq.list_queues()"), ["other"]);
        assert_eq!(other(kept), before);
        assert_eq!(claim("Other"), ["m[0] 7", "m[1] 8"]);
        invariants_hold();
    }

    #[pg_test]
    fn an_empty_flow_takes_its_default_queue_with_it() {
        flow("Empty", &[]);
        flow("Other", &[MAP[0]]);
        let kept = start("Other", "[7, 8]");
        run("select pgflow.delete_flow_and_data('Empty')");
        assert_eq!(rows("select queue_name from pgmq.list_queues()"), ["other"]);
        assert_eq!(
            rows("select flow_slug from pgflow.flows"),
            ["Other".to_string()]
        );
        assert_eq!(tasks(kept), ["m[0]:queued", "m[1]:queued"]);
        invariants_hold();
    }

    #[pg_test]
    fn only_an_exact_slug_authorises_dropping_a_queue() {
        flow("Jobs", &["'a'"]);
        run("select pgmq.create('mine')");
        let id = start("Jobs", "{}");
        let before = (snapshot(id), all_of_default());
        for slug in ["jobs", "JOBS", "mine", ""] {
            run(&format!("select pgflow.delete_flow_and_data('{slug}')"));
        }
        assert_eq!((snapshot(id), all_of_default()), before);
        assert_eq!(
            rows("select queue_name from pgmq.list_queues() order by 1"),
            ["jobs", "mine"]
        );
    }
}
