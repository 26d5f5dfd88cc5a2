#!/usr/bin/env bash
# Runs the JavaScript tests with the driver and the released client that package-lock.json names. The files wait more
# than they work, so they run at the same time on any number of cores.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
test_server clients clients_restart
cd "$project/tests/clients"
node_tests clients 600 ./*.test.mjs
