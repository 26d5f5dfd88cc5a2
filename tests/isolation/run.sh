#!/usr/bin/env bash
# Runs specs/*.spec with PostgreSQL's isolation tester and compares what the sessions see with expected/*.out. Names
# of specs as arguments run only those.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
cd "$project/tests/isolation"
test_server isolation

output=$project/.build/isolation-output
rm -rf "$output"
mkdir -p "$output/expected"

specs=("$@")
[ $# -gt 0 ] || for spec in specs/*.spec; do specs+=("$(basename "$spec" .spec)"); done
# Without an expected file the tester would break off; against an empty one, all that a spec prints is a difference.
for spec in "${specs[@]}"; do
  [ -f "expected/$spec.out" ] || touch "$output/expected/$spec.out"
done

export PG_TEST_TIMEOUT_DEFAULT=${STEP_TIMEOUT:-30} # seconds a step may take, doubled by the tester
status=0
# The tester of Debian's PostgreSQL 15 is a client, and serves for all versions.
/usr/lib/postgresql/15/lib/pgxs/src/test/isolation/pg_isolation_regress --inputdir=. --outputdir="$output" \
  --bindir="$("$PG_CONFIG" --bindir)" --load-extension=pgmq --load-extension=pgflow "${specs[@]}" |
  tee "$output/log" || status=$?

[ ! -s "$output/regression.diffs" ] || cat "$output/regression.diffs"
ok=$(grep -acE '^test .* \.\.\. ok ' "$output/log" || true)
echo "$ok passed, $((${#specs[@]} - ok)) failed"
exit "$status"
