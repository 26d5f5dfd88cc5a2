-- Adoption of a pgflow 0.16.0 that was installed by migrations, without an extension, in one transaction:
--   CREATE EXTENSION pgflow VERSION 'unpackaged'; ALTER EXTENSION pgflow UPDATE;
-- This first part takes nothing over yet: it refuses a database that does not hold all of 0.16.0. The order of columns
-- and what else is in the schema do not matter.
\echo Use "CREATE EXTENSION pgflow VERSION 'unpackaged'" to load this file. \quit

set local search_path to pg_catalog, pg_temp;

do $do$
declare
  functions constant text := $$
    _archive_task_message(p_run_id uuid, p_step_slug text, p_task_index integer)
    _cascade_force_skip_steps(run_id uuid, step_slug text, skip_reason text)
    _compare_flow_shapes(p_local jsonb, p_db jsonb)
    _create_flow_from_shape(p_flow_slug text, p_shape jsonb)
    _get_flow_shape(p_flow_slug text)
    add_step(flow_slug text, step_slug text, deps_slugs text[], max_attempts integer, base_delay integer, timeout integer, start_delay integer, step_type text, required_input_pattern jsonb, forbidden_input_pattern jsonb, when_unmet text, when_exhausted text)
    calculate_retry_delay(base_delay numeric, attempts_count integer)
    cascade_complete_taskless_steps(run_id uuid)
    cascade_resolve_conditions(run_id uuid)
    cleanup_ensure_workers_logs(retention_hours integer)
    complete_task(run_id uuid, step_slug text, task_index integer, output jsonb)
    create_flow(flow_slug text, max_attempts integer, base_delay integer, timeout integer)
    delete_flow_and_data(p_flow_slug text)
    ensure_flow_compiled(flow_slug text, shape jsonb)
    ensure_workers()
    fail_task(run_id uuid, step_slug text, task_index integer, error_message text)
    get_run_with_states(run_id uuid)
    is_local()
    is_valid_slug(slug text)
    mark_worker_stopped(worker_id uuid)
    maybe_complete_run(run_id uuid)
    poll_for_tasks(queue_name text, vt integer, qty integer, max_poll_seconds integer, poll_interval_ms integer)
    requeue_stalled_tasks()
    set_vt_batch(queue_name text, msg_ids bigint[], vt_offsets integer[])
    setup_ensure_workers_cron(cron_interval text)
    setup_requeue_stalled_tasks_cron(cron_interval text)
    start_flow(flow_slug text, input jsonb, run_id uuid)
    start_flow_with_states(flow_slug text, input jsonb, run_id uuid)
    start_ready_steps(run_id uuid)
    start_tasks(flow_slug text, msg_ids bigint[], worker_id uuid)
    track_worker_function(function_name text, start_mode text)
  $$;
  missing text;
  others  text;
begin
  if to_regclass('pgflow.flows') is null then
    raise exception 'there is no pgflow 0.16.0 to adopt'
      using errcode = 'object_not_in_prerequisite_state',
            hint = 'CREATE EXTENSION pgflow without a version makes a new one.';
  end if;

  with
    relation (name, columns, constraints, indexes) as (values
      ('flows',
       'flow_slug text, opt_max_attempts integer, opt_base_delay integer, opt_timeout integer,
        created_at timestamptz',
       'flows_pkey, opt_base_delay_is_nonnegative, opt_max_attempts_is_nonnegative, opt_timeout_is_positive,
        slug_is_valid',
       ''),
      ('steps',
       'flow_slug text, step_slug text, step_type text, step_index integer, deps_count integer,
        opt_max_attempts integer, opt_base_delay integer, opt_timeout integer, created_at timestamptz,
        opt_start_delay integer, required_input_pattern jsonb, forbidden_input_pattern jsonb, when_unmet text,
        when_exhausted text',
       'forbidden_input_pattern_is_object, opt_base_delay_is_nonnegative, opt_max_attempts_is_nonnegative,
        opt_start_delay_is_nonnegative, opt_timeout_is_positive, required_input_pattern_is_object,
        steps_deps_count_check, steps_flow_slug_fkey, steps_flow_slug_step_index_key, steps_pkey,
        steps_step_slug_check, steps_step_type_check, when_exhausted_is_valid, when_unmet_is_valid',
       ''),
      ('deps',
       'flow_slug text, dep_slug text, step_slug text, created_at timestamptz',
       'deps_check, deps_flow_slug_dep_slug_fkey, deps_flow_slug_fkey, deps_flow_slug_step_slug_fkey, deps_pkey',
       'idx_deps_by_flow_dep, idx_deps_by_flow_step'),
      ('workers',
       'worker_id uuid, queue_name text, function_name text, started_at timestamptz, deprecated_at timestamptz,
        last_heartbeat_at timestamptz, stopped_at timestamptz',
       'workers_pkey',
       'idx_workers_heartbeat, idx_workers_queue_name'),
      ('worker_functions',
       'function_name text, enabled boolean, debounce interval, last_invoked_at timestamptz,
        created_at timestamptz, updated_at timestamptz, start_mode text',
       'worker_functions_debounce_check, worker_functions_pkey, worker_functions_start_mode_check',
       ''),
      ('runs',
       'run_id uuid, flow_slug text, status text, input jsonb, output jsonb, remaining_steps integer,
        started_at timestamptz, completed_at timestamptz, failed_at timestamptz',
       'completed_at_is_after_started_at, completed_at_or_failed_at, failed_at_is_after_started_at,
        runs_flow_slug_fkey, runs_pkey, runs_remaining_steps_check, status_is_valid',
       'idx_runs_flow_slug, idx_runs_status'),
      ('step_states',
       'flow_slug text, run_id uuid, step_slug text, status text, remaining_tasks integer, remaining_deps integer,
        created_at timestamptz, started_at timestamptz, completed_at timestamptz, failed_at timestamptz,
        error_message text, initial_tasks integer, output jsonb, skip_reason text, skipped_at timestamptz',
       'completed_at_is_after_started_at, completed_at_or_failed_at_or_skipped_at, failed_at_is_after_started_at,
        initial_tasks_known_when_started, output_only_for_completed_or_null, remaining_tasks_state_consistency,
        skip_reason_matches_status, skipped_at_is_after_created_at, started_at_is_after_created_at,
        status_and_remaining_tasks_match, status_is_valid, step_states_flow_slug_fkey,
        step_states_flow_slug_step_slug_fkey, step_states_initial_tasks_check, step_states_pkey,
        step_states_remaining_deps_check, step_states_run_id_fkey',
       'idx_step_states_failed, idx_step_states_flow_slug, idx_step_states_ready, idx_step_states_run_id,
        idx_step_states_skipped'),
      ('step_tasks',
       'flow_slug text, run_id uuid, step_slug text, message_id bigint, task_index integer, status text,
        attempts_count integer, error_message text, output jsonb, queued_at timestamptz, completed_at timestamptz,
        failed_at timestamptz, started_at timestamptz, last_worker_id uuid, requeued_count integer,
        last_requeued_at timestamptz, permanently_stalled_at timestamptz',
       'attempts_count_nonnegative, completed_at_is_after_queued_at, completed_at_is_after_started_at,
        completed_at_or_failed_at, failed_at_is_after_queued_at, failed_at_is_after_started_at,
        output_valid_only_for_completed, started_at_is_after_queued_at, step_tasks_flow_slug_fkey,
        step_tasks_last_worker_id_fkey, step_tasks_pkey, step_tasks_run_id_fkey, step_tasks_run_id_step_slug_fkey,
        valid_status',
       'idx_step_tasks_completed, idx_step_tasks_failed, idx_step_tasks_flow_run_step, idx_step_tasks_last_worker,
        idx_step_tasks_message_id, idx_step_tasks_queued, idx_step_tasks_queued_msg, idx_step_tasks_started'),
      ('step_task_record',
       'flow_slug text, run_id uuid, step_slug text, input jsonb, msg_id bigint, task_index integer,
        flow_input jsonb',
       '',
       '')
    ),
    wanted (part) as (
      select format('column %s.%s', name, part) from relation, regexp_split_to_table(columns, ',\s+') as part
      union all
      select format('constraint %s of %s', part, name) from relation, regexp_split_to_table(constraints, ',\s+') as part
      where part <> ''
      union all
      select format('index %s', part) from relation, regexp_split_to_table(indexes, ',\s+') as part where part <> ''
      union all
      select format('function %s', part) from regexp_split_to_table(functions, '\n\s*') as part where part <> ''
    ),
    found (part) as (
      select format('column %s.%s %s', c.relname, a.attname,
                    replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz'))
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'pgflow'::regnamespace
      union all
      select format('constraint %s of %s', k.conname, c.relname)
      from pg_constraint k join pg_class c on c.oid = k.conrelid
      where c.relnamespace = 'pgflow'::regnamespace
      union all
      select format('index %s', relname) from pg_class where relnamespace = 'pgflow'::regnamespace and relkind = 'i'
      union all
      select format('function %s(%s)', proname, pg_get_function_identity_arguments(oid))
      from pg_proc where pronamespace = 'pgflow'::regnamespace
    )
  select string_agg(part, '; ') into missing from (select part from wanted except select part from found order by part) _;
  if missing is not null then
    raise exception 'schema "pgflow" does not hold pgflow 0.16.0: it is older, or was changed'
      using errcode = 'object_not_in_prerequisite_state', detail = 'Missing: ' || missing || '.',
            hint = 'Bring it to 0.16.0 with pgflow''s own migrations first.';
  end if;

  select string_agg(part, '; ') into others
  from (
    select format('column %s.%s', attrelid::regclass, attname) as part from pg_attribute
    where attrelid in ('pgflow.steps'::regclass, 'pgflow.step_tasks'::regclass) and attname = 'queue_name'
      and not attisdropped
    union all
    select format('function %s', oid::regprocedure) from pg_proc
    where pronamespace = 'pgflow'::regnamespace
      and proname in (select split_part(part, '(', 1) from regexp_split_to_table(functions, '\n\s*') as part
                      union select 'is_valid_queue_name')
      and format('%s(%s)', proname, pg_get_function_identity_arguments(oid))
          <> all (regexp_split_to_array(functions, '\n\s*'))
    order by part
  ) _;
  if others is not null then
    raise exception 'schema "pgflow" does not hold pgflow 0.16.0: it is newer, or was changed'
      using errcode = 'object_not_in_prerequisite_state', detail = 'Not part of 0.16.0: ' || others || '.';
  end if;
end
$do$;
