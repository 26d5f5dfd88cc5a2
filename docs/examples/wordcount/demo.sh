#!/usr/bin/env bash
# Runs this folder's flow with three workers, on a private PostgreSQL server.
#
#   demo.sh [FOLDER]   counts words in the files of FOLDER; without it, in the licenses that come with Debian
#
# `make demo` builds and installs the extension first. Each call adds a run to the same database. What the workers
# log, and the picture of the run, go to .build/wordcount. PGFLOW_DEMO_SERVER names another server than demo.
. "$(dirname "${BASH_SOURCE[0]}")/../../../tests/harness/env.sh"

folder=$(realpath -e "${1:-/usr/share/common-licenses}")
out=$project/.build/wordcount
server=${PGFLOW_DEMO_SERVER:-demo}
limit=60 # seconds that the run may take
mkdir -p "$out"
cd "$project/docs/examples/wordcount"

server() { "$project/tests/harness/server.sh" "$@"; }
sql() {
  PGOPTIONS='-c client_min_messages=warning' \
    psql --no-psqlrc --quiet --no-align --tuples-only --set ON_ERROR_STOP=1 "$@"
}

say "starting PostgreSQL"
server start "$server"
url=$(server url "$server" wordcount)
export PGHOST=${url#*host=} PGUSER=postgres PGDATABASE=wordcount

# The database stays from one call to the next, unless the extension's SQL has changed since.
version=$(cat "$("$PG_CONFIG" --sharedir)"/extension/pgflow--*.sql | md5sum | cut -d ' ' -f 1)
made_with=$(sql -d postgres -c "select shobj_description(oid, 'pg_database') from pg_database where datname = 'wordcount'")
if [ "$made_with" != "$version" ]; then
  say "creating the database wordcount with the extension pgflow"
  sql -d postgres -c 'drop database if exists wordcount with (force)' -c 'create database wordcount'
  sql -c 'create extension pgflow cascade' -c "comment on database wordcount is '$version'"
fi

say "creating the flow"
sql -f flow.sql >/dev/null

if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  say "installing the npm package postgres"
  npm ci --loglevel=error --no-audit --no-fund
fi

workers=()
stop_workers() {
  trap - EXIT
  kill "${workers[@]}" 2>/dev/null || true # SIGTERM: each finishes what it has claimed, within the 5 s of a timeout
  for _ in {1..100}; do
    kill -0 "${workers[@]}" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "${workers[@]}"
}
trap stop_workers EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "starting three workers"
for i in 1 2 3; do
  node worker.mjs "worker $i" >"$out/worker-$i.log" 2>&1 &
  workers+=($!)
done

say "starting a run over the files in $folder"
run=$(sql -v folder="$folder" <<'SQL'
select run_id from pgflow.start_flow('wordcount', jsonb_build_object('folder', :'folder'));
SQL
)
echo
if ! node progress.mjs "$run" "$limit" "$out/run.md"; then
  stop_workers
  tail -n 20 "$out"/worker-?.log >&2
  exit 1
fi
stop_workers

echo
psql --no-psqlrc --set run="$run" --file result.sql
cat <<END
-- the picture of the run as a Mermaid graph: $out/run.md
-- what the workers logged: $out/worker-1.log, worker-2.log, worker-3.log
-- stop the server: make demo-stop

Now look around, in the database that is still there:

  psql '$url'

END
sed "s/:'run'/'$run'/; s/^./  &/" tour.sql
