#!/usr/bin/env bash
# Load and faults, each part on servers of its own: README.md here says what each shows.
#
#   run.sh PART SECONDS         PART is races, crashes, failover, pgbouncer, workers
#   run.sh pairs NUMBER [SEED]
#   run.sh queues
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/debian.sh"
. "$project/tests/reliability/pgbouncer.sh"
part=$1
shift
cd "$project/tests/clients"
node_packages
cd "$project/tests/reliability"
server=$project/tests/harness/server.sh

clean() {
  "$server" drop "$part"
  "$server" drop "$part-2"
  stop_pgbouncer "$base/$part-pool"
  rm -f "$base/$part-link"
}
clean
trap clean EXIT
export PGHOST=$base/$part PGPORT=5432 PGUSER=postgres

# Where servers are lost, they write as they would in production.
case $part in
  races | pairs | workers | pgbouncer) "$server" start "$part" fsync=off ;;
  crashes | failover | queues) "$server" start "$part" ;;
  *) die "no part \"$part\"" ;;
esac

case $part in
  pgbouncer)
    start_pgbouncer "$base/$part-pool" "$PGHOST" 4
    node pgbouncer.mjs "$@" "$base/$part-pool"
    ;;
  failover)
    PGHOST=$base/$part-link node failover.mjs "$@" "$base/$part" "$base/$part-2"
    ;;
  queues)
    debian_extension pg_partman postgresql-15-partman
    node queues.mjs "$base/$part" "$base/$part-2"
    ;;
  *) node "$part.mjs" "$@" ;;
esac
