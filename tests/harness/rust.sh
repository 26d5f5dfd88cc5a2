#!/usr/bin/env bash
# Checks that Rust is there, and not older than Cargo.toml asks for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
version=$(cargo --version 2>/dev/null | cut -d' ' -f2) || version=
if [ -z "$version" ]; then
  printf '%s\n' "Rust is missing" "  install it from https://rustup.rs ($needed or newer)" >&2
  exit 1
fi
if [ "$(printf '%s\n' "$needed" "$version" | sort -V | head -n 1)" != "$needed" ]; then
  printf '%s\n' "cargo is $version, $needed or newer is needed" "  rustup update stable" >&2
  exit 1
fi
