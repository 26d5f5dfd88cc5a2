#!/usr/bin/env bash
# Runs the parts one after the other and ends with one line that sums them up.
#
#   suite.sh short              as part of make test, two and a half minutes
#   suite.sh long [PART]        figures for docs/reliability.md, 25 minutes
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"

declare -A short=([races]=15 [pairs]=150 [crashes]=24 [failover]=15 [pgbouncer]=8 [workers]=6 [queues]=)
declare -A long=([races]=60 [pairs]=1500 [crashes]=72 [failover]=60 [pgbouncer]=60 [workers]=60 [queues]=)
declare -n amount=$1

passed=0 failed=0
for part in ${2:-races pairs crashes failover pgbouncer workers queues}; do
  log=$project/.build/reliability-$part.log
  say "$part ${amount[$part]}"
  timeout 1800 "$project/tests/reliability/run.sh" "$part" ${amount[$part]:+"${amount[$part]}"} 2>&1 | tee "$log" | grep -vE '^[0-9]+ passed, ' || true
  read -r ok not_ok < <(sum_of "$log")
  [ $((ok + not_ok)) -gt 0 ] || not_ok=1 # it broke off
  passed=$((passed + ok))
  failed=$((failed + not_ok))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
