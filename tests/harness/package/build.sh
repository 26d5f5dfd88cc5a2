#!/usr/bin/env bash
# Compiles the extension for release against the headers of a PostgreSQL, and puts what installs it into a folder:
# lib/pgflow.so, extension/*, install.sh, and the major version in a file `postgresql`. Compiles in CARGO_TARGET_DIR,
# with the settings in PGRX_HOME and the cargo-pgrx on PATH.
#
#   build.sh PG_CONFIG FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

tests/harness/pgrx_config.sh "$1"
rm -rf "$2" "$2.root"
mkdir -p "$2/lib"
"$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/' >"$2/postgresql"
cp tests/harness/package/install.sh "$2/"
cargo pgrx package --pg-config "$1" --out-dir "$2.root"
mv "$2.root$("$1" --sharedir)/extension" "$2/"
# shellcheck disable=SC2046 # names without spaces
cp $(tests/harness/base_scripts.sh) "$2/extension/"
mv "$2.root$("$1" --pkglibdir)/pgflow.so" "$2/lib/"
rm -r "$2.root"
