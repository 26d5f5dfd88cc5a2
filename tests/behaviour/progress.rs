//! The views run_progress and step_progress: how far runs and their steps are.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// `status total/started/completed/skipped/failed completed tasks/total tasks` of a run.
    fn progress(run_id: Uuid) -> String {
        text(&format!(
            "select format('%s %s/%s/%s/%s/%s %s/%s', status, total_steps, started_steps, completed_steps, skipped_steps,
                           failed_steps, completed_tasks, total_tasks)
             from pgflow.run_progress where run_id = '{run_id}'"
        ))
    }

    /// `step status queued/started/completed/failed of total, attempts, retries` of every step.
    fn by_step(run_id: Uuid) -> Vec<String> {
        rows(&format!(
            "select format('%s %s %s/%s/%s/%s of %s, %s, %s', step_slug, status, queued_tasks, started_tasks, completed_tasks,
                           failed_tasks, coalesce(total_tasks::text, '?'), attempts_count, retries_count)
             from pgflow.step_progress where run_id = '{run_id}' order by step_index"
        ))
    }

    #[pg_test]
    fn a_run_s_progress_follows_its_steps_and_tasks() {
        flow(
            "f",
            &[
                "'a'",
                "'m', array['a'], step_type => 'map'",
                "'s', array['a'], required_input_pattern => '{\"a\": {}}'",
                "'b', array['m', 's']",
            ],
        );
        let id = start("f", "{}");
        assert_eq!(progress(id), "started 4/1/0/0/0 0/3");
        claim("f");
        complete(id, "a", 0, "[1, 2, 3]");
        assert_eq!(progress(id), "started 4/1/1/1/0 1/5");
        claim("f");
        complete(id, "m", 0, "1");
        complete(id, "m", 1, "1");
        assert_eq!(progress(id), "started 4/1/1/1/0 3/5");
        complete(id, "m", 2, "1");
        claim("f");
        complete(id, "b", 0, "1");
        assert_eq!(progress(id), "completed 4/0/3/1/0 5/5");
        invariants_hold();
    }

    #[pg_test]
    fn a_failed_run_s_progress_says_why() {
        flow(
            "f",
            &[
                "'a', max_attempts => 1",
                "'b', step_type => 'map', max_attempts => 1",
            ],
        );
        let id = start("f", "[1, 2]");
        claim("f");
        complete(id, "b", 0, "1");
        fail(id, "a", 0, "no luck");
        assert_eq!(progress(id), "failed 2/1/0/0/1 1/3");
        assert_eq!(
            rows(
                "select concat_ws(' ', error_message, ended_at = (select failed_at from pgflow.runs)) from pgflow.run_progress
                 union all select concat_ws(' ', step_slug, error_message) from pgflow.step_progress where status = 'failed'"
            ),
            ["no luck t", "a no luck"]
        );
        assert_eq!(
            by_step(id),
            [
                "a failed 0/0/0/1 of 1, 1, 0",
                "b started 0/0/1/0 of 2, 2, 0"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn completed_tasks_are_those_that_the_table_has() {
        flow(
            "f",
            &[
                "'m', step_type => 'map', max_attempts => 1, when_exhausted => 'skip'",
                "'b', array['m']",
                "'e', step_type => 'map'",
            ],
        );
        let done = start("f", "[1, 2]");
        let under_way = start("f", "[1, 2]");
        start("f", "[]");
        claim("f");
        complete(done, "e", 0, "1");
        complete(done, "e", 1, "1");
        complete(under_way, "e", 1, "1");
        complete(under_way, "m", 0, "1");
        complete(done, "m", 0, "1");
        fail(done, "m", 1, "no luck");
        assert_eq!(
            rows(
                "select p.completed_tasks || '/' || p.total_tasks from pgflow.run_progress p
                 where p.completed_tasks <> (
                   select count(*) from pgflow.step_tasks t join pgflow.step_states s using (run_id, step_slug)
                   where t.run_id = p.run_id and t.status = 'completed' and s.status <> 'skipped')"
            ),
            NONE
        );
        assert_eq!(progress(done), "started 3/1/1/1/0 2/3");
        assert_eq!(progress(under_way), "started 3/2/0/0/0 2/5");
        invariants_hold();
    }

    #[pg_test]
    fn a_step_s_progress_counts_tasks_attempts_and_retries() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        let id = start("f", "{}");
        assert_eq!(
            by_step(id),
            [
                "a started 1/0/0/0 of 1, 0, 0",
                "m created 0/0/0/0 of ?, 0, 0"
            ]
        );
        claim("f");
        fail(id, "a", 0, "once");
        assert_eq!(by_step(id)[0], "a started 1/0/0/0 of 1, 1, 1");
        claim_hidden("f");
        assert_eq!(by_step(id)[0], "a started 0/1/0/0 of 1, 2, 1");
        complete(id, "a", 0, "[1, 2]");
        assert_eq!(
            by_step(id),
            [
                "a completed 0/0/1/0 of 1, 2, 1",
                "m started 2/0/0/0 of 2, 0, 0"
            ]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_waiting_step_names_what_it_waits_for() {
        flow("f", &["'z'", "'a'", "'b', array['a', 'z']"]);
        let id = start("f", "{}");
        let waits = format!(
            "select coalesce(waits_for::text, 'nothing') from pgflow.step_progress where run_id = '{id}' order by step_index"
        );
        assert_eq!(rows(&waits), ["nothing", "nothing", "{z,a}"]);
        claim("f");
        complete(id, "z", 0, "1");
        assert_eq!(rows(&waits), ["nothing", "nothing", "{a}"]);
        complete(id, "a", 0, "1");
        assert_eq!(rows(&waits), ["nothing", "nothing", "nothing"]);
        invariants_hold();
    }

    #[pg_test]
    fn durations_end_with_what_they_measure() {
        flow("f", &["'a', max_attempts => 1", "'b'", "'c', array['b']"]);
        let id = start("f", "{}");
        claim("f");
        // As if everything had begun an hour before.
        run("update pgflow.runs set started_at = now() - interval '1 hour';
             update pgflow.step_states set created_at = now() - interval '1 hour', started_at = now() - interval '1 hour'
             where step_slug <> 'c'");
        let growing = "select string_agg(coalesce(round(extract(epoch from duration))::text, 'none'), ' ') || ', ' || count(ended_at)";
        assert_eq!(
            text(&format!("{growing} from pgflow.run_progress")),
            "3600, 0"
        );
        assert_eq!(
            text(&format!(
                "{growing} from (select * from pgflow.step_progress order by step_index) p"
            )),
            "3600 3600 none, 0"
        );
        fail(id, "a", 0, "no luck");
        // As if the failure had come after half of it.
        run("alter table pgflow.runs disable trigger user; alter table pgflow.step_states disable trigger user;
             update pgflow.runs set failed_at = now() - interval '30 minutes';
             update pgflow.step_states set failed_at = now() - interval '30 minutes' where step_slug = 'a'");
        assert_eq!(text("select duration from pgflow.run_progress"), "00:30:00");
        assert_eq!(
            rows("select coalesce(duration::text, 'none') || ' ' || (ended_at is not null) from pgflow.step_progress order by step_index"),
            ["00:30:00 true", "00:30:00 false", "none false"]
        );
    }

    #[pg_test]
    fn every_run_has_a_line_also_one_without_steps() {
        flow("f", &[]);
        let id = start("f", "{}");
        assert_eq!(progress(id), "completed 0/0/0/0/0 0/0");
        assert_eq!(by_step(id), NONE);
    }

    #[pg_test]
    fn a_run_s_progress_reads_the_run_s_rows_only() {
        flow("f", &["'m', step_type => 'map'", "'b', array['m']"]);
        let id = start("f", "[1, 2]");
        let run_progress = format!("select * from pgflow.run_progress where run_id = '{id}'");
        let step_progress = format!("select * from pgflow.step_progress where run_id = '{id}'");
        let pages = || {
            run("analyze pgflow.runs, pgflow.step_states, pgflow.step_tasks");
            [&run_progress, &step_progress].map(|query| {
                pages_of(query);
                pages_of(query)
            })
        };
        run("select pgflow.start_flow('f', '[1, 2]') from generate_series(1, 100)");
        let few = pages();
        run("select pgflow.start_flow('f', '[1, 2]') from generate_series(1, 2000)");
        let many = pages();
        assert!(
            many[0] < few[0] + 10.0 && many[1] < few[1] + 20.0,
            "{few:?} pages, then {many:?}"
        );
    }

    /// A list of a user's own runs, with their progress.
    #[pg_test]
    fn a_join_with_progress_reads_the_joined_runs_only() {
        flow("f", &["'m', step_type => 'map'", "'b', array['m']"]);
        let id = start("f", "[1, 2]");
        run(&format!(
            "create temporary table orders as select '{id}'::uuid as run_id; analyze orders"
        ));
        let pages = |runs: i32| {
            run(&format!(
                "select pgflow.start_flow('f', '[1, 2]') from generate_series(1, {runs});
                 analyze pgflow.runs, pgflow.step_states, pgflow.step_tasks"
            ));
            ["run_progress", "step_progress"].map(|view| {
                let query = format!("select * from orders join pgflow.{view} using (run_id)");
                pages_of(&query);
                pages_of(&query)
            })
        };
        let few = pages(100);
        let many = pages(2000);
        assert!(
            many[0] < few[0] + 10.0 && many[1] < few[1] + 20.0,
            "{few:?} pages, then {many:?}"
        );
    }

    #[pg_test]
    fn a_run_s_progress_reads_no_task() {
        flow("f", &["'m', step_type => 'map'"]);
        let id = start("f", "[1]");
        let uses = rows(
            "select 1 from pg_depend d
             where d.refobjid = 'pgflow.step_tasks'::regclass
               and d.objid in (select oid from pg_rewrite where ev_class = 'pgflow.run_progress'::regclass)",
        );
        assert_eq!(uses, NONE);
        assert_eq!(progress(id), "started 1/1/0/0/0 0/1");
    }
}
