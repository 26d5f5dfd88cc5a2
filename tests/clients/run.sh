#!/usr/bin/env bash
# Runs the JavaScript tests with the driver and the released client that package-lock.json names.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
cd "$project/tests/clients"
node_packages
test_server clients

log=$project/.build/node.log
status=0
# The files wait more than they work, so they run at the same time on any number of cores.
timeout 600 node --test --test-concurrency=8 --test-reporter=spec ./*.test.mjs | tee "$log" || status=$?

count() { sed -n "s/^ℹ $1 \([0-9]*\)$/\1/p" "$log"; }
passed=$(count pass) failed=$(count fail) cancelled=$(count cancelled)
echo "${passed:-0} passed, $((${failed:-0} + ${cancelled:-0})) failed"
exit "$status"
