# shellcheck shell=bash
# Debian packages for a test alone: unpacked into a folder, not installed. Sourced after env.sh.

# apt-get with package lists and sources of its own in a folder. Sources are of Debian 12's main archive.
private_apt() { # FOLDER ARGUMENT ...
  local folder=$1
  shift
  mkdir -p "$folder/lists/partial"
  printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s\n' \
    'http://deb.debian.org/debian bookworm main' >"$folder/source.list"
  apt-get -qq "${apt_user[@]}" -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder" "$@"
}
apt_user=()
[ "$(id -u)" -ne 0 ] || apt_user=(-o APT::Sandbox::User=root)

# Downloads packages and unpacks them together. Where apt has no package lists, it is given some, for this alone.
unpack_packages() { # FOLDER PACKAGE ...
  local folder=$1 download=$1.download package
  shift
  rm -rf "$folder" "$download"
  mkdir -p "$folder" "$download"
  (cd "$download" && apt-get -qq "${apt_user[@]}" download "$@" 2>/dev/null) || (
    cd "$download" && private_apt "$download" update && private_apt "$download" download "$@"
  ) || return 1
  for package in "$download"/*.deb; do dpkg-deb --extract "$package" "$folder" || return 1; done
  rm -rf "$download"
}

# Unpacks a package with an extension into the private PostgreSQL, unless it is there.
debian_extension() { # EXTENSION PACKAGE
  local folder=$project/.build/debian-$1
  [ ! -f "$("$PG_CONFIG" --sharedir)/extension/$1.control" ] || return 0
  say "downloading $1"
  unpack_packages "$folder" "$2" || die "$1 is missing, and apt-get download $2 failed"
  cp "$folder"/usr/lib/postgresql/15/lib/*.so "$("$PG_CONFIG" --pkglibdir)/"
  cp "$folder"/usr/share/postgresql/15/extension/* "$("$PG_CONFIG" --sharedir)/extension/"
  rm -rf "$folder"
}

# Downloads a source package and unpacks its original source.
download_source() { # FOLDER PACKAGE
  local folder=$1 download=$1.download
  rm -rf "$folder" "$download"
  mkdir -p "$folder" "$download"
  (
    cd "$download"
    local sources=(-o Dir::Etc::SourceList="$download/source.list" -o Dir::Etc::SourceParts=/dev/null)
    private_apt "$download" "${sources[@]}" update
    private_apt "$download" "${sources[@]}" source --download-only "$2"
  )
  tar --extract --strip-components=1 --directory "$folder" --file "$download"/*.orig.tar.*
  rm -rf "$download"
}
