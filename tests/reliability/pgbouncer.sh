# shellcheck shell=bash
# Debian's PgBouncer in transaction mode, in front of the server POOLED: sourced by run.sh and by the bench, after
# debian.sh. It listens on a socket in its own folder and shares so many sessions of a database among all clients.

pgbouncer_root=$project/.build/debian-pgbouncer

start_pgbouncer() { # FOLDER POOLED SESSIONS
  [ -x "$pgbouncer_root/usr/sbin/pgbouncer" ] || {
    say "downloading PgBouncer"
    unpack_packages "$pgbouncer_root" pgbouncer libevent-2.1-7 libc-ares2 || die "apt-get download pgbouncer failed"
  }
  private_folder "$1"
  as_server tee "$1/pgbouncer.ini" >/dev/null <<INI
[databases]
* = host=$2 user=postgres
[pgbouncer]
pool_mode = transaction
default_pool_size = $3
max_client_conn = 1000
auth_type = any
listen_addr =
unix_socket_dir = $1
logfile = $1/log
pidfile = $1/pid
INI
  as_server env LD_LIBRARY_PATH="$(echo "$pgbouncer_root"/usr/lib/*-linux-gnu)" \
    "$pgbouncer_root/usr/sbin/pgbouncer" --daemon --quiet "$1/pgbouncer.ini"
}

stop_pgbouncer() { # FOLDER
  local pid
  if pid=$(cat "$1/pid" 2>/dev/null) && kill "$pid" 2>/dev/null; then
    while [ -e "/proc/$pid" ]; do sleep 0.1; done
  fi
  rm -rf "$1"
}
