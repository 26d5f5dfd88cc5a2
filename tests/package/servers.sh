# shellcheck shell=bash
# The release archive, and `make install` from the PGXN distribution, on copies of the private PostgreSQL. Sourced by run.sh.

copy=$base/$postgres-package

# A copy without pgflow and PGMQ.
copy_server() {
  rm -rf "$copy"
  cp -a "$base/$postgres" "$copy"
  pg_config=$copy/bin/pg_config
  extensions=$("$pg_config" --sharedir)/extension
  rm -f "$extensions"/pg{flow,mq}{.control,--*} "$("$pg_config" --pkglibdir)/pgflow.so"
}

# A server of the copy.
server() { PGFLOW_POSTGRES=$postgres-package tests/harness/server.sh "$1" package-db "${@:2}"; }

run_flow() {
  server start fsync=off
  server psql --no-psqlrc --set ON_ERROR_STOP=1 --file tests/package/flow.sql 2>&1 || true
  server drop
}

# A statement fails with a message that docs/installation.md explains.
explained() { # MESSAGE STATEMENT [DATABASE]
  local found
  found=$({ server psql --no-psqlrc --dbname "${3:-postgres}" --command "$2" 2>&1 >/dev/null || true; } | sed -n 's/^ERROR:  //p')
  check "troubleshooting: $1" "$1" "$found"
  check "troubleshooting: $1: the page has it" 1 "$(grep -cF "\`$1\`" docs/installation.md || true)"
}

test_messages() {
  local library
  copy_server
  server start fsync=off
  explained 'extension "pgflow" is not available' 'create extension pgflow'
  cp "$folder/$archive/extension"/* "$extensions/"
  explained 'required extension "pgmq" is not installed' 'create extension pgflow'
  explained 'extension "pgmq" is not available' 'create extension pgflow cascade'
  tests/harness/package/from_source.sh install-pgmq "$pg_config"
  # shellcheck disable=SC2016 # PostgreSQL's own $
  if [ "$major" -lt 18 ]; then library='$libdir/pgflow'; else library=pgflow; fi
  explained "could not access file \"$library\": No such file or directory" 'create extension pgflow cascade'
  "$folder/$archive/install.sh" "$pg_config"
  server psql --quiet --command 'create role visitor' --command 'grant create on database postgres to visitor' \
    --command "create database latin1 encoding 'LATIN1' locale 'C' template template0"
  explained 'permission denied to create extension "pgflow"' 'set role visitor; create extension pgflow cascade'
  explained 'pgflow needs a database with encoding "UTF8"' 'create extension pgflow cascade' latin1
  server drop
}

test_archive() {
  local library
  check 'made again, everything is the same to the byte' "$(cd "$dist" && sha256sum -- *)" \
    "$(sleep 1.1 && umask 077 && TZ=Asia/Tokyo tests/harness/package/release.sh >/dev/null 2>&1 && cd "$dist" && sha256sum -- *)"
  check 'archive: its files' "INSTALL LICENSE THIRD-PARTY extension install.sh lib postgresql" \
    "$(cd "$folder/$archive" && echo *)"
  check 'archive: all scripts and the control file' \
    "$({ (cd sql && ls -d pgflow--*.sql) && echo "pgflow--$version.sql" && echo pgflow.control; } | sort -u)" \
    "$(ls "$folder/$archive/extension" | sort)"
  copy_server
  "$folder/$archive/install.sh" "$pg_config" >/dev/null 2>&1 || true
  check 'archive: without PGMQ nothing is copied' '' "$(find "$copy" -name '*pgflow*')"
  tests/harness/package/from_source.sh install-pgmq "$pg_config"
  library=$("$pg_config" --pkglibdir)/pgflow.so
  echo 'an old library' >"$library"
  exec 9<"$library"
  "$folder/$archive/install.sh" "$pg_config"
  check 'archive: the library replaces an old one, which who has it open keeps' 'an old library' "$(cat <&9)"
  exec 9<&-
  check 'archive: a flow runs to its end' "$ran" "$(run_flow)"
}

# PGXN clients unpack the zip and call make in it; there is no git.
test_pgxn() {
  local pgxn=$folder/pgflow-$version
  python3 -m zipfile --extract "$dist/pgflow-$version.zip" "$folder"
  find "$pgxn" \( -name '*.sh' -o -name run \) -exec chmod +x {} + # which Python's unzip does not
  pgxn_meta_is_valid "$pgxn"
  copy_server
  mkdir "$pgxn/.build"
  ln -s "$tools" "$pgxn/.build/tools"
  make --directory "$pgxn" install-pgmq PG_CONFIG="$pg_config"
  make --directory "$pgxn" all PG_CONFIG="$pg_config"
  make --directory "$pgxn" install PG_CONFIG="$pg_config"
  check 'make install: scripts and control file are those of the archive' '' \
    "$(diff -r "$extensions" "$folder/$archive/extension" | grep pgflow || true)"
  check 'make install: a flow runs to its end' "$ran" "$(run_flow)"
  check 'make install, again: nothing is compiled, not even with a cargo that fails' \
    "-- PGMQ is there: $pgmq
-- installed into $("$pg_config" --version). In a database, as a superuser: create extension pgflow cascade;" \
    "$(PATH=$fake/bin:$PATH; fake_server none; program cargo 'exit 127'
      make --silent --no-print-directory --directory "$pgxn" install PG_CONFIG="$pg_config" 2>&1)"
}

pgxn_meta_is_valid() { # FOLDER
  local pgxn_meta=0.7.0 majors
  if [ ! -x "$tools/bin/pgxn_meta" ]; then
    say "compiling pgxn_meta $pgxn_meta"
    cargo install pgxn_meta --version "$pgxn_meta" --locked --quiet --root "$tools"
  fi
  check 'META.json: pgxn_meta finds it valid' "$1/META.json is OK" "$("$tools/bin/pgxn_meta" "$1/META.json" 2>&1)"
  check 'META.json: the files that it names are there' 'README.md pgflow.control' \
    "$(cd "$1" && sed -n 's/.*"\(doc\)\?file": "\(.*\)".*/\2/p' META.json | sort | xargs ls -d 2>&1 | xargs)"
  majors=$(sed -n 's/^pg\([0-9]*\) = .*/\1/p' Cargo.toml | sort -n)
  check 'META.json: each PostgreSQL that can be built for is in its range, and no other' \
    "requires PostgreSQL >= ${majors%%$'\n'*}.0.0, < $((${majors##*$'\n'} + 1)).0.0" \
    "$(sed -n 's/.*"\(requires\)": { "PostgreSQL": "\([^"]*\)".*/\1 PostgreSQL \2/p' "$1/META.json")"
}
