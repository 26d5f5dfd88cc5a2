# shellcheck shell=bash
# Installers refuse what they cannot do: status 1, a line that says what is wrong, one that says what to do, and nothing
# copied. They are given a pg_config that tells of a server as it is made up here. Sourced by run.sh.

fake=$folder/fake

# A server of a version: with folders, headers and PGMQ.
fake_server() { # ANSWER TO --version
  rm -rf "$fake"
  mkdir -p "$fake"/{bin,lib,share/extension,include}
  touch "$fake/include/postgres.h"
  echo "default_version = '$pgmq'" >"$fake/share/extension/pgmq.control"
  program pg_config "case \$1 in
    --version) echo '$1' ;;
    --pkglibdir) echo $fake/lib ;;
    --sharedir) echo $fake/share ;;
    --includedir-server) echo $fake/include ;;
  esac"
}

# A program that is found before the real one.
program() { # NAME TEXT
  printf '%s\n' '#!/bin/sh' "$2" >"$fake/bin/$1"
  chmod +x "$fake/bin/$1"
}

from_archive=("$folder/$archive/install.sh")
from_source=(tests/harness/package/from_source.sh install)

# Checks one of them or, called `both`, both.
refused() { # NAME WRONG TO_DO [COMMAND ...]
  local name=$1 wrong=$2 to_do=$3 found status=0
  shift 3
  found=$(PATH=$fake/bin:$PATH "$@" 2>&1) || status=$?
  check "refused: $name" "1: $wrong
  $to_do" "$status: $(grep -v '^-- ' <<<"$found")"
  check "refused: $name: nothing is copied" '' "$(find "$fake" -name '*pgflow*')"
}
both() { # NAME WRONG TO_DO [PG_CONFIG]
  refused "$1, archive" "$2" "$3" "${from_archive[@]}" "${@:4}"
  refused "$1, source" "$2" "$3" "${from_source[@]}" "${@:4}"
}

test_refusals() {
  local name_it='name the pg_config of a server, such as /usr/lib/postgresql/17/bin/pg_config'
  fake_server 'PostgreSQL 99.1'
  both 'no such file' "no such file: $fake/none" "$name_it" "$fake/none"
  both 'a folder' "$fake/lib is no program" "$name_it" "$fake/lib"
  chmod -x "$fake/bin/pg_config"
  both 'not executable' "$fake/bin/pg_config is no program" "$name_it" "$fake/bin/pg_config"

  fake_server 'postgres (PostgreSQL) 15.20'
  both 'another program' "$fake/bin/pg_config is no pg_config: it does not answer with PostgreSQL's version" \
    'name the pg_config of a server' "$fake/bin/pg_config"

  fake_server 'PostgreSQL 14.20'
  refused 'another major version, archive' \
    "$fake/bin/pg_config belongs to PostgreSQL 14.20; this pgflow is for PostgreSQL $major" \
    'name the pg_config of another server' "${from_archive[@]}"
  refused 'another major version, source' \
    "$fake/bin/pg_config belongs to PostgreSQL 14.20; this pgflow is for PostgreSQL 15, 16, 17, 18" \
    'name the pg_config of another server' "${from_source[@]}"

  fake_server "PostgreSQL $major.99"
  rm -r "$fake/share"
  both 'no server' "PostgreSQL $major.99 has no server: $fake/lib or $fake/share/extension is missing" \
    "install it, on Debian: apt-get install postgresql-$major; or name the pg_config of another server"

  fake_server "PostgreSQL $major.99"
  rm -r "$fake/share" "$fake/include/postgres.h"
  refused 'no headers, and none but those are needed to compile' \
    "PostgreSQL $major.99 has no headers: $fake/include/postgres.h is missing" \
    "install them, on Debian: apt-get install postgresql-server-dev-$major" tests/harness/package/from_source.sh build

  fake_server "PostgreSQL $major.99"
  rm "$fake/share/extension/pgmq.control"
  refused 'no PGMQ, archive' "PGMQ is missing: $fake/share/extension has no pgmq.control" \
    "install it first: a package of postgresql-$major-pgmq, or https://github.com/pgmq/pgmq" "${from_archive[@]}"
  refused 'no PGMQ, source' "PGMQ is missing: $fake/share/extension has no pgmq.control" \
    "install a package of it, or: make install-pgmq PG_CONFIG=$fake/bin/pg_config" "${from_source[@]}"

  fake_server "PostgreSQL $major.99"
  refused 'PGMQ is there already' "there is a PGMQ already: $fake/share/extension/pgmq.control" \
    'use it, or remove it first' tests/harness/package/from_source.sh install-pgmq
  rm "$fake/include/postgres.h"
  refused 'no headers' "PostgreSQL $major.99 has no headers: $fake/include/postgres.h is missing" \
    "install them, on Debian: apt-get install postgresql-server-dev-$major" "${from_source[@]}"

  fake_server "PostgreSQL $major.99"
  program cargo 'exit 127'
  refused 'no Rust' 'Rust is missing' 'install it from https://rustup.rs (1.95 or newer)' "${from_source[@]}"
  program cargo 'echo "cargo 1.94.1 (29ea6fb6a 2026-03-24)"'
  refused 'old Rust' 'cargo is 1.94.1, 1.95 or newer is needed' 'rustup update stable' "${from_source[@]}"

  fake_server "PostgreSQL $major.99"
  program clang 'exit 127'
  refused 'no clang' 'a C compiler, clang or libclang is missing' \
    'install them, on Debian: apt-get install build-essential clang libclang-dev' "${from_source[@]}"

  fake_server "PostgreSQL $major.99"
  echo "default_version = '1.4.5'" >"$fake/share/extension/pgmq.control"
  check 'an old PGMQ gives a warning, and stays' "-- taking $fake/bin/pg_config
-- PGMQ is there: 1.4.5
-- warning: pgflow is not known to work with a PGMQ older than 1.5.1
-- installed into PostgreSQL $major.99. In a database, as a superuser: create extension pgflow cascade;" \
    "$(PATH=$fake/bin:$PATH "${from_archive[@]}" 2>&1)"
  check 'an old PGMQ gives a warning, and stays: pgflow is copied' "pgflow.control pgflow.so pgmq.control" \
    "$(cd "$fake" && find . -name '*.so' -printf '%f\n' -o -name '*.control' -printf '%f\n' | sort | paste -sd ' ')"
}
