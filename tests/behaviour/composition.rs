//! The engine inside other SQL: triggers, loops, cursors, subtransactions, read-only transactions, odd arguments.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    #[pg_test]
    fn a_trigger_may_start_a_run_when_another_completes() {
        flow("f", &["'a'"]);
        flow("g", &["'m', step_type => 'map'"]);
        run("create function pg_temp.follow_up() returns trigger language plpgsql as $$
             begin
               perform pgflow.start_flow('g', new.output -> 'a');
               return null;
             end $$;
             create trigger follow_up after update on pgflow.runs for each row
             when (new.flow_slug = 'f' and new.status = 'completed') execute function pg_temp.follow_up()");
        let id = start("f", "{}");
        claim("f");
        assert_eq!(complete(id, "a", 0, "[1, 2]"), "completed");
        assert_eq!(claim("g"), ["m[0] 1", "m[1] 2"]);
        invariants_hold();
    }

    #[pg_test]
    fn what_listens_to_events_may_read_the_run() {
        record_events();
        run("create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true)
             returns void language sql as $$
               insert into realtime.sent (event, payload)
               select $2, pgflow.get_run_with_states(($1 ->> 'run_id')::uuid)
             $$");
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "1");
        claim("f");
        complete(id, "b", 0, "2");
        assert_eq!(
            text("select payload #>> '{run,output}' from realtime.sent where event = 'run:completed'"),
            "{\"b\": 2}"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_session_goes_on_after_errors() {
        flow("f", &["'a'", "'m', array['a'], step_type => 'map'"]);
        for call in [
            "select pgflow.create_flow('F')",
            "select pgflow.add_step('f', 'x', array['nope'])",
            "select pgflow.start_flow('f', null)",
            "select pgflow.set_vt_batch('f', '{1}', '{1, 2}')",
            "select pgflow.set_vt_batch('nope', '{1}', '{1}')",
        ] {
            failure(call);
        }
        let id = start("f", "{}");
        failure("select pgflow.start_tasks('f', '{1}', gen_random_uuid())");
        failure(&format!(
            "select 1 / count(*) filter (where false) from pgflow.complete_task('{id}', 'a', 0, '1')"
        ));
        assert_eq!(claim("f"), ["a[0] {}"]);
        failure(&format!(
            "select 1 / count(*) filter (where false) from pgflow.complete_task('{id}', 'a', 0, '[1, 2]')"
        ));
        assert_eq!(tasks(id), ["a[0]:started"]);
        complete(id, "a", 0, "[1, 2]");
        assert_eq!(claim("f"), ["m[0] 1", "m[1] 2"]);
        invariants_hold();
    }

    #[pg_test]
    fn a_whole_run_fits_in_one_plpgsql_block() {
        run("do $$
             declare task record;
             begin
               perform pgflow.create_flow('f');
               perform pgflow.add_step('f', 'a');
               perform pgflow.add_step('f', 'm', array['a'], step_type => 'map');
               perform pgflow.start_flow('f', '{}');
               for turn in 1 .. 2 loop
                 for task in
                   select * from pgflow.start_tasks('f', array(select msg_id from pgmq.read('f', 30, 10)), null)
                 loop
                   perform pgflow.complete_task(task.run_id, task.step_slug, task.task_index,
                     case task.step_slug when 'a' then '[1, 2, 3]' else to_jsonb((task.input #>> '{}')::integer * 10) end);
                 end loop;
               end loop;
             end $$");
        assert_eq!(
            text("select output from pgflow.runs"),
            "{\"m\": [10, 20, 30]}"
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_claim_is_made_whole_even_if_one_row_is_fetched() {
        flow("f", &["'m', step_type => 'map'"]);
        let id = start("f", "[1, 2, 3]");
        run("select * from pgflow.start_tasks('f', '{1, 2, 3}', null) limit 1");
        assert_eq!(tasks(id), ["m[0]:started", "m[1]:started", "m[2]:started"]);
        invariants_hold();
    }

    #[pg_test]
    fn reports_about_several_tasks_fit_in_one_statement() {
        flow("f", &["'m', step_type => 'map'"]);
        let id = start("f", "[1, 2, 3]");
        claim("f");
        assert_eq!(
            rows(&format!(
                "select t.status from generate_series(0, 2) i,
                        pgflow.complete_task('{id}', 'm', i, to_jsonb(i)) t order by i"
            )),
            ["completed", "completed", "completed"]
        );
        assert_eq!(outcome(id), "completed {\"m\": [0, 1, 2]}");
        invariants_hold();
    }

    #[pg_test]
    fn a_run_can_be_read_in_a_read_only_transaction() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run("set local transaction_read_only = on");
        assert_eq!(
            text(&format!(
                "select pgflow.get_run_with_states('{id}') #>> '{{run,status}}'"
            )),
            "started"
        );
    }

    #[pg_test]
    fn a_run_cannot_be_started_in_a_read_only_transaction() {
        flow("f", &["'a'"]);
        run("create function pg_temp.code() returns text language plpgsql as $$
             begin perform pgflow.start_flow('f', '{}'); return 'done'; exception when others then return sqlstate; end $$");
        run("set local transaction_read_only = on");
        assert_eq!(text("select pg_temp.code()"), "25006");
    }

    #[pg_test]
    fn the_caller_s_search_path_does_not_matter() {
        flow("f", &["'a'", "'b', array['a']"]);
        run("set local search_path = ''");
        let id = start("f", "{}");
        claim("f");
        run("set local search_path = 'pgmq, public'");
        complete(id, "a", 0, "1");
        run("set local search_path = 'nowhere'");
        claim("f");
        complete(id, "b", 0, "2");
        run("reset search_path");
        assert_eq!(outcome(id), "completed {\"b\": 2}");
        invariants_hold();
    }

    #[pg_test]
    fn null_for_every_argument_is_never_an_internal_error() {
        run("create function pg_temp.code(sql text) returns text language plpgsql as $$
             begin execute sql; return 'done'; exception when others then return sqlstate || ' ' || sqlerrm; end $$");
        assert_eq!(
            rows(
                "select call || ': ' || code from (
                   select call, pg_temp.code(call) as code from (
                     select format('select pgflow.%I(%s)', proname,
                       (select string_agg('null::' || format_type(t, null), ', ') from unnest(proargtypes) t)) as call
                     from pg_proc where pronamespace = 'pgflow'::regnamespace and pronargs > 0) as calls
                 ) as called
                 where code !~ '^(done|2|42|55)'"
            ),
            NONE
        );
        assert_eq!(
            text("select (select count(*) from pgflow.flows) + (select count(*) from pgmq.list_queues())"),
            "0"
        );
    }

    #[pg_test]
    fn a_role_that_owns_nothing_can_be_granted_the_whole_engine() {
        run("create role pgflow_app;
             grant usage on schema pgflow, pgmq to pgflow_app;
             grant create on schema pgmq to pgflow_app;
             grant all on all tables in schema pgflow, pgmq to pgflow_app;
             set local role pgflow_app");
        run("select pgflow.create_flow('f');
             select pgflow.add_step('f', 'a');
             select pgflow.add_step('f', 'm', array['a'], step_type => 'map', base_delay => 0)");
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "[1, 2]");
        claim("f");
        assert_eq!(fail(id, "m", 0, "x"), "queued");
        claim("f");
        complete(id, "m", 0, "3");
        complete(id, "m", 1, "4");
        assert_eq!(outcome(id), "completed {\"m\": [3, 4]}");
        run("reset role");
        invariants_hold();
    }
}
