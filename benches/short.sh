#!/usr/bin/env bash
# Runs every part of the bench once with little work: whether it still runs and checks what it measures, not how fast.
. "$(dirname "${BASH_SOURCE[0]}")/../tests/harness/env.sh"

export BENCH_SHORT=1 BENCH_OUTPUT=$project/.build/bench-short
rm -rf "$BENCH_OUTPUT"
"$project/benches/run.sh" >"$project/.build/bench-short.log" 2>&1 || tail -n 30 "$project/.build/bench-short.log"

passed=0 failed=0
for result in cycle.md growth.md growth.svg conditions.md memory.md first_use.md; do
  if [ -s "$BENCH_OUTPUT/$result" ]; then
    echo "ok      $result"
    passed=$((passed + 1))
  else
    echo "FAILED  $result"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
