# shellcheck shell=bash
# One environment for building, linting and testing; every script here starts by sourcing it. Building with
# another pg_config or PGRX_HOME would compile pgrx-pg-sys anew, so nothing else may set them.
#
# Sets: project   the project's folder
#       tools     the folder with this project's own cargo-pgrx
#       postgres  which PostgreSQL: pg15 to pg18, or pg15-cassert, which has its assertions compiled in
#       feature   its major version, as Cargo.toml's features and cargo-pgrx name it
#       pgmq      which version of PGMQ
#       base      the folder for the private PostgreSQL and its servers (docs/adr/0002-private-server.md)
#       server_user, as_server   who runs servers, and how a command is run as that user

set -euo pipefail
umask 022
PATH=$PATH:/usr/sbin # runuser, which root lacks after a plain su

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
tools=$project/.build/tools

say() { printf '%s\n' "-- $*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# PostgreSQL refuses to run as root.
if [ "$(id -u)" -eq 0 ]; then server_user=postgres; else server_user=$(id -un); fi

as_server() {
  if [ "$(id -un)" = "$server_user" ]; then
    (cd "$base" && "$@")
  else
    (cd "$base" && runuser -u "$server_user" -- "$@")
  fi
}

# A server's socket lies in its folder below the base, and a socket's path has at most 107 bytes: 70 for the
# project leave enough. The server's user must be able to reach the folder, and PostgreSQL's build flags carry
# it unquoted.
project_can_hold_servers() {
  [[ $project =~ ^[A-Za-z0-9._/+-]+$ ]] && [ ${#project} -le 70 ] &&
    { [ "$(id -un)" = "$server_user" ] || runuser -u "$server_user" -- test -x "$project"; }
}

mkdir -p "$project/.build"
base=$project/.build
if [ -s "$project/.build/base" ] && [ -d "$(cat "$project/.build/base")" ]; then
  base=$(cat "$project/.build/base")
elif id "$server_user" >/dev/null 2>&1 && ! project_can_hold_servers; then
  base=$(mktemp -d /var/tmp/pgflow.XXXXXX)
  chmod 755 "$base"
  printf '%s\n' "$base" >"$project/.build/base"
  say "$server_user cannot run a server in $project: using $base (make clean removes it)" >&2
fi

# Nothing of the caller's own PostgreSQL settings may leak in, and a backtrace would add DETAIL to errors.
for variable in ${!PG*}; do
  [[ $variable = PGFLOW_* ]] || unset "$variable"
done
unset variable RUST_BACKTRACE
# The PostgreSQL to build for and test on, in a folder of that name below the base, and the PGMQ that is in it: setup.sh
# makes them (docs/adr/0012-versions.md). Each PostgreSQL has its own compiled dependencies.
postgres=${PGFLOW_POSTGRES:-pg15}
feature=${postgres%-cassert}
pgmq=${PGFLOW_PGMQ:-1.13.0}
case $postgres in
  pg1[5-8] | pg15-cassert | pg1[5-8]-package) ;; # the last is a copy that tests/package makes
  *) die "no PostgreSQL \"$postgres\": PGFLOW_POSTGRES is pg15, pg16, pg17, pg18 or pg15-cassert" ;;
esac
unset CARGO_TARGET_DIR
export PGRX_HOME=$base/pgrx
if [ "$postgres" != pg15 ]; then
  PGRX_HOME=$base/pgrx-$postgres
  export CARGO_TARGET_DIR=$base/target-$postgres
fi
export PG_CONFIG=$base/$postgres/bin/pg_config
export PATH=$tools/bin:${PG_CONFIG%/*}:$PATH
export USER=${USER:-$(id -un)}

# The last `N passed, N failed` in a log, as two numbers; 0 0 where there is none.
sum_of() { # LOG
  { sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$1" | tail -n 1 | grep . || echo 0 0; } 2>/dev/null
}

# A folder that belongs to the server's user and that only that user and root can enter.
private_folder() { install -d -m 700 -o "$server_user" "$1"; }

# The npm packages that package-lock.json in the current folder names.
node_packages() {
  [ package-lock.json -nt node_modules/.package-lock.json ] || return 0
  say "downloading npm packages"
  npm ci --loglevel=error --no-audit --no-fund
}

# Runs files of tests with node's own test runner, several at the same time, and ends with the line that run_all.sh
# counts by. tests/clients has the packages that they import.
node_tests() { # LAYER SECONDS FILE ...
  (cd "$project/tests/clients" && node_packages)
  local log=$project/.build/node-$1.log status=0
  timeout "$2" node --test --test-concurrency=8 --test-reporter=spec "${@:3}" | tee "$log" || status=$?
  count() { sed -n "s/^ℹ $1 \([0-9]*\)$/\1/p" "$log"; }
  local passed failed cancelled
  passed=$(count pass) failed=$(count fail) cancelled=$(count cancelled)
  echo "${passed:-0} passed, $((${failed:-0} + ${cancelled:-0})) failed"
  return "$status"
}

# Drops servers, by name.
drop_servers() {
  local name
  for name in "$@"; do "$project/tests/harness/server.sh" drop "$name"; done
}

# A fresh server for a test script, gone when the script ends; so are other servers that its tests start. libpq's
# variables lead to it.
test_server() { # NAME [OTHER ...]
  drop_servers "$@"
  # shellcheck disable=SC2064 # expanded now, on purpose
  trap "drop_servers $*" EXIT
  "$project/tests/harness/server.sh" start "$1" fsync=off
  export PGHOST=$base/$1 PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}
