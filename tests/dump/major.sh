#!/usr/bin/env bash
# A database goes to the PostgreSQL that PGFLOW_POSTGRES names from the version two before: by pg_upgrade, and by a dump
# that the newer pg_dump makes. It comes there whole, and the work that was under way goes on. These two pairs are built
# alike, 15 and 17 by Debian, 16 and 18 as wheels (docs/versions.md#when-versions-change).
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/checks.sh"
. "$project/tests/dump/database.sh"
case $feature in
  pg17) from=pg15 ;;
  pg18) from=pg16 ;;
  *) die "PGFLOW_POSTGRES names the PostgreSQL to go to: pg17 or pg18" ;;
esac

server=$project/tests/harness/server.sh
old() { PGFLOW_POSTGRES=$from "$@"; }
old "$project/tests/harness/setup.sh"
old "$project/tests/harness/install.sh"

drop_servers old new restored
trap 'drop_servers old new restored' EXIT
export PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
at() { export PGHOST=$base/$1; }

# What is compared: rows and messages. Privileges read differently where a version knows more of them.
content() { sql "$1" --file "$here/fingerprint.sql" | grep -v '^privileges|'; }

arrived() { # HOW
  check "$1: every row and message is there" "$before" "$(content original)"
  sql original --file "$project/tests/fixtures/invariants.sql"
  check "$1: no rule is broken" none "$(broken_rules original)"
  sql original --file "$here/finish.sql" >/dev/null
  check "$1: the work under way is finished, and new work gets new messages" \
    "$(cat "$here/finished.txt")" "$(outcome original)"
  check "$1: no rule is broken at the end" none "$(broken_rules original)"
}

say "$("$base/$from/bin/postgres" --version) to $(postgres --version)"
old "$server" start old fsync=off
at old
sql postgres --command 'create database original' >/dev/null
sql original --file "$here/fill.sql" >/dev/null
before=$(content original)

pg_dump --create --dbname original --file "$project/.build/major.sql"
"$server" start restored fsync=off
at restored
sql postgres --command 'create role dump_client' # roles are the cluster's: a database's dump has none
sql postgres --file "$project/.build/major.sql" >/dev/null
arrived 'dump and restore'

# Both clusters must be made alike: with checksums or without, which PostgreSQL 18 has by default.
old "$server" stop old
checksums=()
[ "$feature" != pg18 ] || checksums=(--no-data-checksums)
"$server" create new "${checksums[@]}"
as_server env --chdir="$base/new" pg_upgrade --old-bindir "$base/$from/bin" --new-bindir "$base/$postgres/bin" \
  --old-datadir "$base/old/data" --new-datadir "$base/new/data" --username postgres --socketdir "$base/new" >"$project/.build/pg_upgrade.log" 2>&1 ||
  { tail -n 30 "$project/.build/pg_upgrade.log"; die "pg_upgrade failed"; }
"$server" start new fsync=off
at new
arrived pg_upgrade

summary
