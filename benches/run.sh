#!/usr/bin/env bash
# Runs the bench on a private server: see bench.mjs for its parts, docs/performance.md and docs/scaling.md for what they
# mean. Results are written to .build/bench-results.
. "$(dirname "${BASH_SOURCE[0]}")/../tests/harness/env.sh"
. "$project/tests/harness/debian.sh"
. "$project/tests/reliability/pgbouncer.sh"
cd "$project/benches"
node_packages

clean() {
  stop_pgbouncer "$base/bench-pool-10"
  stop_pgbouncer "$base/bench-pool-20"
  drop_servers bench bench-2
}
clean
trap clean EXIT
"$project/tests/harness/server.sh" start bench shared_buffers=1GB max_wal_size=4GB checkpoint_timeout=1h autovacuum=off \
  max_connections=600
export PGHOST=$base/bench PGUSER=postgres BENCH_OUTPUT=${BENCH_OUTPUT:-$project/.build/bench-results}

# What some parts need.
wants() { [[ " $* " =~ \ (scaling|$part)\  ]]; }
if part=pool wants "$@"; then
  for sessions in 10 20; do start_pgbouncer "$base/bench-pool-$sessions" "$PGHOST" "$sessions"; done
fi
if part=queues wants "$@"; then debian_extension pg_partman postgresql-15-partman; fi

node bench.mjs "$@"
say "results are in $BENCH_OUTPUT"
