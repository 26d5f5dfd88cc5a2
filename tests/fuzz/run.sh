#!/usr/bin/env bash
# Calls every function with hostile arguments, PGFLOW_FUZZ_CALLS times (1,000), drawn with PGFLOW_FUZZ_SEED (1).
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
test_server fuzz
node_tests fuzz 7200 "$project"/tests/fuzz/*.test.mjs
