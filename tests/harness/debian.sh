# shellcheck shell=bash
# Debian packages for a test alone: unpacked into a folder, not installed. Sourced after env.sh.

# apt-get with package lists and a cache of its own in a folder, and sources of its own where the folder has a source.list.
private_apt() { # FOLDER ARGUMENT ...
  local folder=$1 options=(-o Dir::State::Lists="$1/lists" -o Dir::Cache="$1")
  shift
  mkdir -p "$folder/lists/partial"
  [ ! -f "$folder/source.list" ] ||
    options+=(-o Dir::Etc::SourceList="$folder/source.list" -o Dir::Etc::SourceParts=/dev/null)
  apt-get -qq "${apt_user[@]}" "${options[@]}" "$@"
}
apt_user=()
[ "$(id -u)" -ne 0 ] || apt_user=(-o APT::Sandbox::User=root)

private_source() { # FOLDER TYPE RELEASE
  printf '%s [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
    "$2" http://deb.debian.org/debian "$3" >"$1/source.list"
}

empty_folders() { rm -rf "$@" && mkdir -p "$@"; }

unpack_downloads() { # DOWNLOADS FOLDER
  local package
  for package in "$1"/*.deb; do dpkg-deb --extract "$package" "$2" || return 1; done
  rm -rf "$1"
}

# Downloads packages and unpacks them together. Where apt has no package lists, it is given some, for this alone.
unpack_packages() { # FOLDER PACKAGE ...
  local folder=$1 download=$1.download
  shift
  empty_folders "$folder" "$download"
  (cd "$download" && apt-get -qq "${apt_user[@]}" download "$@" 2>/dev/null) || (
    cd "$download" && private_apt "$download" update && private_apt "$download" download "$@"
  ) || return 1
  unpack_downloads "$download" "$folder"
}

# The same with packages of a newer Debian, and the libraries that they need: as on a machine where nothing is installed.
unpack_newer_packages() { # FOLDER RELEASE PACKAGE ...
  local folder=$1 download=$1.download release=$2 names
  shift 2
  empty_folders "$folder" "$download"
  private_source "$download" deb "$release"
  touch "$download/status"
  private_apt "$download" update || return 1
  # Only what is a library or asked for: no shell, no perl, no compiler.
  names=$(private_apt "$download" -o Dir::State::status="$download/status" --simulate --no-install-recommends install "$1" |
    sed -nE 's/^Inst ((lib|zlib)[^ ]*) .*/\1/p') || return 1
  # shellcheck disable=SC2086 # many words
  (cd "$download" && private_apt "$download" download $names "$@") || return 1
  unpack_downloads "$download" "$folder"
}

# Unpacks a package with an extension for PostgreSQL 15 into the private PostgreSQL, unless it is there. Of another version
# only what is plain SQL in it works.
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
  empty_folders "$folder" "$download"
  private_source "$download" deb-src bookworm
  (
    cd "$download"
    private_apt "$download" update
    private_apt "$download" source --download-only "$2"
  )
  tar --extract --strip-components=1 --directory "$folder" --file "$download"/*.orig.tar.*
  rm -rf "$download"
}
