# shellcheck shell=bash
# Compiles cargo-pgrx into the tools, in the version that Cargo.toml names; no-op when it is there. Sourced in the
# project's folder by a script that has set tools and say.
pgrx_version=$(sed -n 's/^pgrx = "=\(.*\)"$/\1/p' Cargo.toml)
if [ "$("$tools/bin/cargo-pgrx" pgrx --version 2>/dev/null)" != "cargo-pgrx $pgrx_version" ]; then
  say "compiling cargo-pgrx $pgrx_version, five minutes on two cores"
  cargo install cargo-pgrx --version "$pgrx_version" --locked --quiet --root "$tools"
fi
