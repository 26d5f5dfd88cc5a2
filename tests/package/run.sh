#!/usr/bin/env bash
# What is released: refusals of the installers, the release archive and `make install` on copies of the private PostgreSQL,
# and the Debian packages in a clean Debian, where a flow runs to its end. Makes the packages first.
#
#   run.sh [PART ...]    refusals, archive, messages, pgxn, dockerfiles or debian; all of them without an argument
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/checks.sh"
. "$project/tests/harness/debian.sh"
. "$project/tests/harness/wheels.sh"
cd "$project"

for part in "$@"; do
  [[ " refusals archive messages pgxn dockerfiles debian " = *" $part "* ]] || die "no part \"$part\""
done
parts=" ${*:-refusals archive messages pgxn dockerfiles debian} "
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
major=${feature#pg}
dist=$project/.build/dist
folder=$base/package # what the tests unpack and start
archive=pgflow-$version-$postgres-linux-$(uname -m)

# What tests/package/flow.sql prints.
ran="pgflow|$version
pgmq|$pgmq
completed|{\"send\": \"send done\"}"

clean() {
  leave_debian
  [ ! -e "$base/$postgres-package" ] || PGFLOW_POSTGRES=$postgres-package tests/harness/server.sh drop package-db
  rm -rf "$folder" "$base/$postgres-package"
}
. tests/package/debian.sh
. tests/package/dockerfiles.sh
. tests/package/refusals.sh
. tests/package/servers.sh

clean
trap clean EXIT
mkdir -p "$folder"
tests/harness/package/release.sh
tar --extract --gzip --directory "$folder" --file "$dist/$archive.tar.gz"

for part in refusals archive messages pgxn dockerfiles debian; do
  [[ $parts != *" $part "* ]] || "test_$part"
done
summary
