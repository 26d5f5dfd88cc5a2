# shellcheck shell=bash
# The Debian packages, in a clean Debian that apt makes in a folder. Nothing is mounted there, and its server listens on a
# socket in it only. Sourced by run.sh.

debian=$folder/debian
case $major in 15) release=bookworm ;; 17) release=trixie ;; *) release= ;; esac

in_debian() { chroot "$debian" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

make_debian() {
  local tool=$folder/mmdebstrap keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  unpack_packages "$tool" mmdebstrap
  perl "$tool/usr/bin/mmdebstrap" --quiet --mode=root --variant=apt --skip=chroot/mount \
    --hook-dir="$tool/usr/share/mmdebstrap/hooks/merged-usr" "$release" "$debian" \
    "deb [signed-by=$keyring] http://deb.debian.org/debian $release main" >"$folder/mmdebstrap.log" 2>&1 ||
    { tail -n 20 "$folder/mmdebstrap.log"; return 1; }
}

# Ends whatever runs in there.
leave_debian() {
  local process data=/var/lib/postgresql/$major/main
  [ -d "$debian" ] || return 0
  [ ! -f "$debian$data/postmaster.pid" ] ||
    in_debian runuser -u postgres -- "/usr/lib/postgresql/$major/bin/pg_ctl" stop --mode immediate --silent --pgdata "$data" || true
  for process in /proc/[0-9]*; do
    [ ! "$process/root" -ef "$debian" ] || kill -KILL "${process#/proc/}" || true
  done
}

apt() { in_debian apt-get -qq "$@" >"$folder/apt.log" 2>&1 || { tail -n 20 "$folder/apt.log"; return 1; }; }
flow_in_debian() {
  in_debian runuser -u postgres -- psql --no-psqlrc --set ON_ERROR_STOP=1 --file /packages/flow.sql 2>&1 || true
}
files() { find "$debian" -name '*pgflow*' -not -path "$debian/packages/*" -printf '/%P\n' | sort; }

test_debian() {
  local packages=("postgresql-$major-pgflow_$version-1_$(dpkg --print-architecture).deb" "postgresql-$major-pgmq_$pgmq-1_all.deb")
  if [ -z "$release" ] || [ "$(id -u)" -ne 0 ]; then
    say "not run: the Debian packages, which there are for PostgreSQL 15 and 17, and which take root"
    return
  fi
  say "making a clean Debian $release"
  make_debian
  mkdir "$debian/packages"
  cp -r "${packages[@]/#/$dist/}" "$folder/$archive" tests/package/flow.sql "$debian/packages/"
  check 'archive, on a machine without PostgreSQL: refused' 'no pg_config on PATH or in /usr/lib/postgresql
  name the pg_config of a server, such as /usr/lib/postgresql/17/bin/pg_config' \
    "$(in_debian "/packages/$archive/install.sh" 2>&1)"
  say "installing PostgreSQL $major and the packages there"
  apt update
  apt install --yes --no-install-recommends "${packages[@]/#//packages/}"
  check 'packages: installed' "postgresql-$major-pgflow $version-1 installed
postgresql-$major-pgmq $pgmq-1 installed" \
    "$(in_debian dpkg-query --show --showformat '${Package} ${Version} ${db:Status-Status}\n' "postgresql-$major-pg*")"
  check 'packages: owner and modes' "root root 644" \
    "$(files | grep -v '/doc/' | sed "s|^|$debian|" | xargs stat --format '%U %G %a' | sort -u)"
  check 'packages: the files are those that were packed' '' "$(in_debian dpkg --verify "postgresql-$major-pgflow" "postgresql-$major-pgmq" 2>&1)"
  check 'packages: documentation' 'THIRD-PARTY.gz changelog.Debian.gz copyright' "$(cd "$debian/usr/share/doc/postgresql-$major-pgflow" && echo *)"

  in_debian pg_conftool "$major" main set listen_addresses ''
  in_debian pg_ctlcluster "$major" main start
  check 'packages: a flow runs to its end' "$ran" "$(flow_in_debian)"

  apt purge --yes "postgresql-$major-pgflow"
  check 'packages: nothing of pgflow is left after it was purged' '' "$(files)"
  check 'archive, by who may not write there, without sudo: refused' "-- taking /usr/bin/pg_config
/usr/share/postgresql/$major/extension is not yours to write, and there is no sudo
  do this as root" "$(in_debian runuser -u postgres -- "/packages/$archive/install.sh" 2>&1)"
  check 'archive, without an argument: it takes the pg_config on PATH' "-- taking /usr/bin/pg_config
-- PGMQ is there: $pgmq
-- installed into $(in_debian pg_config --version). In a database, as a superuser: create extension pgflow cascade;" \
    "$(in_debian "/packages/$archive/install.sh" 2>&1)"
  check 'archive: a flow runs to its end there, too' "$ran" "$(flow_in_debian)"
}
