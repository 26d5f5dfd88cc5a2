#!/usr/bin/env bash
# Runs test layers on pairs of PostgreSQL and PGMQ, shows how many tests passed on each, and ends with one line that
# sums them up. Left out are the layers that look at sources alone, and pg_cron's, for which Debian has one PostgreSQL.
#
#   matrix.sh [PAIR ...]     all pairs, or those that are named, such as 17/1.11.0
#   matrix.sh short          as part of make test: some layers on the newest PostgreSQL
harness=$(dirname "${BASH_SOURCE[0]}")
. "$harness/env.sh"

layers=(unit isolation clients docs security fuzz dump major upgrade prune demo reliability)
pairs=("$@")
if [ "${1:-}" = short ]; then
  layers=(unit isolation clients upgrade)
  pairs=(18/1.13.0)
elif [ $# -eq 0 ]; then
  # What Debian 12's PostgreSQL keeps in the end is the PGMQ that everything else expects.
  pairs=({15,16,17,18}/1.11.0 {15,16,17,18}/1.13.0)
fi

table=$project/.build/matrix
rm -rf "$table"
total_passed=0 total_failed=0
for pair in "${pairs[@]}"; do
  [[ $pair =~ ^1[0-9]/[0-9.]+$ ]] || die "no pair \"$pair\": 17/1.11.0, for one, is PostgreSQL 17 with PGMQ 1.11.0"
  export PGFLOW_POSTGRES=pg${pair%/*} PGFLOW_PGMQ=${pair#*/}
  say "PostgreSQL and PGMQ $pair"
  log=$project/.build/matrix-${pair/\//-}.log passed=0 failed=0 version=${pair%/*}
  SECONDS=0
  if "$harness/setup.sh"; then
    version=$("$base/$PGFLOW_POSTGRES/bin/postgres" --version | cut -d' ' -f3)
    "$harness/run_all.sh" "${layers[@]}" 2>&1 | tee "$log" | grep -avE '^[0-9]+ passed, ' || true
    read -r passed failed < <(sum_of "$log")
  fi
  [ $((passed + failed)) -gt 0 ] || failed=1 # it ran nothing
  total_passed=$((total_passed + passed))
  total_failed=$((total_failed + failed))
  printf '%-10s  %-7s  %6d  %6d  %7d\n' "$version" "$PGFLOW_PGMQ" "$passed" "$failed" "$SECONDS" >>"$table"
done

echo
printf '%-10s  %-7s  %6s  %6s  %7s\n' PostgreSQL PGMQ passed failed seconds
cat "$table"
echo "$total_passed passed, $total_failed failed"
[ "$total_failed" -eq 0 ]
