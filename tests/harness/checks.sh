# shellcheck shell=bash
# Checks for test scripts: sourced after env.sh by a script that ends with `summary`.

passed=0 failed=0

# A check holds when what was found is what was expected.
check() { # NAME EXPECTED FOUND
  if [ "$3" = "$2" ]; then
    passed=$((passed + 1))
    echo "ok      $1"
  else
    failed=$((failed + 1))
    echo "FAILED  $1"
    diff <(echo "$2") <(echo "$3") | head -n 40 || true
  fi
}

# The line that run_all.sh counts by.
summary() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
