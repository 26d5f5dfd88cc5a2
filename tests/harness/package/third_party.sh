#!/usr/bin/env bash
# Prints the crates that the library contains, each with its licence and the texts about it that come with the crate, but for
# Apache's, which LICENSE has.
#
#   third_party.sh FEATURE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

options=(--locked --no-default-features --features "$1")
sources=$(cargo metadata "${options[@]}" --format-version 1 | grep -o '"manifest_path":"[^"]*/pgrx-[0-9][^"]*"' | cut -d'"' -f4)
sources=$(dirname "$(dirname "$sources")")

echo "pgflow.so contains these Rust crates."
cargo tree "${options[@]}" --edges normal,no-proc-macro --prefix none --format '{p} {l}' | grep -vF '(*)' | sort -u |
  while read -r name version license; do
    [ "$name" != pgflow ] || continue
    printf '\n=== %s %s: %s\n' "$name" "$version" "$license"
    for file in "$sources/$name-${version#v}"/{LICEN[CS]E,COPYING,COPYRIGHT,NOTICE}*; do
      [[ ! -f $file || $file = *APACHE* ]] || { printf '\n' && cat "$file"; }
    done
  done
