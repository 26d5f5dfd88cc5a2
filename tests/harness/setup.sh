#!/usr/bin/env bash
# Makes the private PostgreSQL with PGMQ and cargo-pgrx; what is there already is kept. Takes five minutes the
# first time, a second afterwards.
here=$(dirname "${BASH_SOURCE[0]}")
bash "$here/packages.sh" || exit 1
. "$here/env.sh"
cd "$project"

. "$here/cargo_pgrx.sh"
. "$here/postgres.sh"
extensions=$("$PG_CONFIG" --sharedir)/extension

if ! grep -qF "default_version = '$pgmq'" "$extensions/pgmq.control" 2>/dev/null; then
  say "downloading PGMQ $pgmq"
  "$here/pgmq_files.sh" "$pgmq" "$project/.build/pgmq-$pgmq"
  rm -f "$extensions"/pgmq--*.sql
  cp "$project/.build/pgmq-$pgmq/extension"/* "$extensions/"
fi

"$here/pgrx_config.sh" "$PG_CONFIG"
