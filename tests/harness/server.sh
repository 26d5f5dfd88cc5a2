#!/usr/bin/env bash
# A private PostgreSQL server in the folder NAME below the base. It listens on a socket only, inside a folder that
# nobody but its owner (and root) can enter: whoever gets there is let in, as any role.
#
#   server.sh start NAME [SETTING=VALUE ...]   starts it, creating it first where needed; no-op when it runs
#   server.sh create NAME [OPTION ...]         makes it with options of initdb and does not start it
#   server.sh standby NAME PRIMARY             makes NAME a streaming standby of the running server PRIMARY; start it then
#   server.sh stop NAME                        stops it, keeping its data
#   server.sh drop NAME                        stops it and deletes its data
#   server.sh stop-all                         stops every server of this project, also those of pgrx
#   server.sh url NAME [DATABASE]              prints its connection string
#   server.sh psql NAME [ARGUMENT ...]         opens psql
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

usage() { sed -n 's/^#   //p' "${BASH_SOURCE[0]}" >&2; exit 2; }

command=${1:-}
name=${2:-}
[[ $command = stop-all || $name =~ ^[a-z0-9_-]{1,16}$ ]] || usage
case $name in tools | pg1* | pgrx* | target-* | debian-* | unit) usage ;; esac # other folders of the base
folder=$base/$name
data=$folder/data

# All processes of a server work in its data folder. Pid files alone tell nothing: a number may belong to another
# process by now, or to a dead one that nobody has waited for.
is_running() {
  local pid
  pid=$(head -n 1 "$data/postmaster.pid" 2>/dev/null) && [ "/proc/$pid/cwd" -ef "$data" ]
}

has_processes() {
  local directory
  for directory in /proc/[0-9]*/cwd; do
    [ ! "$directory" -ef "$data" ] || return 0
  done
  return 1
}

create() {
  private_folder "$folder"
  as_server initdb --pgdata "$data" --username postgres --auth-local trust --auth-host scram-sha-256 \
    --encoding UTF8 --locale C.UTF-8 --no-instructions "$@" >/dev/null
  as_server tee -a "$data/postgresql.conf" >/dev/null <<CONF
listen_addresses = ''
unix_socket_directories = '$folder'
CONF
}

start() {
  ! is_running || return 0
  [ -d "$data" ] || create
  local attempt options=() setting
  for attempt in {1..100}; do # a killed server's sessions end by themselves, a little later
    has_processes || break
    [ "$attempt" -lt 100 ] || die "processes of a killed server are still in $data"
    sleep 0.1
  done
  rm -f "$data/postmaster.pid" "$folder"/.s.PGSQL.*
  for setting in "$@"; do options+=(-o "-c $setting"); done
  # The server must not keep a descriptor of its starter's, such as a lock, open.
  as_server pg_ctl start --wait --timeout 60 --silent --pgdata "$data" --log "$folder/log" "${options[@]}" \
    </dev/null >/dev/null 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- ||
    { tail -n 20 "$folder/log" >&2; die "the server in $folder did not start"; }
}

standby() {
  drop
  private_folder "$folder"
  as_server pg_basebackup --host "$base/$1" --username postgres --pgdata "$data" --checkpoint fast --write-recovery-conf
  as_server tee -a "$data/postgresql.conf" >/dev/null <<<"unix_socket_directories = '$folder'"
}

stop() {
  is_running || return 0
  as_server pg_ctl stop --mode fast --timeout 30 --silent --pgdata "$data" ||
    as_server pg_ctl stop --mode immediate --timeout 30 --silent --pgdata "$data"
}

drop() {
  stop
  rm -rf "$folder"
}

case $command in
  start) start "${@:3}" ;;
  create) create "${@:3}" ;;
  standby) standby "$3" ;;
  stop) stop ;;
  drop) drop ;;
  stop-all)
    for data in "$base"/*/*/postmaster.pid; do
      data=${data%/postmaster.pid}
      stop
    done
    ;;
  url) printf 'postgresql://postgres@/%s?host=%s\n' "${3:-postgres}" "$folder" ;;
  psql) exec psql --host "$folder" --username postgres --dbname postgres "${@:3}" ;;
  *) usage ;;
esac
