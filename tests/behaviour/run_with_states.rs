//! start_flow_with_states and get_run_with_states: a run and its steps as one JSON object.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    /// What both functions return for a run, read from the tables.
    fn expected(order: &str) -> String {
        text(&format!(
            "select jsonb_build_object('run', to_jsonb(r), 'steps', (
               select coalesce(jsonb_agg(to_jsonb(s) order by {order}), '[]')
               from pgflow.step_states s join pgflow.steps d using (flow_slug, step_slug)
               where s.run_id = r.run_id))
             from pgflow.runs r"
        ))
    }

    #[pg_test]
    fn get_run_with_states_gives_the_run_and_its_step_states() {
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{\"x\": 1.10}");
        claim("f");
        complete(id, "a", 0, "{\"y\": 1e400}");
        assert_eq!(
            text(&format!("select pgflow.get_run_with_states('{id}')")),
            expected("d.step_index")
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_run_without_steps_has_an_empty_array_of_states() {
        flow("f", &[]);
        let id = start("f", "{}");
        assert_eq!(
            text(&format!(
                "select pgflow.get_run_with_states('{id}') -> 'steps'"
            )),
            "[]"
        );
        invariants_hold();
    }

    #[pg_test]
    fn an_unknown_or_null_run_has_no_states() {
        assert_eq!(
            text("select pgflow.get_run_with_states(gen_random_uuid())"),
            "NULL"
        );
        assert_eq!(text("select pgflow.get_run_with_states(null)"), "NULL");
    }

    #[pg_test]
    fn get_run_with_states_shows_only_its_own_run() {
        flow("f", &["'a'"]);
        let first = start("f", "1");
        start("f", "2");
        assert_eq!(
            text(&format!(
                "select jsonb_path_query_array(s, '$.steps[*].run_id') || (s -> 'run' -> 'input')
                 from pgflow.get_run_with_states('{first}') s"
            )),
            format!("[\"{first}\", 1]")
        );
        invariants_hold();
    }

    #[pg_test]
    fn start_flow_with_states_starts_a_run_and_shows_it() {
        flow("f", &["'a'", "'b', array['a']"]);
        let shown = text("select pgflow.start_flow_with_states('f', '{\"x\": 1.10}')");
        assert_eq!(shown, expected("d.step_index"));
        assert_eq!(messages("f"), "1/0");
        invariants_hold();
    }

    #[pg_test]
    fn start_flow_with_states_shows_a_run_that_completed_at_once() {
        flow("f", &["'m', step_type => 'map'"]);
        assert_eq!(
            text(
                "select (s #>> '{run,status}') || (s #>> '{run,output}') || (s #>> '{steps,0,status}')
                 from pgflow.start_flow_with_states('f', '[]') s"
            ),
            "completed{\"m\": []}completed"
        );
        invariants_hold();
    }

    #[pg_test]
    fn start_flow_with_states_takes_a_run_id_by_name() {
        flow("f", &["'a'"]);
        let id = "11111111-2222-3333-4444-555555555555";
        let call = format!(
            "select pgflow.start_flow_with_states(run_id => '{id}', input => '{{}}', flow_slug => 'f')"
        );
        run(&call);
        assert_eq!(rows("select run_id from pgflow.runs"), [id]);
        assert_eq!(failure(&call).code, "23505");
        invariants_hold();
    }

    #[pg_test]
    fn start_flow_with_states_refuses_what_start_flow_refuses() {
        flow("f", &["'m', step_type => 'map'"]);
        for (arguments, code) in [
            ("'nope', '[]'", "23503"),
            ("null, '[]'", "23502"),
            ("'f', null", "23502"),
            ("'f', '{}'", "22023"),
        ] {
            let call = format!("select pgflow.start_flow_with_states({arguments})");
            assert_eq!(failure(&call).code, code, "{call}");
        }
        assert_eq!(text("select count(*) from pgflow.runs"), "0");
    }

    #[pg_test]
    fn a_role_with_usage_alone_starts_and_reads_runs() {
        flow("f", &["'a'"]);
        run("create role pgflow_client; grant usage on schema pgflow to pgflow_client; set local role pgflow_client");
        let id = text("select pgflow.start_flow_with_states('f', '{}') #>> '{run,run_id}'");
        assert_eq!(
            text(&format!(
                "select pgflow.get_run_with_states('{id}') #>> '{{run,run_id}}'"
            )),
            id
        );
        run("reset role");
        invariants_hold();
    }

    #[pg_test]
    fn a_role_with_usage_alone_may_do_nothing_more() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run("create role pgflow_client; grant usage on schema pgflow to pgflow_client");
        run("create function pg_temp.code(sql text) returns text language plpgsql as
             $$ begin execute sql; return 'done'; exception when others then return sqlstate; end $$");
        run("set local role pgflow_client");
        for call in [
            "select * from pgflow.flows".to_string(),
            "select pgflow.create_flow('g')".into(),
            "select pgflow.add_step('f', 'b')".into(),
            "select pgflow.start_flow('f', '{}')".into(),
            "select pgflow.start_tasks('f', '{1}', null)".into(),
            format!("select pgflow.complete_task('{id}', 'a', 0, null)"),
            format!("select pgflow.fail_task('{id}', 'a', 0, 'x')"),
            format!("select pgflow.maybe_complete_run('{id}')"),
            format!("select pgflow._archive_task_message('{id}', 'a', 0)"),
            "select pgflow.set_vt_batch('f', '{1}', '{1}')".into(),
            "select * from pgflow.run_progress".into(),
            "select * from pgflow.step_progress".into(),
            "select * from pgflow.stalled".into(),
            "select * from pgflow.permanently_stalled_tasks".into(),
            "select * from pgflow.live_workers".into(),
            "select pgflow.queue_depth()".into(),
            "select pgflow.flow_graph('f')".into(),
            format!("select pgflow.run_graph('{id}')"),
        ] {
            let quoted = call.replace('\'', "''");
            assert_eq!(
                text(&format!("select pg_temp.code('{quoted}')")),
                "42501",
                "{call}"
            );
        }
        run("reset role");
    }
}
