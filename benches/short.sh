#!/usr/bin/env bash
# Runs every part of the bench once with little work: whether it still runs and checks what it measures, not how fast.
. "$(dirname "${BASH_SOURCE[0]}")/../tests/harness/env.sh"
. "$project/tests/harness/checks.sh"

export BENCH_SHORT=1 BENCH_OUTPUT=$project/.build/bench-short
rm -rf "$BENCH_OUTPUT"
"$project/benches/run.sh" cycle growth conditions memory first scaling >"$project/.build/bench-short.log" 2>&1 || tail -n 30 "$project/.build/bench-short.log"

for result in cycle.md growth.md growth.svg conditions.md memory.md first_use.md workers.md commits.md databases.md size.md \
  pool.md queues.md replica.md; do
  check "$result" written "$([ ! -s "$BENCH_OUTPUT/$result" ] || echo written)"
done
summary
