#!/usr/bin/env bash
# Tells cargo-pgrx, in the folder PGRX_HOME, of the PostgreSQL that a pg_config belongs to; no-op when it knows.
#
#   pgrx_config.sh PG_CONFIG
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

! grep -qF "\"$1\"" "$PGRX_HOME/config.toml" 2>/dev/null || exit 0
mkdir -p "$PGRX_HOME"
major=$("$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
cargo pgrx init "--pg$major" "$1" --no-run >/dev/null
