#!/usr/bin/env bash
# From 0.16.0 to this version: adoption of a database that was made by migrations, the update of an installed 0.16.0,
# and upgrades that must fail and change nothing. The 0.16.0 database is the base script run as plain SQL by a
# role that is no superuser, with rows as 0.16.0 leaves them.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/checks.sh"

here=$project/tests/upgrade
work=$project/.build/upgrade-output
rm -rf "$work"
mkdir -p "$work"
cd "$project"
test_server upgrade

sql() {
  PGOPTIONS="-c client_min_messages=warning ${options:-}" psql --no-psqlrc --quiet --tuples-only --no-align \
    --set ON_ERROR_STOP=1 --dbname "$1" "${@:2}"
}

sql postgres --command 'create role app_owner; create role app_web; create role app_worker; create role app_cron;
                        create role app_nobody'

# A 0.16.0 in plain SQL.
plain() {
  sql postgres --command "create database $1"
  sql "$1" --file "$project/tests/fixtures/plain_0_16_0.sql"
}

fill() { sql "$1" --set bulk="$2" --command 'set role app_owner' --file "$here/fill.sql" >/dev/null; }

adopt() {
  sql "$1" --single-transaction --command "create extension pgflow version 'unpackaged'" \
    --command 'alter extension pgflow update'
}

rows() { sql "$1" --file "$here/rows.sql"; }
broken_rules() {
  sql "$1" --file "$project/tests/fixtures/invariants.sql"
  sql "$1" --command "select coalesce(string_agg(b, E'\n'), 'none') from pgflow_invariants.broken() as b"
}
outcome() {
  sql "$1" --command "
    select substr(run_id::text, 36)::text, status, output from pgflow.runs where flow_slug <> 'bulk' order by run_id;
    select flow_slug, step_slug, task_index, status, attempts_count, requeued_count, message_id
    from pgflow.step_tasks where flow_slug not in ('bulk', 'ended') order by run_id, step_slug, task_index"
}

# The catalog of a fresh install, and that the comparison sees every kind of difference.
sql postgres --command 'create database fresh'
sql fresh --command 'create extension pgflow cascade'
catalog() { sql "$1" --file "$here/catalog.sql" "${@:2}" | sort; }
catalog fresh >"$work/fresh.catalog"
without_access() { sed -E 's/access [^,;]*//'; } # what users granted or revoked is compared elsewhere

unseen=
while IFS= read -r change; do
  sql fresh --command begin --command "$change" --file "$here/catalog.sql" | sort >"$work/changed.catalog"
  ! cmp -s "$work/fresh.catalog" "$work/changed.catalog" || unseen+="$change"$'\n'
done <"$here/changes.sql"
check 'the comparison of catalogs sees a change of anything' '' "$unseen"

### An adopted database

plain old
fill old 100
sql old --command 'set role app_owner' --file "$here/users.sql"
rows old >"$work/old.rows"
sql old --file "$here/privileges.sql" >"$work/old.privileges"

sql old --command '\timing on' --file "$project/docs/examples/supabase/upgrade_pgflow_to_0_17_0.sql" |
  awk '/^Time/ { ms += $2 } END { printf "-- adopting 100,000 finished tasks took %.1f s\n", ms / 1000 }'

check 'adoption keeps every row and message' "$(cat "$work/old.rows")" "$(rows old)"
check 'adoption ends where a fresh install ends, whatever users granted' \
  "$(without_access <"$work/fresh.catalog")" "$(catalog old | without_access)"
check 'adoption routes every step and task, without a message too, to its flow'"'"'s queue' '0|2' "$(sql old --command "
  select count(*) filter (where queue_name is distinct from lower(flow_slug)), count(*) filter (where message_id is null)
  from (select queue_name, flow_slug, 0 as message_id from pgflow.steps
        union all select queue_name, flow_slug, message_id from pgflow.step_tasks) _")"
check 'adoption keeps privileges that users granted and revoked, on start_tasks too' \
  "$(cat "$work/old.privileges")" "$(sql old --file "$here/privileges.sql")"
check 'adoption leaves the objects their owner' app_owner "$(sql old --command "
  select distinct o.owner::regrole from (
    select proowner from pg_proc where pronamespace = 'pgflow'::regnamespace
    union all select relowner from pg_class where relnamespace = 'pgflow'::regnamespace) o (owner)")"
check 'adoption leaves a user'"'"'s pruning function and view alone' 'my_runs prune_data_older_than' "$(sql old --command "
  select string_agg(name, ' ' order by name) from (
    select oid, proname from pg_proc where pronamespace = 'pgflow'::regnamespace and prosrc like '%kept as it is%'
    union all select oid, relname from pg_class where oid = 'pgflow.my_runs'::regclass) o (oid, name)
  where not exists (select from pg_depend d where d.objid = o.oid and d.deptype = 'e')")"
check 'adoption fires no trigger of a user' 0 "$(sql old --command 'select count(*) from public.changes')"

# A dump of the adopted database, before its work goes on.
pg_dump --dbname old --file "$work/old.sql"
sql postgres --command 'create database restored'
sql restored --file "$work/old.sql" >/dev/null
check 'a dump of the adopted database restores every row and message' "$(rows old)" "$(rows restored)"
check 'a dump of the adopted database keeps what users granted and revoked' \
  "$(cat "$work/old.privileges")" "$(sql restored --file "$here/privileges.sql")"
sql postgres --command 'drop database restored'

sql old --command 'set role app_owner' --file "$here/finish.sql" >/dev/null
check 'after adoption the work under way is finished by a role that is no superuser' \
  "$(cat "$here/finished.txt")" "$(outcome old)"
check 'after adoption no rule is broken' none "$(broken_rules old)"

### An installed 0.16.0

sql postgres --command 'create database installed'
sql installed --command "create extension pgflow version '0.16.0' cascade"
sql installed --set bulk=1 --file "$here/fill.sql" >/dev/null
sql installed --file "$here/users.sql"
check 'the functions of an installed 0.16.0 say what to do' \
  '55000: the functions of pgflow 0.16.0 do nothing as an extension: upgrade first' \
  "$(sql installed --set VERBOSITY=verbose --command 'select pgflow.requeue_stalled_tasks()' 2>&1 | sed -n 's/^ERROR:  //p')"
rows installed >"$work/installed.rows"
sql installed --file "$here/privileges.sql" >"$work/installed.privileges"
sql installed --command 'alter extension pgflow update'
check 'an update keeps every row and message' "$(cat "$work/installed.rows")" "$(rows installed)"
check 'an update ends where a fresh install ends, whatever users granted' \
  "$(without_access <"$work/fresh.catalog")" "$(catalog installed | without_access)"
check 'an update keeps privileges that users granted and revoked' \
  "$(cat "$work/installed.privileges")" "$(sql installed --file "$here/privileges.sql")"
pg_dump --dbname installed --file "$work/installed.sql"
sql postgres --command 'create database restored'
sql restored --file "$work/installed.sql" >/dev/null
check 'a dump of the updated database keeps what users granted and revoked' \
  "$(cat "$work/installed.privileges")" "$(sql restored --file "$here/privileges.sql")"
sql installed --file "$here/finish.sql" >/dev/null
check 'after an update the work under way is finished' "$(cat "$here/finished.txt")" "$(outcome installed)"
check 'after an update no rule is broken' none "$(broken_rules installed)"

### Upgrades that must fail, and change nothing

plain small
fill small 1

dump() { pg_dump --dbname "$1" | sed -E '/^\\(un)?restrict /d'; } # random keys that recent versions of pg_dump add
update() { sql "$1" --command 'alter extension pgflow update'; }

# NAME ERROR CHANGE: adopting a copy of `small` with the change in it ends with the error and leaves the copy as it was.
refused() {
  sql postgres --command 'drop database if exists refused' --command "create database refused template ${template:-small}"
  sql refused --command "$3" >/dev/null
  dump refused >"$work/before.sql"
  catalog refused 2>/dev/null >"$work/before.catalog" || true
  local error
  error=$("${how:-adopt}" refused 2>&1 | sed -nE 's/^(psql:[^ ]* )?(ERROR|DETAIL):  //p' || true)
  if grep -qE "$2" <<<"$error"; then check "$1" '' ''; else check "$1" "$2" "$error"; fi
  dump refused >"$work/after.sql"
  check "$1: nothing changed" '' "$(diff "$work/before.sql" "$work/after.sql")"
  check "$1: the catalog is as before" "$(cat "$work/before.catalog")" "$(catalog refused 2>/dev/null || true)"
}

refused 'two tasks with one message' 'could not create unique index "idx_step_tasks_queue_message"' \
  "update pgflow.step_tasks set message_id = 3 where flow_slug = 'live' and task_index = 3"
refused 'two flows that differ in case' 'could not create unique index "idx_flows_normalized_slug"' \
  "insert into pgflow.flows (flow_slug) values ('Live')"
refused 'a step of a flow whose name no queue can have' 'check constraint "queue_name_is_valid" of relation "steps"' \
  "insert into pgflow.flows (flow_slug) values (repeat('x', 48));
   insert into pgflow.steps (flow_slug, step_slug) values (repeat('x', 48), 'a')"
refused 'a missing index' 'Missing: index idx_runs_status' 'drop index pgflow.idx_runs_status'
refused 'another function of the same name' 'Not part of 0.16.0: .*pgflow.start_tasks\(text,bigint\[\]\)' \
  'create function pgflow.start_tasks(text, bigint[]) returns integer language sql as $$ select 1 $$'
refused 'a view of the user that is named like one of pgflow'"'"'s' 'relation "run_progress" already exists' \
  'create view pgflow.run_progress as select run_id, status from pgflow.runs'
refused 'a function of the user that is named like a new one of pgflow'"'"'s' \
  'function pgflow.run_graph\(uuid\) is not a member of extension "pgflow"' \
  'create function pgflow.run_graph(run_id uuid) returns text language sql as $$ select null $$'
refused 'a newer pgflow' 'Not part of 0.16.0: .*pgflow.steps.queue_name' 'alter table pgflow.steps add column queue_name text'
template=template0 refused 'no pgflow at all' 'there is no pgflow 0.16.0 to adopt' 'create extension pgmq'

sql postgres --command 'create database small_installed'
sql small_installed --command "create extension pgflow version '0.16.0' cascade"
sql small_installed --set bulk=1 --file "$here/fill.sql" >/dev/null
template=small_installed how=update refused 'two tasks with one message in an installed 0.16.0' \
  'could not create unique index "idx_step_tasks_queue_message"' \
  "update pgflow.step_tasks set message_id = 3 where flow_slug = 'live' and task_index = 3"

# What was refused, without the change.
sql postgres --command 'create database adopted template small' --command 'create database updated template small_installed'
adopt adopted
check 'adoption ends where a fresh install ends' "$(cat "$work/fresh.catalog")" "$(catalog adopted)"
update updated
check 'an update ends where a fresh install ends' "$(cat "$work/fresh.catalog")" "$(catalog updated)"

# A lock that cannot be had: a session holds one on the last table that is locked.
hold() {
  sql refused --command "begin; lock table pgflow.worker_functions in row share mode; select pg_sleep(60)" >/dev/null 2>&1 &
  holder=$!
  until [ "$(sql refused --command "select count(*) from pg_locks where relation = 'pgflow.worker_functions'::regclass
                                    and granted and mode = 'RowShareLock'")" = 1 ]; do sleep 0.1; done
}
release() {
  sql refused --command "select pg_terminate_backend(pid) from pg_locks where relation = 'pgflow.worker_functions'::regclass" >/dev/null
  wait "$holder" || true
}
adopt_while_held() {
  hold
  SECONDS=0
  adopt "$1" || true
  seconds=$SECONDS
  release
  echo "$seconds" >"$work/seconds"
}
within() { if [ "$(cat "$work/seconds")" -ge "$1" ] && [ "$(cat "$work/seconds")" -le "$2" ]; then echo yes; else cat "$work/seconds"; fi; }
options='-c lock_timeout=500' how=adopt_while_held refused 'a lock that is held longer than the user'"'"'s lock_timeout' \
  'canceling statement due to lock timeout' 'select'
check 'a short lock_timeout of the user holds' yes "$(within 0 4)"
options='-c lock_timeout=60000' how=adopt_while_held refused 'a lock that is held longer than 10 s' \
  'canceling statement due to lock timeout' 'select'
check 'a longer lock_timeout of the user is cut to 10 s' yes "$(within 9 14)"

### A database older than 0.16.0: pgflow's npm package carries its migrations

core=$project/.build/core-0.8.1
if ! (cd "$core" 2>/dev/null && sha256sum --check --quiet --strict "$here/core-0.8.1.sha256" 2>/dev/null); then
  rm -rf "$core"
  mkdir -p "$core"
  (cd "$core" && npm pack --silent @pgflow/core@0.8.1 >/dev/null && tar -xzf ./*.tgz --strip-components 4 package/dist/supabase/migrations)
fi
check 'the migrations of 0.8.1 are the known ones' '' \
  "$(cd "$core" && sha256sum --check --quiet --strict "$here/core-0.8.1.sha256" 2>&1)"
sql postgres --command 'create database older'
sql older --file "$project/tests/fixtures/realtime.sql" --command 'create schema pgmq'
for migration in "$core"/*.sql; do sql older --file "$migration" >/dev/null; done
template=older refused 'a database older than 0.16.0' \
  'schema "pgflow" does not hold pgflow 0.16.0: it is older, or was changed' \
  "select pgflow.create_flow('old'); select pgflow.add_step('old', 'a'); select pgflow.start_flow('old', '{}')"

summary
