#!/usr/bin/env bash
# Runs the bench on a private server: see bench.mjs for its parts, docs/performance.md for what they mean. Results are
# written to .build/bench-results.
. "$(dirname "${BASH_SOURCE[0]}")/../tests/harness/env.sh"
cd "$project/benches"
node_packages

"$project/tests/harness/server.sh" drop bench
trap '"$project/tests/harness/server.sh" drop bench' EXIT
"$project/tests/harness/server.sh" start bench shared_buffers=1GB max_wal_size=4GB checkpoint_timeout=1h autovacuum=off
export PGHOST=$base/bench PGUSER=postgres BENCH_OUTPUT=${BENCH_OUTPUT:-$project/.build/bench-results}

node bench.mjs "$@"
say "results are in $BENCH_OUTPUT"
