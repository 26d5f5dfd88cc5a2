# shellcheck shell=bash
# Debian packages for a test alone: unpacked into a folder, not installed. Sourced after env.sh.

# Downloads packages and unpacks them together. Where apt has no package lists, it is given some, for this alone.
unpack_packages() { # FOLDER PACKAGE ...
  local folder=$1 download=$1.download apt=(apt-get -qq)
  shift
  [ "$(id -u)" -ne 0 ] || apt+=(-o APT::Sandbox::User=root)
  rm -rf "$folder" "$download"
  mkdir -p "$folder" "$download/lists/partial"
  (cd "$download" && "${apt[@]}" download "$@" 2>/dev/null) || (
    apt+=(-o Dir::State::Lists="$download/lists" -o Dir::Cache="$download")
    cd "$download" && "${apt[@]}" update && "${apt[@]}" download "$@"
  ) || return 1
  local package
  for package in "$download"/*.deb; do dpkg-deb --extract "$package" "$folder" || return 1; done
  rm -rf "$download"
}
