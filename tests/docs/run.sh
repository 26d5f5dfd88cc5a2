#!/usr/bin/env bash
# The documentation: its SQL is run and the output it shows compared, its links and names are looked up, its workers
# are started.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/debian.sh"

# Python's driver, for the worker in Python; it uses PostgreSQL's own libpq.
packages=$project/.build/psycopg
export PYTHONPATH=$packages/usr/lib/python3/dist-packages
[ -d "$PYTHONPATH/psycopg" ] || unpack_packages "$packages" python3-psycopg python3-typing-extensions ||
  die "psycopg is missing, and apt-get download python3-psycopg failed"

test_server docs

if [ "${1:-}" = show ]; then
  node "$project/tests/docs/show.mjs" "${@:2}"
  exit
fi

cd "$project/tests/docs"
node_tests docs 300 ./*.test.mjs
