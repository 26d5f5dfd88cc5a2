#!/usr/bin/env bash
# Runs the Rust tests, unit tests and #[pg_test]s, in a server that pgrx makes. An argument runs only the tests
# with that word in their names.
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$project"

server=$base/unit
options=(--pgdata "$server")
[ "$(id -un)" = "$server_user" ] || options+=(--runas "$server_user")

# pgrx leaves its server behind when a test run is killed.
remove_servers() {
  local data
  for data in "$server"/*/; do
    as_server pg_ctl stop --mode immediate --silent --pgdata "$data" 2>/dev/null || true
  done
  rm -rf "$server"
}
remove_servers
trap remove_servers EXIT
private_folder "$server"

# A test's server has one database, and some tests count what is in it: one at a time.
export RUST_TEST_THREADS=1
status=0
cargo pgrx test "$feature" "${options[@]}" "$@" 2>&1 | tee "$project/.build/cargo-test.log" || status=$?

awk '/^test result:/ { passed += $4; failed += $6 }
  END { printf "%d passed, %d failed\n", passed, failed }' "$project/.build/cargo-test.log"
exit "$status"
