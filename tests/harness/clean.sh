#!/usr/bin/env bash
# Stops this project's servers and deletes what was built. With the word `outside` only what lies outside the
# project's folder is deleted.
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

"$project/tests/harness/server.sh" stop-all
[ "$base" = "$project/.build" ] || rm -rf "$base" "$project/.build/base"
[ "${1:-}" = outside ] || rm -rf "$project/.build" "$project/target" "$project"/{tests/clients,docs/examples/*}/node_modules
