#!/usr/bin/env bash
# Lists the base scripts in sql/, which cargo-pgrx does not copy (docs/adr/0003-base-scripts.md).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

for script in sql/pgflow--*.sql; do
  case ${script#sql/pgflow--} in
    '*.sql' | *--*) ;; # no script at all; a step between two versions, which cargo-pgrx copies
    *) echo "$script" ;;
  esac
done
