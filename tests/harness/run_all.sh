#!/usr/bin/env bash
# Runs every test layer, or those that are named, and ends with one line that sums them up. A layer is a script that
# ends with the line `N passed, N failed`; one that breaks off, or that ran nothing, counts as a failure of its own.
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$project"

passed=0 failed=0
only=" $* "

layer() { # NAME COMMAND WHAT
  [[ $only = "  " || $only = *" $1 "* ]] || return 0
  local status=0 ok not_ok sum='^[0-9]+ passed, [0-9]+ failed$' log=$project/.build/test-$postgres-$pgmq-$1.log
  say "$1: $3"
  SECONDS=0
  $2 2>&1 | tee "$log" | sed -uE "s/$sum/$1: &/" || status=$?
  read -r ok not_ok < <(sum_of "$log")
  passed=$((passed + ok))
  failed=$((failed + not_ok))
  if [ $((ok + not_ok)) -eq 0 ]; then
    failed=$((failed + 1))
    say "$1: FAILED, it ran no test"
  elif [ "$status" -ne 0 ] && [ "$not_ok" -eq 0 ]; then
    failed=$((failed + 1))
    say "$1: FAILED, it ended with status $status"
  fi
  say "$1: $SECONDS seconds"
}

layer architecture tests/architecture/run.sh "rules of the source tree"
layer unit tests/harness/unit.sh "Rust tests and the random model; compiling takes a few minutes the first time"
if tests/harness/install.sh; then
  layer isolation tests/isolation/run.sh "interleavings of concurrent sessions"
  layer clients tests/clients/run.sh "the JavaScript client"
  layer docs tests/docs/run.sh "the documentation: SQL and its output, links, names, workers"
  layer security tests/security/run.sh "roles, hijacks, row security and memory"
  layer fuzz tests/fuzz/run.sh "every function with hostile arguments"
  layer dump tests/dump/run.sh "pg_dump and restore"
  case $feature in pg17 | pg18)
    layer major tests/dump/major.sh "to this PostgreSQL from the version two before, by pg_upgrade and by a dump" ;;
  esac
  layer upgrade tests/upgrade/run.sh "adoption of 0.16.0, the upgrade from it, and upgrades that must fail"
  layer prune tests/prune/run.sh "the optional pruning function"
  layer demo tests/demo/run.sh "the demo, and the statements that it proposes"
  layer reliability "tests/reliability/suite.sh short" "load, crashes, failover, PgBouncer; two and a half minutes"
  layer bench benches/short.sh "one short round of the bench"
  [ "$postgres" != pg15 ] ||
    layer package "tests/package/run.sh refusals archive messages debian" "installers, and the Debian packages in a clean Debian"
  layer versions "tests/harness/matrix.sh short" "a short suite on PostgreSQL 18, for which all is compiled anew"
  layer cron tests/cron/run.sh "what is scheduled with the real pg_cron, and that it runs"
else
  failed=$((failed + 1))
  say "FAILED: without the extension the other layers cannot run"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
