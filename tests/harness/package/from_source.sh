#!/usr/bin/env bash
# Compiles pgflow for the PostgreSQL server that a pg_config belongs to, against that server's own headers, and installs it
# there. Everything but the copied files stays in .build.
#
#   from_source.sh build [PG_CONFIG]          only compiles
#   from_source.sh install [PG_CONFIG]        compiles where that was not done since the last change, and copies
#   from_source.sh install-pgmq [PG_CONFIG]   copies PGMQ, which is plain SQL
. "$(dirname "${BASH_SOURCE[0]}")/install.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
project=$PWD
tools=$project/.build/tools
pgmq=$(sed -n 's/^pgmq=${PGFLOW_PGMQ:-\(.*\)}$/\1/p' tests/harness/env.sh)

find_headers_and_compilers() {
  local headers
  headers=$("$pg_config" --includedir-server 2>/dev/null) || true
  [ -f "$headers/postgres.h" ] || refuse "$version has no headers: $headers/postgres.h is missing" \
    "install them, on Debian: apt-get install postgresql-server-dev-$major"
  tests/harness/rust.sh || exit 1
  if ! cc --version >/dev/null 2>&1 || ! clang --version >/dev/null 2>&1 || ! has_libclang; then
    refuse "a C compiler, clang or libclang is missing" \
      "install them, on Debian: apt-get install build-essential clang libclang-dev"
  fi
}

has_libclang() {
  [ -n "${LIBCLANG_PATH:-}" ] || compgen -G '/usr/lib/llvm*/lib/libclang*.so*' >/dev/null ||
    [[ $(PATH=$PATH:/sbin:/usr/sbin ldconfig -p) = *libclang[-.]* ]]
}

# The server and the sources, by what is in them: files that were unpacked have any time.
what_is_built() {
  echo "$pg_config: $version"
  find Cargo.toml Cargo.lock pgflow.control src sql tests/harness -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum
}

# Compiled for this server, and nothing changed since. So a second `make install`, as root perhaps, needs no Rust.
is_built() {
  [ -f "$built/lib/pgflow.so" ] && [ "$(cat "$folder/server")" = "$(what_is_built)" ]
}

build() {
  find_headers_and_compilers
  local variable
  for variable in ${!PG*}; do unset "$variable"; done # the caller's settings, for another PostgreSQL
  . tests/harness/cargo_pgrx.sh
  say "compiling for $version, some minutes the first time"
  mkdir -p "$folder"
  rm -rf "$built"
  what_is_built >"$folder/server"
  # Cargo goes by the times of files, and unpacked ones can be older than what it has compiled.
  cargo clean --quiet --release --package pgflow --target-dir "$folder/target"
  PATH=$tools/bin:$PATH PGRX_HOME=$folder/pgrx CARGO_TARGET_DIR=$folder/target \
    tests/harness/package/build.sh "$pg_config" "$built"
}

build_once() {
  ! is_built || return 0
  mkdir -p "$folder"
  exec 8>"$folder/lock"
  flock 8 # another `make install` may be compiling the same
  is_built || build
}

install_pgmq() {
  check_folders
  [ ! -f "$extensions/pgmq.control" ] ||
    refuse "there is a PGMQ already: $extensions/pgmq.control" "use it, or remove it first"
  tests/harness/rust.sh || exit 1 # cargo fetches it
  tests/harness/pgmq_files.sh "$pgmq" "$project/.build/pgmq-$pgmq"
  "${as_root[@]}" install -m 644 "$project/.build/pgmq-$pgmq/extension"/* "$extensions/"
  say "PGMQ $pgmq is copied into $extensions"
}

case ${1:-} in
  build | install | install-pgmq) ;;
  *) sed -n 's/^#   //p' tests/harness/package/from_source.sh >&2; exit 2 ;;
esac
find_server "${2:-}"
# shellcheck disable=SC2046 # many words
check_version $(sed -n 's/^pg\([0-9]*\) = .*/\1/p' Cargo.toml)
folder=$project/.build/install-pg$major
built=$folder/files

case $1 in
  build) build_once ;;
  install)
    check_folders
    check_pgmq "install a package of it, or: make install-pgmq PG_CONFIG=$pg_config"
    build_once
    copy_into_server "$built"
    ;;
  install-pgmq) install_pgmq ;;
esac
