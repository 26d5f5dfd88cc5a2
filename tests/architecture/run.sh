#!/usr/bin/env bash
# The rules of the source tree that no compiler checks: who may name what, who may import whom. Needs no database.
set -euo pipefail
cd "$(dirname "$0")/../.."

passed=0 failed=0

# A rule holds when nothing breaks it: $2 lists the lines that do.
check() {
  if [ -z "$2" ]; then
    passed=$((passed + 1))
    echo "ok      $1"
  else
    failed=$((failed + 1))
    echo "FAILED  $1"
    while read -r line; do echo "          $line"; done <<<"$2"
  fi
}

# The code of every source file as `file:line: text`, without comments and without test modules.
code() {
  # shellcheck disable=SC2016 # awk's own $
  find src -name '*.rs' -print0 | sort -z | xargs -0 awk '
    FNR == 1 { in_test = 0 }
    /^#\[cfg\((any\()?test/ { in_test = 1 }
    in_test { if (/^}/ || /^(pub )?mod .*;$/) in_test = 0; next }
    { sub(/(^|[ \t])\/\/.*$/, "") }
    NF { print FILENAME ":" FNR ": " $0 }'
}

# Lines of code outside one file that match a pattern.
outside() {
  grep -v "^$1:" <<<"$code" | grep -E "^[^ ]+ .*$2" || true
}

# `file:line: text` of each import of a module that is above the importing one.
upward() {
  awk '
    BEGIN {
      split("api=4 engine=3 rules=2 store=2 queue=2 events=2 cron=2 http=2 db=1 trust=1 error=1 model=1 datum=1", pairs, " ")
      for (i in pairs) { split(pairs[i], pair, "="); rank[pair[1]] = pair[2] }
    }
    {
      split($1, path, /[\/.:]/)
      own = path[2]
      rest = $0
      while (match(rest, /crate::[a-z_{*]+/)) {
        used = substr(rest, RSTART + 7, RLENGTH - 7)
        rest = substr(rest, RSTART + RLENGTH)
        if (own != "lib" && !(rank[used] && rank[own] && rank[used] <= rank[own])) print
      }
    }' <<<"$code"
}

# Names of functions that the SQL files create but do not comment, and the other way round.
uncommented() {
  functions() { grep -ohiE "^$1 [a-z_.]+" sql/functions_*.sql | awk '{ print $NF }' | sort; }
  diff <(functions 'create( or replace)? function') <(functions 'comment on function') || true
}

# Update scripts that are not what their sources make.
stale() {
  local source step
  for source in sql/upgrade/*.sql; do
    step=$(basename "$source" .sql)
    cmp -s <(tests/harness/upgrade_script.sh "$step") "sql/pgflow--$step.sql" ||
      echo "sql/pgflow--$step.sql differs from its sources: make upgrade-script"
  done
}

# Tests that the table in tests/README.md names and that are not there.
unknown_tests() {
  grep -oE '\b[a-z0-9]+(_[a-z0-9]+){4,}\b' tests/README.md | sort -u | while read -r name; do
    grep -rqE "fn $name\b" tests/behaviour || echo "$name"
  done
}

# Statements of docs/security.md without a test, and tests named there that are not in the file named.
unproved() {
  local file name
  awk '/^- /{ if (entry != "") print entry; entry = "" } /^- / || (entry != "" && /^  /) { entry = entry $0; next }
       entry != "" { print entry; entry = "" }' docs/security.md | grep -vE '`[a-z_]+: [^`]+`' || true
  grep -oE '`[a-z_]+: [^`]+`' docs/security.md | tr -d '`' | while IFS= read -r name; do
    file=${name%%: *} name=${name#*: }
    grep -qsE "fn $name\b" "tests/behaviour/$file.rs" ||
      grep -qsF -e "test('$name'" -e "test(\"$name\"" "tests/security/$file.test.mjs" "tests/fuzz/$file.test.mjs" ||
      echo "$file: $name"
  done
}

code=$(code)
named=$(grep -cE '^create( or replace)? function' <(cat sql/functions_*.sql) || true)

check 'the check sees the source: code and SQL functions are found' \
  "$([ -n "$code" ] && [ "$named" -gt 0 ] || echo "code: ${#code} characters, functions: $named")"
check 'only src/queue.rs names pgmq.' "$(outside src/queue.rs 'pgmq\.')"
check 'of PGMQ only public functions are called, and one UPDATE sets visibility' \
  "$(grep '^src/queue.rs:' <<<"$code" | grep 'pgmq\.' |
    grep -vE "pgmq\.(create|list_queues|metrics|drop_queue|send|send_batch|set_vt|archive|format_table_name)\(|'update pgmq\.%I q set vt = " || true)"
check 'only src/events.rs names realtime.' "$(outside src/events.rs 'realtime\.')"
check 'only src/cron.rs names cron.' "$(outside src/cron.rs '\bcron\.')"
check 'only src/http.rs names net. and vault.' "$(outside src/http.rs '\b(net|vault)\.')"
check 'only src/db.rs names SPI' "$(outside src/db.rs '(SPI_|Spi::|pgrx::spi)')"
check 'imports never go upward: api, engine, {rules store queue events cron http}, {db trust error model datum}' "$(upward)"
check 'modules reach each other through crate::, not super::super' "$(grep 'super::super' <<<"$code" || true)"
check 'rules decide without a database' "$(grep -E '^src/rules/.*crate::(db|store|queue|events|cron|http|datum)' <<<"$code" || true)"
check 'no unwrap, expect or panic outside tests' \
  "$(grep -E '\.(unwrap|expect)\(|\b(panic|todo|unimplemented|unreachable)!' <<<"$code" || true)"
check 'every function in sql/functions_*.sql has a comment' "$(uncommented)"
check 'update scripts are what their sources make' "$(stale)"
check 'released scripts stay as they were released' \
  "$(cd sql && sha256sum --check --quiet --strict released.sha256 2>&1 || true)"
check 'every test that tests/README.md names exists' "$(unknown_tests)"
check 'every statement of docs/security.md names a test, and each test that it names exists' "$(unproved)"
check 'every crate comes from crates.io, pinned, under a licence that deny.toml allows' \
  "$(node tests/architecture/dependencies.mjs 2>&1 || true)"
check 'every source file starts with a //! comment' \
  "$(find src -name '*.rs' | sort | while read -r file; do head -1 "$file" | grep -q '^//! ' || echo "$file"; done)"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
