#!/usr/bin/env bash
# pg_dump and restore: a database with rows in every table comes back whole, from a plain and from a custom dump (read
# by one process and by two), and the work that was under way goes on in the restored one.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"

here=$project/tests/dump
work=$project/.build/dump-output
rm -rf "$work"
mkdir -p "$work"
test_server dump
passed=0 failed=0

sql() {
  PGOPTIONS='-c client_min_messages=warning' psql --no-psqlrc --quiet --tuples-only --no-align \
    --set ON_ERROR_STOP=1 --dbname "$1" "${@:2}"
}

# A check holds when what was found is what was expected.
check() {
  if [ "$3" = "$2" ]; then
    passed=$((passed + 1))
    echo "ok      $1"
  else
    failed=$((failed + 1))
    echo "FAILED  $1"
    diff <(echo "$2") <(echo "$3") || true
  fi
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

sql postgres --command 'create database original' >/dev/null
sql original --file "$here/fill.sql" >/dev/null
sql original --file "$here/fingerprint.sql" >"$work/original"

check 'the original has rows in every table of pgflow' \
  "$(sql original --command "select 'pgflow.' || tablename from pg_tables where schemaname = 'pgflow' order by 1")" \
  "$(sed -nE 's/^(pgflow\.[^|]*)\|[1-9].*/\1/p' "$work/original")"
check 'the original has every status' "$(cat "$here/statuses.txt")" "$(statuses original)"

pg_dump --dbname original --file "$work/plain.sql"
pg_dump --dbname original --format custom --file "$work/custom.dump"

restore() { pg_restore --exit-on-error --dbname "$1" "${@:2}" "$work/custom.dump"; }

for restored in plain custom parallel; do
  sql postgres --command "create database $restored"
  case $restored in
    plain) sql plain --file "$work/plain.sql" >/dev/null ;;
    custom) restore custom ;;
    # With --jobs pg_restore fills the tables of an extension in any order, and their foreign keys are there already.
    parallel) PGOPTIONS='-c session_replication_role=replica' restore parallel --jobs 2 ;;
  esac
  check "$restored: every row, message and privilege is back" \
    "$(cat "$work/original")" "$(sql $restored --file "$here/fingerprint.sql")"
  sql $restored --file "$project/tests/fixtures/invariants.sql"
  check "$restored: no rule is broken" none "$(broken_rules $restored)"
  sql $restored --file "$here/finish.sql" >/dev/null
  check "$restored: the work under way is finished, and new work gets new messages" \
    "$(cat "$here/finished.txt")" "$(outcome $restored)"
  check "$restored: no rule is broken at the end" none "$(broken_rules $restored)"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
