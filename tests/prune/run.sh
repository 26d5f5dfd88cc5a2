#!/usr/bin/env bash
# The optional prune_data_older_than: what goes, what stays, and that it does not deadlock with a claim.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/checks.sh"

here=$project/tests/prune
test_server prune

sql() {
  PGOPTIONS='-c client_min_messages=warning' psql --no-psqlrc --quiet --tuples-only --no-align \
    --set ON_ERROR_STOP=1 --dbname "$1" "${@:2}"
}

show() { sql "$1" --file "$here/show.sql"; }

sql postgres --command 'create database filled'
sql filled --file "$here/fill.sql" --file "$project/sql/optional/prune_data_older_than.sql" \
  --file "$project/tests/fixtures/invariants.sql" >/dev/null
check 'the rows before are those that the test means' "$(cat "$here/before.txt")" "$(show filled)"
sql postgres --command 'create database held template filled'
sql postgres --command 'create database dropping template filled'

sql filled --command "select from pgflow.prune_data_older_than(null)"
check 'no interval: nothing is pruned' "$(cat "$here/before.txt")" "$(show filled)"
sql filled --command "select from pgflow.prune_data_older_than(interval '50 days')"
check 'nothing is older: nothing is pruned' "$(cat "$here/before.txt")" "$(show filled)"
sql filled --command "select from pgflow.prune_data_older_than(interval '30 days')"
check 'what is older is pruned, and nothing else' "$(cat "$here/after.txt")" "$(show filled)"
check 'no rule is broken' none \
  "$(sql filled --command "select coalesce(string_agg(b, E'\n'), 'none') from pgflow_invariants.broken() as b")"
sql filled --command "select from pgflow.prune_data_older_than(interval '30 days')"
check 'once more changes nothing' "$(cat "$here/after.txt")" "$(show filled)"
check 'it is no member of the extension' 0 "$(sql filled --command "
  select count(*) from pg_depend where objid = 'pgflow.prune_data_older_than'::regproc and deptype = 'e'")"
sql filled --file "$project/sql/optional/prune_data_older_than.sql"
check 'it can be installed again' 1 "$(sql filled --command "select count(*) from pg_proc where proname = 'prune_data_older_than'")"

# Another session, which holds what pruning wants, in the database DB: SQL comes from standard input.
hold() { # DB
  coproc other { sql "$1" 2>&1; }
  other_pid=$other_PID
  { echo 'begin;'; cat; echo "select 'holds';"; } >&"${other[1]}"
  local line
  until read -r line <&"${other[0]}" && [ "$line" = holds ]; do :; done
}

# Prunes, and has the other session finish with a statement once pruning waits for it. What that one said then is in
# `said`; pruning's status and what it said are in `pruned`.
prune_meanwhile() { # DB STATEMENT
  local log=$project/.build/prune-$1.log pruning status=0
  sql "$1" --command "select from pgflow.prune_data_older_than(interval '30 days')" >"$log" 2>&1 &
  pruning=$!
  until [ "$(sql "$1" --command "select count(*) from pg_stat_activity where wait_event_type = 'Lock'")" = 1 ]; do sleep 0.1; done
  echo "$2 commit; \\q" >&"${other[1]}"
  said=$(cat <&"${other[0]}")
  wait "$other_pid" || true
  wait "$pruning" || status=$?
  pruned=$status$(cat "$log")
}

# A claim that holds a task of the old worker, which it claims again, while pruning wants both.
sql held --command "update pgflow.flows set opt_max_attempts = 3 where flow_slug = 'Mixed'"
hold held <<<"select from pgflow.fail_task('00000000-0000-0000-0000-000000000005', 'each', 0, 'again');"
prune_meanwhile held "select step_slug from pgflow.start_tasks('Mixed', '{3}', '00000000-0000-0000-0000-00000000000a');"
check 'a claim goes through while pruning waits for its task' each "$said"
check 'pruning then ends without an error' 0 "$pruned"

# A queue that is dropped, and whose drop is committed only when pruning has come to it.
hold dropping <<<'select from (select distinct queue_name from pgflow.steps) q cross join lateral pgmq.drop_queue(queue_name);'
prune_meanwhile dropping ''
check 'queues that go while pruning waits for them are passed over' 0 "$pruned"

summary
