#!/usr/bin/env bash
# Makes the private PostgreSQL with PGMQ and cargo-pgrx; what is there already is kept. Takes five minutes the
# first time, a second afterwards.
here=$(dirname "${BASH_SOURCE[0]}")
bash "$here/packages.sh" || exit 1
. "$here/env.sh"
cd "$project"

# cargo-pgrx, the version that Cargo.toml names.
pgrx_version=$(sed -n 's/^pgrx = "=\(.*\)"$/\1/p' Cargo.toml)
if [ "$("$tools/bin/cargo-pgrx" pgrx --version 2>/dev/null)" != "cargo-pgrx $pgrx_version" ]; then
  say "compiling cargo-pgrx $pgrx_version, five minutes on two cores"
  cargo install cargo-pgrx --version "$pgrx_version" --locked --quiet --root "$tools"
fi

. "$here/postgres.sh"
extensions=$("$PG_CONFIG" --sharedir)/extension

# PGMQ is plain SQL, carried by its Rust crate: the crate is only downloaded, never compiled.
if ! grep -qF "default_version = '$pgmq'" "$extensions/pgmq.control" 2>/dev/null; then
  manifest=tests/harness/pgmq/$pgmq/Cargo.toml
  [ -f "$manifest" ] || die "no PGMQ \"$pgmq\""
  say "downloading PGMQ $pgmq"
  crate=$(cargo metadata --quiet --locked --format-version 1 --manifest-path "$manifest" |
    grep -o '"manifest_path":"[^"]*/pgmq-[0-9][^"]*/Cargo.toml"' | cut -d'"' -f4)
  embedded=$(dirname "$crate")/src/install/embedded
  rm -f "$extensions"/pgmq--*.sql
  cp "$embedded/sql/pgmq.sql" "$extensions/pgmq--$pgmq.sql"
  cp "$embedded/pgmq.control" "$extensions/"
  grep -qF "default_version = '$pgmq'" "$extensions/pgmq.control" || die "$crate has another PGMQ than $pgmq"
fi

if ! grep -qF "\"$PG_CONFIG\"" "$PGRX_HOME/config.toml" 2>/dev/null; then
  mkdir -p "$PGRX_HOME"
  cargo pgrx init "--$feature" "$PG_CONFIG" --no-run >/dev/null
fi
