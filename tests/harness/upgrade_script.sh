#!/usr/bin/env bash
# Prints the script of an upgrade step, sql/pgflow--STEP.sql: sql/upgrade/STEP.sql with every line `-- @include FILE`
# replaced by the file, and every line `-- @comments FILE` by the COMMENTs and dump marks in it. So declarations and
# comments are written once, for fresh installs and for upgrades.
#
#   upgrade_script.sh STEP      for example 0.16.0--0.17.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

while IFS= read -r line; do
  case $line in
    '-- @include '*) cat "${line#-- @include }" ;;
    '-- @comments '*) awk '/^comment on /, /;$/; /^select pg_catalog.pg_extension_config_dump/' "${line#-- @comments }" ;;
    *) printf '%s\n' "$line" ;;
  esac
done <"sql/upgrade/$1.sql"
