#!/usr/bin/env bash
# pg_dump and restore: a database with rows in every table comes back whole, from a plain dump, a custom one (read by one
# process and by two), and one of the schema followed by one of the data; and the work that was under way goes on in the
# restored one. The same where PGMQ leaves its queues out, after one more statement. Then, what DROP EXTENSION leaves.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/checks.sh"
. "$project/tests/dump/database.sh"

work=$project/.build/dump-output
rm -rf "$work"
mkdir -p "$work"
test_server dump

sql postgres --command 'create database original' >/dev/null
sql original --file "$here/fill.sql" >/dev/null
sql original --file "$here/fingerprint.sql" >"$work/original"

check 'the original has rows in every table of pgflow' \
  "$(sql original --command "select 'pgflow.' || tablename from pg_tables where schemaname = 'pgflow' order by 1")" \
  "$(sed -nE 's/^(pgflow\.[^|]*)\|[1-9].*/\1/p' "$work/original")"
check 'the original has every status' "$(cat "$here/statuses.txt")" "$(statuses original)"

pg_dump --dbname original --file "$work/plain.sql"
pg_dump --dbname original --format custom --file "$work/custom.dump"
pg_dump --dbname original --schema-only --file "$work/schema.sql"
pg_dump --dbname original --data-only --file "$work/data.sql"

restore() { pg_restore --exit-on-error --dbname "$1" "${@:2}" "$work/custom.dump"; }

for restored in plain custom parallel split; do
  sql postgres --command "create database $restored"
  case $restored in
    plain) sql plain --file "$work/plain.sql" >/dev/null ;;
    custom) restore custom ;;
    split) sql split --file "$work/schema.sql" --file "$work/data.sql" >/dev/null ;;
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

# PGMQ 1.5.1 makes its queues, with their sequences, members of its extension, and so they are not dumped.
queues="select tablename from pg_tables where schemaname = 'pgmq' and tablename ~ '^[aq]_' order by 1"
sql original --command "$queues" |
  sed -E 's/.*/alter extension pgmq add table pgmq.&;/; s/pgmq\.(q_.*);/&\nalter extension pgmq add sequence pgmq.\1_msg_id_seq;/' |
  sql original
pg_dump --dbname original --file "$work/no-queues.sql"
sql postgres --command 'create database noqueues'
sql noqueues --file "$work/no-queues.sql" >/dev/null
check 'without queues: they are missing' '' "$(sql noqueues --command "$queues")"
sql noqueues --file "$project/sql/optional/reenqueue_missing_messages.sql"
check 'without queues: they are made again' "$(sql original --command "$queues")" "$(sql noqueues --command "$queues")"
sql noqueues --file "$project/tests/fixtures/invariants.sql"
check 'without queues: every unfinished task has a message again' none "$(broken_rules noqueues)"
messages="select t.run_id, t.step_slug, t.task_index, t.message_id, t.status from pgflow.step_tasks t order by 1, 2, 3"
before=$(sql noqueues --command "$messages")
sql noqueues --file "$project/sql/optional/reenqueue_missing_messages.sql"
check 'without queues: the statement changes nothing the second time' "$before" "$(sql noqueues --command "$messages")"
sql noqueues --file "$here/finish.sql" >/dev/null
without_ids() { sed -E 's/\|[0-9]+$//; /^left in the queue/d' | sort; }
check 'without queues: the work under way is finished, and new work too' \
  "$(without_ids <"$here/finished.txt")" "$(outcome noqueues | without_ids)"
check 'without queues: no rule is broken at the end' none "$(broken_rules noqueues)"

# DROP EXTENSION leaves the empty schema and the queues; a new pgflow takes the schema, and no name of a queue.
sql plain --command 'drop extension pgflow'
check 'after DROP EXTENSION the schema is empty' 0 \
  "$(sql plain --command "select count(*) from pg_class where relnamespace = 'pgflow'::regnamespace")"
check 'after DROP EXTENSION the queues are there' "$(sql original --command "$queues")" "$(sql plain --command "$queues")"
sql plain --command 'create extension pgflow'
check 'a second CREATE EXTENSION starts empty' 0 "$(sql plain --command 'select count(*) from pgflow.flows')"
check 'a left-over queue is not taken for a new flow' 'ERROR:  23505' \
  "$(sql plain --set VERBOSITY=verbose --command "select from pgflow.create_flow('live')" 2>&1 | grep -o 'ERROR:  23505')"
sql plain --command "select from pgmq.drop_queue('live')" --command "select from pgflow.create_flow('live')"
check 'a queue that was dropped is made anew' live "$(sql plain --command 'select flow_slug from pgflow.flows')"

summary
