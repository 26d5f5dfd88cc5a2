#!/usr/bin/env bash
# The cron functions against the real pg_cron, on a server of their own: what they schedule, and that it runs. pg_cron
# starts jobs when a minute begins, so this takes up to 75 seconds. Debian's package is unpacked into the private
# PostgreSQL, not installed.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/checks.sh"
. "$project/tests/harness/debian.sh"

server=$project/tests/harness/server.sh

debian_extension pg_cron postgresql-15-cron

# pg_cron is loaded with this server only. Its jobs run in background workers, which need no way to log in.
"$server" drop cron
trap '"$server" drop cron' EXIT
"$server" start cron fsync=off shared_preload_libraries=pg_cron cron.database_name=postgres \
  cron.use_background_workers=on max_worker_processes=20
export PGHOST=$base/cron PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
export PGOPTIONS='-c client_min_messages=warning'

sql() { psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 "${@:2}" --command "$1"; }

# The SQLSTATE of a statement that fails.
error() { { sql "$1" --set VERBOSITY=sqlstate 2>&1 >/dev/null || true; } | sed -n 's/^ERROR:  \(.....\)$/\1/p'; }

jobs() { sql "select jobname, schedule, command, active from cron.job where username = 'postgres' order by jobname"; }
id_of() { sql "select jobid from cron.job where jobname = '$1' and username = 'postgres'"; }
recovery='pgflow_requeue_stalled_tasks|%s|select pgflow.requeue_stalled_tasks()|t\n'
workers='pgflow_ensure_workers|%s|select pgflow.ensure_workers()|t\n'
cleanup='pgflow_cleanup_logs|0 * * * *|select pgflow.cleanup_ensure_workers_logs()|t\n'

sql 'create extension pgflow cascade'
check 'loaded and not created, pg_cron is missing' 42704 "$(error 'select pgflow.setup_requeue_stalled_tasks_cron()')"
sql 'create extension pg_cron'
say "pg_cron $(sql "select extversion from pg_extension where extname = 'pg_cron'")"

# What is scheduled.
answer=$(sql "select pgflow.setup_requeue_stalled_tasks_cron('*/5 * * * *')")
check 'recovery: the answer names interval and job' \
  "Scheduled pgflow_requeue_stalled_tasks (every */5 * * * *, job_id=$(id_of pgflow_requeue_stalled_tasks))" "$answer"
# shellcheck disable=SC2059 # the formats are meant
check 'recovery: the job is there' "$(printf "$recovery" '*/5 * * * *')" "$(jobs)"

answer=$(sql "select pgflow.setup_requeue_stalled_tasks_cron('*/1 * * * *')")
check 'recovery again: the answer names the new job' \
  "Scheduled pgflow_requeue_stalled_tasks (every */1 * * * *, job_id=$(id_of pgflow_requeue_stalled_tasks))" "$answer"
# shellcheck disable=SC2059
check 'recovery again: the job is replaced' "$(printf "$recovery" '*/1 * * * *')" "$(jobs)"

error "select pgflow.setup_requeue_stalled_tasks_cron('every now and then')" >"$project/.build/cron.code"
check 'a schedule that pg_cron refuses is an error' 1 "$(grep -c . "$project/.build/cron.code" || true)"
# shellcheck disable=SC2059
check 'a schedule that pg_cron refuses leaves the job' "$(printf "$recovery" '*/1 * * * *')" "$(jobs)"

for schedule in '*/5 * * * *' '*/1 * * * *'; do
  answer=$(sql "select pgflow.setup_ensure_workers_cron('$schedule')")
  check "workers, $schedule: the answer names interval and jobs" \
    "Scheduled pgflow_ensure_workers (every $schedule, job_id=$(id_of pgflow_ensure_workers)) and pgflow_cleanup_logs (hourly, job_id=$(id_of pgflow_cleanup_logs))" \
    "$answer"
  # shellcheck disable=SC2059
  check "workers, $schedule: the jobs are there once" \
    "$(printf "$cleanup$workers$recovery" "$schedule" '*/1 * * * *')" "$(jobs)"
done

# Another role's jobs are its own, also under the same names; and who may only call pgflow can schedule.
sql "create role other login;
     grant usage on schema cron, pgflow to other;
     grant execute on function pgflow.setup_requeue_stalled_tasks_cron, pgflow.requeue_stalled_tasks to other"
sql "set role other; select cron.schedule('pgflow_requeue_stalled_tasks', '0 0 1 1 *', 'select 1')" >/dev/null
answer=$(sql "set role other; select pgflow.setup_requeue_stalled_tasks_cron('*/1 * * * *')" 2>&1 || true)
check "beside another role's job of the same name: the answer names the own job" \
  "Scheduled pgflow_requeue_stalled_tasks (every */1 * * * *, job_id=$(id_of pgflow_requeue_stalled_tasks))" "$answer"
# shellcheck disable=SC2059
check "beside another role's job of the same name: the own job is there once" \
  "$(printf "$cleanup$workers$recovery" '*/1 * * * *' '*/1 * * * *')" "$(jobs)"
check "beside another role's job of the same name: that one stays" 'other|0 0 1 1 *|select 1' \
  "$(sql "select username, schedule, command from cron.job where username <> 'postgres'")"

# What runs: one stalled task is requeued, one worker is called, by a project that looks like a local one.
sql "alter database postgres set app.settings.jwt_secret = 'super-secret-jwt-token-with-at-least-32-characters-long'"
sql '' --file "$project/tests/fixtures/net.sql" --file "$project/tests/fixtures/invariants.sql"
sql "select pgflow.track_worker_function('hello');
     select pgflow.create_flow('f');
     select pgflow.add_step('f', 'a');
     select pgflow.start_flow('f', '{}');
     select pgflow.start_tasks('f', '{1}', null);
     update pgflow.step_tasks set queued_at = queued_at - interval '95 s', started_at = started_at - interval '95 s'" >/dev/null

say "waiting for pg_cron"
ran() {
  sql "select count(distinct j.jobname) from cron.job j join cron.job_run_details d using (jobid)
       where j.jobname in ('pgflow_requeue_stalled_tasks', 'pgflow_ensure_workers') and d.end_time is not null"
}
for ((waited = 0; waited < 75; waited++)); do
  [ "$(ran)" -lt 2 ] || break
  sleep 1
done
check 'recovery and workers: every run succeeded' \
  'pgflow_ensure_workers|select pgflow.ensure_workers()|succeeded
pgflow_requeue_stalled_tasks|select pgflow.requeue_stalled_tasks()|succeeded' \
  "$(sql "select distinct j.jobname, d.command, d.status from cron.job j join cron.job_run_details d using (jobid)
          where d.status not in ('starting', 'running') order by 1")"
check 'recovery: the stalled task is queued again' 'queued|1' "$(sql 'select status, requeued_count from pgflow.step_tasks')"
check 'recovery: its message is visible' 1 "$(sql 'select count(*) from pgmq.q_f where vt <= clock_timestamp()')"
check 'workers: the function was called' 'http://kong:8000/functions/v1/hello' \
  "$(sql 'select distinct url from net.posted')"
check 'no rule is broken' '' "$(sql 'select * from pgflow_invariants.broken()')"

# What is cleaned up.
sql "update cron.job set active = false"
sql "insert into cron.job_run_details (jobid, runid, command, status, start_time, end_time)
     values (1, 1001, 'old', 'succeeded', now() - interval '26 h', now() - interval '25 h'),
            (1, 1002, 'old', 'failed', now() - interval '26 h', now() - interval '25 h'),
            (1, 1003, 'new', 'succeeded', now() - interval '24 h', now() - interval '23 h'),
            (1, 1004, 'running', 'running', now() - interval '26 h', null)"
check 'clean-up: deletes and counts what ended more than 24 hours ago' 2 \
  "$(sql 'select cron_deleted from pgflow.cleanup_ensure_workers_logs()')"
check 'clean-up: the rest stays' 'new
running' "$(sql 'select command from cron.job_run_details where runid > 1000 order by runid')"
check 'clean-up: takes the number of hours' 1 "$(sql 'select cron_deleted from pgflow.cleanup_ensure_workers_logs(22)')"

summary
