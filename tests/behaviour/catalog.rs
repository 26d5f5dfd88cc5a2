//! What an installed database holds: tables, views, constraints, indexes, functions, comments, grants, dump marks.
//!
//! `fixtures/catalog_*.txt` are 0.16.0's catalog with the changes of queue identity, and what is new: complete_tasks, the
//! monitoring functions and the views.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    const TABLES: [&str; 8] = [
        "deps",
        "flows",
        "runs",
        "step_states",
        "step_tasks",
        "steps",
        "worker_functions",
        "workers",
    ];

    const VIEWS: [&str; 5] = [
        "live_workers",
        "permanently_stalled_tasks",
        "run_progress",
        "stalled",
        "step_progress",
    ];

    /// Functions that touch no table and run no SQL.
    const PURE: &str = "'is_valid_slug', 'is_valid_queue_name', 'calculate_retry_delay'";

    fn sorted<T: Ord>(lines: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut lines: Vec<T> = lines.into_iter().collect();
        lines.sort();
        lines
    }

    #[pg_test]
    fn the_schema_holds_the_8_tables_the_5_views_and_nothing_else() {
        assert_eq!(
            sorted(rows(
                "select relname from pg_class where relnamespace = 'pgflow'::regnamespace and relkind = 'r'"
            )),
            TABLES
        );
        assert_eq!(
            sorted(rows(
                "select relname from pg_class where relnamespace = 'pgflow'::regnamespace and relkind not in ('r', 'i', 'c')"
            )),
            VIEWS
        );
    }

    #[pg_test]
    fn columns_have_the_order_types_and_defaults_of_the_catalog() {
        let found = rows(
            "select concat(c.relname, '.', a.attname, ' ', format_type(a.atttypid, a.atttypmod),
                           case when a.attnotnull then ' not null' end, ' default ' || pg_get_expr(d.adbin, d.adrelid))
             from pg_class c
             join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
             left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
             where c.relnamespace = 'pgflow'::regnamespace and c.relkind = 'r'
             order by c.relname, a.attnum",
        );
        let table = |line: &str| line.split('.').next().unwrap_or_default().to_string();
        for wanted in TABLES {
            let expected: Vec<&str> = include_str!("../fixtures/catalog_columns.txt")
                .lines()
                .filter(|line| table(line) == wanted)
                .collect();
            let found: Vec<&String> = found.iter().filter(|line| table(line) == wanted).collect();
            assert_eq!(found, expected);
        }
    }

    #[pg_test]
    fn views_have_the_columns_and_types_of_the_catalog() {
        let found = rows(
            "select format('%s.%s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod))
             from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
             where c.relnamespace = 'pgflow'::regnamespace and c.relkind = 'v'
             order by c.relname, a.attnum",
        );
        let expected: Vec<&str> = include_str!("../fixtures/catalog_views.txt")
            .lines()
            .collect();
        assert_eq!(found, expected);
    }

    #[pg_test]
    fn views_read_with_the_rights_of_the_caller() {
        assert_eq!(
            rows(
                "select relname from pg_class where relnamespace = 'pgflow'::regnamespace and relkind = 'v'
                   and reloptions is distinct from array['security_invoker=true']"
            ),
            NONE
        );
    }

    #[pg_test]
    fn queue_name_is_the_last_column_of_steps_and_of_step_tasks() {
        assert_eq!(
            rows(
                "select distinct on (attrelid) attrelid::regclass || '.' || attname from pg_attribute
                 where attrelid in ('pgflow.steps'::regclass, 'pgflow.step_tasks'::regclass) and not attisdropped
                 order by attrelid, attnum desc"
            ),
            ["pgflow.steps.queue_name", "pgflow.step_tasks.queue_name"]
        );
    }

    #[pg_test]
    fn constraints_have_the_names_and_meanings_of_the_catalog() {
        let found = rows(
            "select format('%s.%s %s', c.relname, k.conname, regexp_replace(pg_get_constraintdef(k.oid), '\\s+', ' ', 'g'))
             from pg_constraint k join pg_class c on c.oid = k.conrelid
             where c.relnamespace = 'pgflow'::regnamespace and k.contype in ('c', 'p', 'u', 'f')",
        );
        assert_eq!(
            sorted(found.iter().map(String::as_str)),
            sorted(include_str!("../fixtures/catalog_constraints.txt").lines())
        );
    }

    #[pg_test]
    fn indexes_have_the_names_and_definitions_of_the_catalog() {
        let found = rows(
            "select replace(replace(replace(replace(pg_get_indexdef(i.indexrelid), 'CREATE UNIQUE INDEX', 'unique'),
                                            'CREATE INDEX ', ''), ' USING btree', ''), 'UNIQUE', 'unique')
             from pg_index i join pg_class c on c.oid = i.indrelid
             where c.relnamespace = 'pgflow'::regnamespace
               and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u'))",
        );
        assert_eq!(
            sorted(found.iter().map(String::as_str)),
            sorted(include_str!("../fixtures/catalog_indexes.txt").lines())
        );
    }

    #[pg_test]
    fn functions_have_the_signatures_of_the_catalog() {
        let found = rows(
            "select format('%s(%s) -> %s, %s%s', proname, pg_get_function_arguments(oid), pg_get_function_result(oid),
                           case provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
                           case when prosecdef then ', security definer' end)
             from pg_proc where pronamespace = 'pgflow'::regnamespace",
        );
        assert_eq!(
            sorted(found.iter().map(String::as_str)),
            sorted(include_str!("../fixtures/catalog_functions.txt").lines())
        );
    }

    #[pg_test]
    fn no_function_is_strict() {
        assert_eq!(
            rows("select proname from pg_proc where pronamespace = 'pgflow'::regnamespace and proisstrict"),
            NONE
        );
    }

    #[pg_test]
    fn only_pure_functions_are_parallel_safe() {
        assert_eq!(
            rows(&format!(
                "select proname from pg_proc
                 where pronamespace = 'pgflow'::regnamespace and proparallel <> 'u' and proname not in ({PURE}, 'is_local')"
            )),
            NONE
        );
        assert_eq!(
            text("select proparallel from pg_proc where oid = 'pgflow.calculate_retry_delay'::regproc"),
            "s"
        );
    }

    #[pg_test]
    fn all_functions_that_run_sql_pin_the_same_safe_search_path() {
        assert_eq!(
            rows(&format!(
                "select distinct coalesce(array_to_string(proconfig, ' '), 'none') from pg_proc
                 where pronamespace = 'pgflow'::regnamespace and proname not in ({PURE})"
            )),
            ["search_path=pg_catalog, pg_temp"]
        );
    }

    #[pg_test]
    fn there_is_exactly_one_start_tasks() {
        assert_eq!(
            text("select count(*) from pg_proc where proname = 'start_tasks'"),
            "1"
        );
    }

    #[pg_test]
    fn a_claimed_task_has_the_columns_of_0_16_0() {
        assert_eq!(
            text(
                "select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
                 from pg_attribute where attrelid = 'pgflow.step_task_record'::regclass"
            ),
            "flow_slug text, run_id uuid, step_slug text, input jsonb, msg_id bigint, task_index integer, flow_input jsonb"
        );
    }

    #[pg_test]
    fn every_table_view_and_type_has_a_comment() {
        assert_eq!(
            rows(
                "select relname from pg_class where relnamespace = 'pgflow'::regnamespace and relkind in ('r', 'v')
                   and obj_description(oid, 'pg_class') is null
                 union all
                 select typname from pg_type where oid = 'pgflow.step_task_record'::regtype
                   and obj_description(oid, 'pg_type') is null"
            ),
            NONE
        );
    }

    #[pg_test]
    fn every_function_has_a_comment() {
        assert_eq!(
            rows(
                "select proname from pg_proc where pronamespace = 'pgflow'::regnamespace
                   and coalesce(obj_description(oid, 'pg_proc'), '') = ''"
            ),
            NONE
        );
    }

    #[pg_test]
    fn pg_dump_takes_the_rows_of_every_table() {
        assert_eq!(
            sorted(rows(
                "select c.relname || coalesce(nullif(k.condition, ''), '')
                 from pg_extension e
                 cross join lateral unnest(e.extconfig, e.extcondition) as k (oid, condition)
                 join pg_class c on c.oid = k.oid
                 where e.extname = 'pgflow'"
            )),
            TABLES
        );
    }

    #[pg_test]
    fn tables_are_dumped_after_those_they_refer_to() {
        assert_eq!(
            rows(
                "select k.conname
                 from pg_constraint k, pg_extension e
                 where e.extname = 'pgflow' and k.contype = 'f' and k.conrelid = any (e.extconfig)
                   and array_position(e.extconfig, k.confrelid) > array_position(e.extconfig, k.conrelid)"
            ),
            NONE
        );
    }

    #[pg_test]
    fn everything_in_the_schema_belongs_to_the_extension() {
        assert_eq!(
            rows(
                "select o.name from (
                   select oid, 'pg_class'::regclass as class, relname as name from pg_class
                   where relnamespace = 'pgflow'::regnamespace and relkind in ('r', 'v', 'c')
                   union all
                   select oid, 'pg_proc'::regclass, proname from pg_proc where pronamespace = 'pgflow'::regnamespace
                 ) o
                 where not exists (
                   select from pg_depend d join pg_extension e on e.oid = d.refobjid and e.extname = 'pgflow'
                   where d.classid = o.class and d.objid = o.oid and d.deptype = 'e')
                   and o.name <> 'step_task_record'"
            ),
            NONE
        );
    }

    #[pg_test]
    fn the_public_has_no_usage_on_the_schema() {
        run("create role pgflow_nobody");
        assert_eq!(
            text("select has_schema_privilege('pgflow_nobody', 'pgflow', 'usage')"),
            "false"
        );
        assert_eq!(
            text("select has_schema_privilege('pgflow_nobody', 'pgflow', 'create')"),
            "false"
        );
    }

    #[pg_test]
    fn functions_keep_execute_for_public() {
        run("create role pgflow_nobody");
        assert_eq!(
            rows(
                "select proname from pg_proc where pronamespace = 'pgflow'::regnamespace
                   and not has_function_privilege('pgflow_nobody', oid, 'execute')
                   and proname not in ('requeue_stalled_tasks', 'cleanup_ensure_workers_logs',
                                       'setup_ensure_workers_cron', 'setup_requeue_stalled_tasks_cron')"
            ),
            NONE
        );
    }

    #[pg_test]
    fn tables_and_views_grant_nothing_to_the_public() {
        run("create role pgflow_nobody");
        assert_eq!(
            rows(
                "select relname from pg_class where relnamespace = 'pgflow'::regnamespace and relkind in ('r', 'v')
                   and has_table_privilege('pgflow_nobody', oid, 'select, insert, update, delete, truncate')"
            ),
            NONE
        );
    }
}
