#!/usr/bin/env bash
# Copies PGMQ's files into a folder: extension/*, and its LICENSE. PGMQ is plain SQL, carried by its Rust crate: the crate
# is only downloaded, never compiled.
#
#   pgmq_files.sh VERSION FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/pgmq"

[ -f "$1/Cargo.toml" ] || { echo "no PGMQ \"$1\"" >&2; exit 1; }
crate=$(cargo metadata --quiet --locked --format-version 1 --manifest-path "$1/Cargo.toml" |
  grep -o '"manifest_path":"[^"]*/pgmq-[0-9][^"]*/Cargo.toml"' | cut -d'"' -f4)
crate=$(dirname "$crate")
embedded=$crate/src/install/embedded
grep -qF "default_version = '$1'" "$embedded/pgmq.control" || { echo "$crate has another PGMQ than $1" >&2; exit 1; }
mkdir -p "$2/extension"
install -m 644 "$embedded/pgmq.control" "$2/extension/pgmq.control"
install -m 644 "$embedded/sql/pgmq.sql" "$2/extension/pgmq--$1.sql"
install -m 644 "$crate/LICENSE" "$2/LICENSE"
