#!/usr/bin/env bash
# Makes what is released into .build/dist, for the PostgreSQL that PGFLOW_POSTGRES names (docs/adr/0013-packages.md): an
# archive with an installer, Debian packages where a Debian has that PostgreSQL, and the source as a PGXN distribution.
# The same compiled files and the same commit give the same bytes.
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
cd "$project"

git rev-parse --quiet --verify HEAD >/dev/null || die "packages are made from a git clone: their times are the commit's"
templates=tests/harness/package
dist=$project/.build/dist
work=$project/.build/package-$postgres
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
major=${feature#pg}
maintainer='pgflow native <pgflow@example.org>'

# Templates name what is known here as @NAME@.
fill() { # TEMPLATE NAME=VALUE ...
  local text name
  text=$(<"$templates/$1")
  for name in "${@:2}"; do text=${text//"@${name%%=*}@"/"${name#*=}"}; done
  printf '%s\n' "$text"
}

# With times, owners and order that are the same everywhere.
pack() { tar --mode=u=rwX,go=rX --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --create "$@" | gzip -9n; }

archive() {
  local machine name glibc
  machine=$(uname -m)
  name=pgflow-$version-$postgres-linux-$machine
  glibc=$(objdump -T "$work/files/lib/pgflow.so" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
  mkdir "$work/$name"
  cp -r "$work/files"/* LICENSE "$work/THIRD-PARTY" "$work/$name/"
  fill INSTALL VERSION="$version" MAJOR="$major" ARCH="$machine" GLIBC="${glibc#GLIBC_}" >"$work/$name/INSTALL"
  pack --directory "$work" "$name" >"$dist/$name.tar.gz"
}

# Finishes a package whose files are in a folder: documentation, control file, checksums.
debian_package() { # FOLDER VERSION CHANGE NAME=VALUE ...
  local folder=$1 source=${1##*/} version=$2 change=$3 package=postgresql-$major-${1##*/} doc
  doc=$folder/usr/share/doc/$package
  mkdir -p "$doc" "$folder/DEBIAN"
  cat >"$doc/changelog" <<TEXT
$source ($version-1) unstable; urgency=medium

  * $change

 -- $maintainer  $(date --utc --date="@$SOURCE_DATE_EPOCH" --rfc-email)
TEXT
  gzip -9n <"$doc/changelog" >"$doc/changelog.Debian.gz"
  rm "$doc/changelog"
  fill "debian/$source.copyright" "${@:4}" >"$doc/copyright"
  fill "debian/$source.control" MAJOR="$major" VERSION="$version" MAINTAINER="$maintainer" \
    SIZE="$(du --summarize --apparent-size --block-size=1024 "$folder/usr" | cut -f1)" "${@:4}" >"$folder/DEBIAN/control"
  (cd "$folder" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$folder/DEBIAN/md5sums"
  chmod -R u=rwX,go=rX "$folder"
  dpkg-deb --root-owner-group --build "$folder" "$dist" >/dev/null
}

pgflow_package() {
  local folder=$work/pgflow libraries
  mkdir -p "$folder/usr/lib/postgresql/$major/lib" "$folder/usr/share/postgresql/$major"
  cp -r "$work/files/extension" "$folder/usr/share/postgresql/$major/"
  install -m 644 "$work/files/lib/pgflow.so" "$folder/usr/lib/postgresql/$major/lib/"
  mkdir -p "$folder/usr/share/doc/postgresql-$major-pgflow"
  gzip -9n <"$work/THIRD-PARTY" >"$folder/usr/share/doc/postgresql-$major-pgflow/THIRD-PARTY.gz"
  mkdir "$work/debian" # dpkg-shlibdeps looks for a source package's control file
  printf 'Source: pgflow\n\nPackage: pgflow\nArchitecture: any\n' >"$work/debian/control"
  libraries=$(cd "$work" && dpkg-shlibdeps -O files/lib/pgflow.so 2>/dev/null) # warns: it is not installed
  debian_package "$folder" "$version" "Release $version." \
    ARCH="$(dpkg --print-architecture)" LIBRARIES="${libraries#shlibs:Depends=}"
}

pgmq_package() {
  local folder=$work/pgmq share=$work/pgmq/usr/share/postgresql/$major license
  tests/harness/pgmq_files.sh "$pgmq" "$share"
  license=$(fold --spaces --width=78 "$share/LICENSE" | sed 's/ *$//; s/^$/./; s/^/ /')
  rm "$share/LICENSE"
  debian_package "$folder" "$pgmq" "The SQL that the Rust crate pgmq carries." LICENSE="$license"
}

# The source of the commit, with META.json at its root.
pgxn_distribution() {
  fill META.json VERSION="$version" >"$work/META.json"
  TZ=UTC git archive --format=zip --prefix="pgflow-$version/" --add-file="$work/META.json" --output "$dist/pgflow-$version.zip" HEAD
}

rm -rf "$work"
mkdir -p "$work" "$dist"
say "building the extension in release mode, a few minutes the first time"
"$templates/build.sh" "$PG_CONFIG" "$work/files"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH # not before: crates would be compiled anew
strip --strip-unneeded --remove-section=.comment "$work/files/lib/pgflow.so"
"$templates/third_party.sh" "$feature" >"$work/THIRD-PARTY"
archive
case $postgres in # Debian 12's and Debian 13's
  pg15 | pg17)
    pgflow_package
    pgmq_package
    ;;
esac
pgxn_distribution
rm -rf "$work"
[ -z "$(git status --porcelain)" ] || say "pgflow-$version.zip has the last commit, without what was changed since"
(cd "$dist" && sha256sum -- *)
