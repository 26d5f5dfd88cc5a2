#!/usr/bin/env bash
# Copies the built extension, and PGMQ where it is missing, into the PostgreSQL 15 that a pg_config belongs to. It must
# be built before: tests/harness/install.sh. Uses sudo where the folders are not the caller's to write.
#
#   install_into.sh PG_CONFIG
if [ -z "${1:-}" ]; then sed -n 's/^#   //p' "${BASH_SOURCE[0]}" >&2; exit 2; fi
target=$(realpath -e "$1") || exit 1
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

version=$("$target" --version)
[[ $version = 'PostgreSQL 15'[.\ ]* ]] || die "$target belongs to $version; pgflow is built for PostgreSQL 15"

library=$("$PG_CONFIG" --pkglibdir)/pgflow.so
extensions=$("$PG_CONFIG" --sharedir)/extension
[ -f "$library" ] || die "nothing is built yet: make install-dev"
to_library=$("$target" --pkglibdir)
to_extensions=$("$target" --sharedir)/extension

as_root=()
if ! [ -w "$to_library" ] || ! [ -w "$to_extensions" ]; then
  command -v sudo >/dev/null || die "as root: make install PG_CONFIG=$target ($to_extensions is not yours to write)"
  as_root=(sudo)
fi

files=("$extensions"/pgflow.control "$extensions"/pgflow--*.sql)
if [ -f "$to_extensions/pgmq.control" ]; then
  say "PGMQ is there: $(sed -n "s/^default_version = '\(.*\)'$/\1/p" "$to_extensions/pgmq.control")"
else
  files+=("$extensions"/pgmq.control "$extensions"/pgmq--*.sql)
fi
"${as_root[@]}" install -m 644 "${files[@]}" "$to_extensions/"
"${as_root[@]}" install -m 755 "$library" "$to_library/" # replaced, not written over: servers may have it open

say "installed into $version. In a database, as a superuser: create extension pgflow cascade;"
