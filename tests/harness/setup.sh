#!/usr/bin/env bash
# Makes the private PostgreSQL with PGMQ and cargo-pgrx; what is there already is kept. Takes five minutes the
# first time, a second afterwards.
here=$(dirname "${BASH_SOURCE[0]}")
bash "$here/packages.sh" || exit 1
. "$here/env.sh"
cd "$project"

# cargo-pgrx, the version that Cargo.toml names.
pgrx_version=$(sed -n 's/^pgrx = "=\(.*\)"$/\1/p' Cargo.toml)
if [ "$("$tools/bin/cargo-pgrx" pgrx --version 2>/dev/null)" != "cargo-pgrx $pgrx_version" ]; then
  say "compiling cargo-pgrx $pgrx_version, five minutes on two cores"
  cargo install cargo-pgrx --version "$pgrx_version" --locked --quiet --root "$tools"
fi

# A copy of Debian's PostgreSQL in which extensions are installed. Its programs find their files relative to
# themselves, so its pg_config names the copy.
copy_pg15() {
  local version folder source
  version=$("$system_pg_config" --version)
  [ "$(cat "$base/pg15/version" 2>/dev/null)" != "$version" ] || return 0
  say "copying $version to $base/pg15"
  rm -rf "$base/pg15"
  for folder in bindir pkglibdir sharedir; do
    source=$("$system_pg_config" --$folder)
    mkdir -p "$base/pg15${source#/usr}"
    cp -a "$source/." "$base/pg15${source#/usr}/"
  done
  source=$("$system_pg_config" --includedir)
  mkdir -p "$(dirname "$base/pg15${source#/usr}")"
  ln -s "$source" "$base/pg15${source#/usr}"
  printf '%s\n' "$version" >"$base/pg15/version"
}

# The same major version, built from Debian's source package with its assertions.
build_pg15_cassert() {
  [ ! -x "$PG_CONFIG" ] || return 0
  . "$project/tests/harness/debian.sh"
  local source=$base/pg15-cassert-source
  say "downloading the source of PostgreSQL 15"
  download_source "$source" postgresql-15
  say "compiling PostgreSQL 15 with assertions, a few minutes"
  ( # in a condition, where no command but the last ends it by failing
    cd "$source" &&
      ./configure --quiet --prefix="$base/$postgres" --bindir="${PG_CONFIG%/*}" --enable-cassert --enable-debug \
        --without-readline --without-zlib CFLAGS='-Og -g' &&
      make --silent --jobs "$(nproc)" install &&
      make --silent -C src/test/isolation install
  ) >"$project/.build/pg15-cassert.log" 2>&1 || { tail -n 20 "$project/.build/pg15-cassert.log"; return 1; }
  rm -rf "$source"
}

case $postgres in
  pg15) copy_pg15 ;;
  pg15-cassert) build_pg15_cassert ;;
  *) die "no PostgreSQL \"$postgres\"" ;;
esac
extensions=$("$PG_CONFIG" --sharedir)/extension

# PGMQ is plain SQL, carried by its Rust crate: the crate is only downloaded, never compiled.
manifest=tests/harness/pgmq/Cargo.toml
if [ "${manifest%.toml}.lock" -nt "$extensions/pgmq.control" ]; then
  say "downloading PGMQ"
  crate=$(cargo metadata --quiet --locked --format-version 1 --manifest-path "$manifest" |
    grep -o '"manifest_path":"[^"]*/pgmq-[0-9][^"]*/Cargo.toml"' | cut -d'"' -f4)
  embedded=$(dirname "$crate")/src/install/embedded
  pgmq_version=$(sed -n "s/^default_version = '\(.*\)'$/\1/p" "$embedded/pgmq.control")
  cp "$embedded/sql/pgmq.sql" "$extensions/pgmq--$pgmq_version.sql"
  cp "$embedded/pgmq.control" "$extensions/"
fi

if ! grep -qF "\"$PG_CONFIG\"" "$PGRX_HOME/config.toml" 2>/dev/null; then
  mkdir -p "$PGRX_HOME"
  cargo pgrx init --pg15 "$PG_CONFIG" --no-run >/dev/null
fi
