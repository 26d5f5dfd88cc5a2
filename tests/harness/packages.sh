#!/usr/bin/env bash
# Checks that Debian's packages and Rust are there. Missing packages are installed when that needs no password;
# otherwise the one command that installs them is printed.
set -euo pipefail

packages=(postgresql-15 postgresql-server-dev-15 build-essential pkg-config clang libclang-dev)
[ "$(id -u)" -ne 0 ] || packages+=(sudo) # cargo-pgrx runs the tests' server through it
command -v node >/dev/null || packages+=(nodejs)
command -v npm >/dev/null || packages+=(npm)
case ${PGFLOW_POSTGRES:-} in pg16 | pg18) command -v pip3 >/dev/null || packages+=(python3-pip) ;; esac

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

command -v dpkg-query >/dev/null || { echo "Debian 12 or a relative is needed: dpkg-query is missing" >&2; exit 1; }
missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -eq 0 ]; then
    as_root=()
  elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    echo "sudo apt-get install -y ${missing[*]}"
    exit 1
  fi
  echo "-- installing ${missing[*]}"
  export PATH=$PATH:/usr/sbin:/sbin # dpkg insists, and root lacks them after a plain su
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

"$(dirname "${BASH_SOURCE[0]}")/rust.sh"

version=$(node --version)
if [ "$(printf '%s\n' v18 "$version" | sort -V | head -n 1)" != v18 ]; then
  echo "node is $version, 18 or newer is needed: https://nodejs.org" >&2
  exit 1
fi
