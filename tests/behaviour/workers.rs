//! track_worker_function, mark_worker_stopped and ensure_workers: who works, and who is called when nobody does.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    fn install_net() {
        run(include_str!("../fixtures/net.sql"));
    }

    fn install_vault() {
        run(include_str!("../fixtures/vault.sql"));
    }

    fn secret(name: &str, value: &str) {
        run(&format!(
            "insert into vault.secrets (name, secret) values ('{name}', {value})
             on conflict (name) do update set secret = excluded.secret"
        ));
    }

    /// A local Supabase with pg_net and without Vault.
    fn local() {
        install_net();
        run("set local app.settings.jwt_secret = 'super-secret-jwt-token-with-at-least-32-characters-long'");
    }

    /// A hosted project `abc` with pg_net, Vault and the key `k`.
    fn hosted() {
        install_net();
        install_vault();
        secret("supabase_project_id", "'abc'");
        secret("supabase_service_role_key", "'k'");
    }

    fn track(name: &str) {
        run(&format!("select pgflow.track_worker_function('{name}')"));
    }

    /// Sets columns of a tracked function.
    fn set(name: &str, columns: &str) {
        run(&format!(
            "update pgflow.worker_functions set {columns} where function_name = '{name}'"
        ));
    }

    fn of(name: &str, expression: &str) -> String {
        text(&format!(
            "select {expression} from pgflow.worker_functions where function_name = '{name}'"
        ))
    }

    /// A worker of a function, as it registers itself, whose heartbeat is so old.
    fn worker_of(name: &str, heartbeat: &str, more: &str) {
        run(&format!(
            "insert into pgflow.workers (worker_id, queue_name, function_name)
             values (gen_random_uuid(), 'q', '{name}');
             update pgflow.workers set last_heartbeat_at = now() - interval '{heartbeat}' {more}
             where function_name = '{name}' and last_heartbeat_at = now()"
        ));
    }

    /// Names of the functions that a call of ensure_workers says it has called.
    fn ensure() -> Vec<String> {
        rows("select function_name from pgflow.ensure_workers() order by 1")
    }

    const POSTED: &str = "select url from net.posted order by id";

    // track_worker_function.

    #[pg_test]
    fn a_tracked_function_is_enabled_called_over_http_and_debounced() {
        track("f");
        assert_eq!(
            of(
                "f",
                "format('%s %s %s %s', enabled, start_mode, debounce, last_invoked_at is null)"
            ),
            "t http 00:00:06 t"
        );
    }

    #[pg_test]
    fn a_function_can_be_tracked_as_a_process() {
        run("select pgflow.track_worker_function(start_mode => 'process', function_name => 'f')");
        assert_eq!(of("f", "start_mode"), "process");
        run("select pgflow.track_worker_function('g', 'process')");
        assert_eq!(of("g", "start_mode"), "process");
    }

    #[pg_test]
    fn tracking_a_function_again_overwrites_its_start_mode() {
        track("f");
        run("select pgflow.track_worker_function('f', 'process')");
        assert_eq!(of("f", "start_mode"), "process");
        track("f");
        assert_eq!(of("f", "start_mode"), "http");
        assert_eq!(text("select count(*) from pgflow.worker_functions"), "1");
    }

    #[pg_test]
    fn tracking_a_function_again_says_when() {
        track("f");
        set("f", "updated_at = now() - interval '1 day'");
        run("select set_config('pgflow_test.before', clock_timestamp()::text, true)");
        track("f");
        assert_eq!(
            of(
                "f",
                "updated_at between current_setting('pgflow_test.before')::timestamptz and clock_timestamp()"
            ),
            "true"
        );
    }

    #[pg_test]
    fn tracking_a_function_again_leaves_everything_else() {
        track("f");
        track("g");
        set(
            "f",
            "enabled = false, debounce = '1 hour', last_invoked_at = '2020-01-01', created_at = '2019-01-01'",
        );
        let kept = "to_jsonb(worker_functions) - '{start_mode,updated_at}'::text[]";
        let before = of("f", kept);
        let other = of("g", "(ctid, worker_functions)::text");
        run("select pgflow.track_worker_function('f', 'process')");
        assert_eq!(of("f", kept), before);
        assert_eq!(of("g", "(ctid, worker_functions)::text"), other);
    }

    #[pg_test]
    fn a_function_with_another_start_mode_is_not_tracked() {
        for (arguments, code) in [
            ("'f', 'ftp'", "23514"),
            ("'f', ''", "23514"),
            ("'f', null", "23502"),
            ("null", "23502"),
        ] {
            assert_eq!(
                failure(&format!("select pgflow.track_worker_function({arguments})")).code,
                code,
                "{arguments}"
            );
        }
        assert_eq!(
            rows("select function_name from pgflow.worker_functions"),
            NONE
        );
    }

    // Workers register, beat and stop.

    #[pg_test]
    fn a_worker_registers_and_beats_with_plain_sql() {
        run(
            "insert into pgflow.workers (worker_id, queue_name, function_name)
             values ('00000000-0000-0000-0000-00000000000a', 'q', 'f')",
        );
        let beat = "update pgflow.workers set last_heartbeat_at = now()
                    where worker_id = '00000000-0000-0000-0000-00000000000a'
                    returning (deprecated_at is not null) as is_deprecated";
        assert_eq!(
            text("select num_nulls(deprecated_at, stopped_at) || (last_heartbeat_at = started_at)::text from pgflow.workers"),
            "2true"
        );
        assert!(!one::<bool>(beat));
        run("update pgflow.workers set deprecated_at = now()");
        assert!(one::<bool>(beat));
    }

    #[pg_test]
    fn a_stopped_worker_s_row_says_when() {
        worker_of("f", "1 s", "");
        worker_of("g", "1 s", "");
        run("select set_config('pgflow_test.before', clock_timestamp()::text, true)");
        let kept = "select to_jsonb(w) - 'stopped_at' from pgflow.workers w order by function_name";
        let before = rows(kept);
        run("select pgflow.mark_worker_stopped(worker_id => (
               select w.worker_id from pgflow.workers w where w.function_name = 'f'))");
        assert_eq!(
            rows(
                "select stopped_at between current_setting('pgflow_test.before')::timestamptz and clock_timestamp()
                 from pgflow.workers order by function_name"
            ),
            ["true", "NULL"]
        );
        assert_eq!(rows(kept), before);
    }

    #[pg_test]
    fn stopping_an_unknown_worker_does_nothing() {
        worker_of("f", "1 s", "");
        let before = rows("select (ctid, w)::text from pgflow.workers w");
        run("select pgflow.mark_worker_stopped(gen_random_uuid()), pgflow.mark_worker_stopped(null)");
        assert_eq!(rows("select (ctid, w)::text from pgflow.workers w"), before);
    }

    // ensure_workers on a local Supabase.

    #[pg_test]
    fn locally_every_enabled_http_function_is_called() {
        local();
        track("b");
        track("a-1_x");
        assert_eq!(ensure(), ["a-1_x", "b"]);
        assert_eq!(
            rows("select url from net.posted order by url"),
            [
                "http://kong:8000/functions/v1/a-1_x",
                "http://kong:8000/functions/v1/b"
            ]
        );
    }

    #[pg_test]
    fn a_local_call_has_empty_headers_and_an_empty_body() {
        local();
        track("f");
        ensure();
        assert_eq!(
            rows("select format('%s %s %s %s', headers, body, params, timeout_milliseconds) from net.posted"),
            ["{} {} {} 5000"]
        );
    }

    #[pg_test]
    fn locally_debounce_and_live_workers_do_not_matter() {
        local();
        track("f");
        set("f", "debounce = '1 day'");
        worker_of("f", "0 s", "");
        assert_eq!([ensure(), ensure()], [["f"], ["f"]]);
        assert_eq!(rows(POSTED).len(), 2);
    }

    #[pg_test]
    fn locally_disabled_and_process_functions_are_not_called() {
        local();
        track("off");
        set("off", "enabled = false");
        run("select pgflow.track_worker_function('process', 'process')");
        assert_eq!(ensure(), NONE);
        assert_eq!(rows(POSTED), NONE);
        assert_eq!(
            rows("select last_invoked_at from pgflow.worker_functions"),
            ["NULL", "NULL"]
        );
    }

    #[pg_test]
    fn locally_vault_is_not_looked_at() {
        local();
        install_vault();
        secret("supabase_project_id", "'abc'");
        secret("pgflow_auth_secret", "'k'");
        track("f");
        ensure();
        assert_eq!(rows(POSTED), ["http://kong:8000/functions/v1/f"]);
    }

    // ensure_workers on a hosted project.

    #[pg_test]
    fn a_hosted_call_goes_to_the_project_with_its_key() {
        hosted();
        track("my-worker");
        ensure();
        assert_eq!(
            rows("select format('%s %s %s %s', url, body, params, timeout_milliseconds) from net.posted"),
            ["https://abc.supabase.co/functions/v1/my-worker {} {} 5000"]
        );
        assert_eq!(
            text("select headers from net.posted"),
            r#"{"Content-Type": "application/json", "Authorization": "Bearer k"}"#
        );
    }

    #[pg_test]
    fn hosted_disabled_and_process_functions_are_never_called() {
        hosted();
        track("off");
        set("off", "enabled = false");
        run("select pgflow.track_worker_function('process', 'process')");
        assert_eq!(ensure(), NONE);
        assert_eq!(rows(POSTED), NONE);
    }

    #[pg_test]
    fn a_function_that_was_never_called_is_due() {
        hosted();
        track("f");
        assert_eq!(ensure(), ["f"]);
    }

    #[pg_test]
    fn a_function_is_due_again_when_its_debounce_is_over() {
        hosted();
        track("f");
        set("f", "last_invoked_at = now() - debounce");
        assert_eq!(ensure(), NONE);
        set(
            "f",
            "last_invoked_at = now() - debounce - interval '1 microsecond'",
        );
        assert_eq!(ensure(), ["f"]);
        assert_eq!(ensure(), NONE);
        assert_eq!(rows(POSTED).len(), 1);
    }

    #[pg_test]
    fn each_function_has_a_debounce_of_its_own() {
        hosted();
        track("slow");
        track("quick");
        set("slow", "debounce = '1 hour'");
        set("quick", "debounce = '1 second'");
        run("update pgflow.worker_functions set last_invoked_at = now() - interval '1 minute'");
        assert_eq!(ensure(), ["quick"]);
    }

    #[pg_test]
    fn a_function_with_a_live_worker_is_not_called() {
        hosted();
        track("f");
        worker_of("f", "5.999999 s", "");
        assert_eq!(ensure(), NONE);
        assert_eq!(rows(POSTED), NONE);
        assert_eq!(of("f", "last_invoked_at"), "NULL");
    }

    #[pg_test]
    fn a_worker_that_was_silent_for_the_debounce_is_not_live() {
        hosted();
        track("f");
        worker_of("f", "6 s", "");
        assert_eq!(ensure(), ["f"]);
    }

    #[pg_test]
    fn a_worker_s_silence_is_measured_by_its_function_s_debounce() {
        hosted();
        track("slow");
        track("quick");
        set("slow", "debounce = '1 hour'");
        set("quick", "debounce = '1 second'");
        worker_of("slow", "1 minute", "");
        worker_of("quick", "2 s", "");
        assert_eq!(ensure(), ["quick"]);
    }

    #[pg_test]
    fn a_stopped_or_deprecated_worker_is_not_live() {
        hosted();
        track("stopped");
        track("deprecated");
        worker_of("stopped", "0.5 s", ", stopped_at = now()");
        worker_of("deprecated", "0.5 s", ", deprecated_at = now()");
        assert_eq!(ensure(), ["deprecated", "stopped"]);
    }

    #[pg_test]
    fn a_worker_that_says_goodbye_is_replaced_at_once() {
        hosted();
        track("f");
        worker_of("f", "0.5 s", "");
        assert_eq!(ensure(), NONE);
        run("select pgflow.mark_worker_stopped(worker_id) from pgflow.workers");
        assert_eq!(ensure(), ["f"]);
    }

    #[pg_test]
    fn one_live_worker_among_dead_ones_is_enough() {
        hosted();
        track("f");
        worker_of("f", "1 day", "");
        worker_of("f", "0.5 s", ", stopped_at = now()");
        worker_of("f", "0.4 s", "");
        assert_eq!(ensure(), NONE);
    }

    #[pg_test]
    fn a_live_worker_of_another_function_does_not_matter() {
        hosted();
        track("f");
        worker_of("g", "0.5 s", "");
        assert_eq!(ensure(), ["f"]);
    }

    // Secrets.

    #[pg_test]
    fn the_auth_secret_counts_for_more_than_the_service_role_key() {
        hosted();
        secret("pgflow_auth_secret", "'own'");
        track("f");
        ensure();
        assert_eq!(
            text("select headers ->> 'Authorization' from net.posted"),
            "Bearer own"
        );
    }

    #[pg_test]
    fn the_auth_secret_is_enough() {
        install_net();
        install_vault();
        secret("supabase_project_id", "'abc'");
        secret("pgflow_auth_secret", "'own'");
        track("f");
        assert_eq!(ensure(), ["f"]);
        assert_eq!(
            text("select headers ->> 'Authorization' from net.posted"),
            "Bearer own"
        );
    }

    #[pg_test]
    fn an_empty_auth_secret_counts_as_absent() {
        for value in ["''", "null"] {
            hosted();
            secret("pgflow_auth_secret", value);
            track("f");
            assert_eq!(ensure(), ["f"], "{value}");
            assert_eq!(
                text("select headers ->> 'Authorization' from net.posted"),
                "Bearer k"
            );
            run("drop schema net cascade; drop schema vault cascade;
                 update pgflow.worker_functions set last_invoked_at = null");
        }
    }

    #[pg_test]
    fn without_a_project_or_a_key_nothing_is_sent() {
        hosted();
        track("f");
        for missing in ["supabase_project_id", "supabase_service_role_key"] {
            for change in [
                "update vault.secrets set secret = ''",
                "update vault.secrets set secret = null",
                "delete from vault.secrets",
            ] {
                run(&format!("{change} where name = '{missing}'"));
                assert_eq!(ensure(), NONE, "{change} {missing}");
                assert_eq!(rows(POSTED), NONE, "{change} {missing}");
                assert_eq!(of("f", "last_invoked_at"), "NULL");
                secret("supabase_project_id", "'abc'");
                secret("supabase_service_role_key", "'k'");
            }
        }
        assert_eq!(ensure(), ["f"]);
    }

    #[pg_test]
    fn other_secrets_are_not_used() {
        install_net();
        install_vault();
        secret("project_id", "'abc'");
        secret("SUPABASE_PROJECT_ID", "'abc'");
        secret("service_role_key", "'k'");
        secret("PGFLOW_AUTH_SECRET", "'k'");
        track("f");
        assert_eq!(ensure(), NONE);
        assert_eq!(rows(POSTED), NONE);
    }

    // What is told and kept.

    #[pg_test]
    fn each_call_gives_a_row_with_its_request_id() {
        for is_local in [true, false] {
            if is_local {
                local();
            } else {
                run("drop schema net cascade; reset app.settings.jwt_secret;
                     update pgflow.worker_functions set last_invoked_at = null");
                hosted();
            }
            track("a");
            track("b");
            track("off");
            set("off", "enabled = false");
            run("drop table if exists told; create temp table told as select * from pgflow.ensure_workers()");
            assert_eq!(
                rows(
                    "select format('%s %s %s', t.function_name, t.invoked, p.url ~ ('/' || t.function_name || '$'))
                     from told t join net.posted p on p.id = t.request_id order by 1"
                ),
                ["a t t", "b t t"]
            );
            assert_eq!(rows(POSTED).len(), 2);
        }
    }

    #[pg_test]
    fn a_call_is_remembered_by_the_clock() {
        for is_local in [true, false] {
            if is_local {
                local();
            } else {
                run("drop schema net cascade; reset app.settings.jwt_secret");
                hosted();
            }
            track("f");
            track("off");
            set("off", "enabled = false, last_invoked_at = '2020-01-01'");
            set("f", "last_invoked_at = '2020-01-01'");
            run("select set_config('pgflow_test.before', clock_timestamp()::text, true)");
            ensure();
            assert_eq!(
                of(
                    "f",
                    "last_invoked_at between current_setting('pgflow_test.before')::timestamptz and clock_timestamp()"
                ),
                "true"
            );
            assert_eq!(of("off", "last_invoked_at = '2020-01-01'"), "true");
        }
    }

    #[pg_test]
    fn without_functions_nobody_is_called() {
        hosted();
        assert_eq!(ensure(), NONE);
        local();
        assert_eq!(ensure(), NONE);
    }

    // Extensions that are missing.

    #[pg_test]
    fn ensuring_workers_without_pg_net_names_it() {
        install_vault();
        secret("supabase_project_id", "'abc'");
        secret("pgflow_auth_secret", "'k'");
        track("f");
        for setting in [
            "",
            "super-secret-jwt-token-with-at-least-32-characters-long",
        ] {
            run(&format!("set local app.settings.jwt_secret = '{setting}'"));
            let failure = failure("select pgflow.ensure_workers()");
            assert_eq!(failure.code, "42704");
            assert!(failure.message.contains("pg_net"), "{failure:?}");
            assert_eq!(of("f", "last_invoked_at"), "NULL");
        }
    }

    #[pg_test]
    fn ensuring_hosted_workers_without_vault_names_it() {
        install_net();
        track("f");
        let failure = failure("select pgflow.ensure_workers()");
        assert_eq!(failure.code, "42704");
        assert!(failure.message.contains("supabase_vault"), "{failure:?}");
        assert_eq!(rows(POSTED), NONE);
        assert_eq!(of("f", "last_invoked_at"), "NULL");
    }

    #[pg_test]
    fn pg_net_and_vault_are_looked_up_at_each_call() {
        track("f");
        assert_eq!(failure("select pgflow.ensure_workers()").code, "42704");
        hosted();
        assert_eq!(ensure(), ["f"]);
        run("drop schema net cascade");
        assert_eq!(failure("select pgflow.ensure_workers()").code, "42704");
        install_net();
        set("f", "last_invoked_at = null");
        assert_eq!(ensure(), ["f"]);
    }
}
