# shellcheck shell=bash
# What the tests of dumps and of new versions look at in a database: sourced after env.sh.
here=$project/tests/dump

sql() {
  PGOPTIONS='-c client_min_messages=warning' psql --no-psqlrc --quiet --tuples-only --no-align \
    --set ON_ERROR_STOP=1 --dbname "$1" "${@:2}"
}

statuses() {
  sql "$1" --command "
    select 'run ' || status from pgflow.runs union select 'step ' || status from pgflow.step_states
    union select 'task ' || status from pgflow.step_tasks order by 1"
}

broken_rules() { sql "$1" --command "select coalesce(string_agg(b, E'\n'), 'none') from pgflow_invariants.broken() as b"; }

outcome() {
  sql "$1" --command "
    select right(run_id::text, 1), status, output from pgflow.runs where flow_slug = 'live' order by 1;
    select step_slug, task_index, status, attempts_count, message_id from pgflow.step_tasks
    where flow_slug = 'live' order by message_id;
    select 'left in the queue', message from pgmq.q_live"
}
