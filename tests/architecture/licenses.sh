#!/usr/bin/env bash
# Has cargo-deny check licences, sources and versions of all crates by deny.toml. A cargo-deny that is installed is used,
# else one is compiled, some minutes. Its advisories need the network and are left out.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/checks.sh"

cd "$project"
deny_version=0.20.2
if ! cargo deny --version >/dev/null 2>&1; then
  say "compiling cargo-deny $deny_version"
  cargo install cargo-deny --version "$deny_version" --locked --quiet --root "$tools"
fi

for manifest in Cargo.toml tests/harness/pgmq/*/Cargo.toml; do
  check "$manifest" 'bans ok, licenses ok, sources ok' \
    "$(cargo deny --manifest-path "$project/$manifest" --locked --config "$project/tests/architecture/deny.toml" \
      check --hide-inclusion-graph bans licenses sources 2>&1 || true)"
done
summary
