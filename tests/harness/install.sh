#!/usr/bin/env bash
# Builds the extension in release mode and installs it into the private PostgreSQL, with the base scripts that
# cargo-pgrx does not copy (docs/adr/0003-base-scripts.md).
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$project"

say "building the extension in release mode, a few minutes the first time"
cargo pgrx install --release --pg-config "$PG_CONFIG"

# shellcheck disable=SC2046 # names without spaces
cp $(tests/harness/base_scripts.sh) "$("$PG_CONFIG" --sharedir)/extension/"
