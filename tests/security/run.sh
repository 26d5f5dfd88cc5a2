#!/usr/bin/env bash
# Roles, hijacks, row security, memory: what docs/security.md says.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
test_server security
node_tests security 600 "$project"/tests/security/*.test.mjs
