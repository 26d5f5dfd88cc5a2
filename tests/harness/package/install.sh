#!/usr/bin/env bash
# Installs pgflow into the PostgreSQL server that a pg_config belongs to: copies the files that lie beside this script,
# with sudo where the server's folders are not the caller's to write. What it cannot do it refuses, and copies nothing.
#
#   install.sh [PG_CONFIG]    without PG_CONFIG: the one on PATH, or Debian's newest
#
# Release archives carry it; from a source tree, `make install` uses its functions.
set -euo pipefail

say() { printf '%s\n' "-- $*"; }

refuse() { # WHAT IS WRONG, WHAT TO DO
  printf '%s\n' "$1" "  $2" >&2
  exit 1
}

# Sets pg_config.
find_server() { # [PG_CONFIG]
  local name_it="name the pg_config of a server, such as /usr/lib/postgresql/17/bin/pg_config"
  pg_config=${1:-}
  if [ -z "$pg_config" ]; then
    pg_config=$(command -v pg_config || compgen -G '/usr/lib/postgresql/*/bin/pg_config' | sort -V | tail -n 1) || true
    [ -n "$pg_config" ] || refuse "no pg_config on PATH or in /usr/lib/postgresql" "$name_it"
    say "taking $pg_config"
  elif [[ $pg_config != */* ]] && command -v "$pg_config" >/dev/null; then
    pg_config=$(command -v "$pg_config")
  fi
  [[ -e $pg_config ]] || refuse "no such file: $pg_config" "$name_it"
  [[ -f $pg_config && -x $pg_config ]] || refuse "$pg_config is no program" "$name_it"
  pg_config=$(realpath --no-symlinks "$pg_config")
}

# Sets version, such as `PostgreSQL 15.20`, and major.
check_version() { # SUPPORTED MAJOR ...
  local supported=$*
  version=$("$pg_config" --version </dev/null 2>/dev/null) || true
  [[ $version =~ ^PostgreSQL\ ([0-9]+) ]] ||
    refuse "$pg_config is no pg_config: it does not answer with PostgreSQL's version" "name the pg_config of a server"
  major=${BASH_REMATCH[1]}
  [[ " $supported " = *" $major "* ]] ||
    refuse "$pg_config belongs to $version; this pgflow is for PostgreSQL ${supported// /, }" \
      "name the pg_config of another server"
}

# Sets libraries and extensions, the server's folders, and as_root, how to write there.
check_folders() {
  libraries=$("$pg_config" --pkglibdir 2>/dev/null) || libraries=
  extensions=$("$pg_config" --sharedir 2>/dev/null)/extension || extensions=/extension
  [[ -n $libraries && $extensions != /extension ]] ||
    refuse "$pg_config does not say where its server's files are" "name the pg_config of a server"
  [[ -d $libraries && -d $extensions ]] ||
    refuse "$version has no server: $libraries or $extensions is missing" \
      "install it, on Debian: apt-get install postgresql-$major; or name the pg_config of another server"
  as_root=()
  if ! [[ -w $libraries && -w $extensions ]]; then
    command -v sudo >/dev/null || refuse "$extensions is not yours to write, and there is no sudo" "do this as root"
    as_root=(sudo)
  fi
}

# pgflow's queues are PGMQ's. No check when the extension is created knows its version, and 1.5.1 is the oldest that is
# known to have all that is called.
check_pgmq() { # HOW TO GET IT
  [ -f "$extensions/pgmq.control" ] || refuse "PGMQ is missing: $extensions has no pgmq.control" "$1"
  local found
  found=$(sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" "$extensions/pgmq.control")
  say "PGMQ is there: $found"
  [ "$(printf '%s\n' 1.5.1 "$found" | sort -V | head -n 1)" = 1.5.1 ] ||
    say "warning: pgflow is not known to work with a PGMQ older than 1.5.1"
}

# The library is put in place at once, as sessions may load it meanwhile, and first: it serves older scripts, too.
copy_into_server() { # FOLDER
  "${as_root[@]}" install -m 755 "$1/lib/pgflow.so" "$libraries/pgflow.so.new"
  "${as_root[@]}" mv -f "$libraries/pgflow.so.new" "$libraries/pgflow.so"
  "${as_root[@]}" install -m 644 "$1"/extension/* "$extensions/"
  say "installed into $version. In a database, as a superuser: create extension pgflow cascade;"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  here=$(dirname "$(realpath "$0")")
  find_server "${1:-}"
  check_version "$(cat "$here/postgresql")"
  check_folders
  check_pgmq "install it first: a package of postgresql-$major-pgmq, or https://github.com/pgmq/pgmq"
  copy_into_server "$here"
fi
