#!/usr/bin/env bash
# Breaks the engine on purpose, to see that the tests would notice. Each patch is one small mistake, with the tests
# that must fail because of it:
#
#   What is wrong, in a sentence.
#   Test: unit WORD          tests with that word in their names (make test-unit T=WORD)
#   Test: isolation SPEC     a spec of tests/isolation, for what only concurrent sessions show
#   Test: reliability PART AMOUNT     a part of tests/reliability, for what only shows under load
#
# A patch is applied to a copy of the tree in .build/mutants, built and tested there, and taken back. One that no test
# notices, that does not apply or does not build is a failure. Names of patches as arguments run only those.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
cd "$project"

tree=$project/.build/mutants
log=$project/.build/mutants.log
export CARGO_TARGET_DIR=$project/target # dependencies are compiled already
export STEP_TIMEOUT=3 # a mistake in locking can make every permutation of a spec wait

# The copy uses this project's tools and private PostgreSQL: its .build only says where they are.
copy_tree() {
  rm -rf "$tree"
  mkdir -p "$tree/.build"
  cp -R Cargo.toml Cargo.lock pgflow.control src sql "$tree/"
  mkdir "$tree/tests"
  cp -R tests/behaviour tests/clients tests/fixtures tests/harness tests/isolation tests/model tests/reliability "$tree/tests/"
  cp -R docs "$tree/"
  ln -s "$tools" "$tree/.build/tools"
  printf '%s\n' "$base" >"$tree/.build/base"
}

# Whatever happens, nobody may take the broken library for the real one: the next target installs it anew.
remove_broken_library() { rm -f "$("$PG_CONFIG" --pkglibdir)/pgflow.so"; }

# Runs the tests of one layer in the copy; their output is in $log.
run_tests() { # unit|isolation|reliability WHAT
  case $1 in
    unit) timeout 1800 "$tree/tests/harness/unit.sh" ${2:+"$2"} >"$log" 2>&1 ;;
    *)
      # shellcheck disable=SC2086 # a word for each argument
      { (cd "$tree" && cargo pgrx install --pg-config "$PG_CONFIG") &&
        timeout 1800 "$tree/tests/$1/run.sh" $2; } >"$log" 2>&1
      ;;
  esac
}

# The names of the tests that failed, and how many ran; nothing of a build that failed.
# The Rust tests' list of failures comes last; the first test's own line is broken by what pgrx prints.
failing() {
  sed -nE -e 's/^test (.*::(pg_)?)?([^ ]+) +\.\.\. FAILED.*/\3/p' -e 's/^    [a-z_]+::.*::(pg_)?([^ ]+)$/\2/p' \
    -e 's/^FAILED  //p' "$log" | sort -u
}
ran() { grep -cE '^(test [^ ]+ +\.\.\. )?(ok|FAILED)' "$log" || true; }

field() { sed -n "s/^Test: \([a-z]*\) \(.*\)$/\\$1/p" "$patch" | head -n 1; }

# Applies one patch and says what became of it.
try() { # PATCH
  local patch=$1 name caught
  name=$(basename "$patch" .patch)
  if ! patch --strip=1 --silent --forward --directory="$tree" --reject-file=- --no-backup-if-mismatch <"$patch" >"$log" 2>&1; then
    printf 'FAILED  %-32s does not apply\n' "$name"
    copy_tree
    return 1
  fi
  run_tests "$(field 1)" "$(field 2)" || true
  caught=$(failing)
  patch --strip=1 --silent --reverse --directory="$tree" <"$patch"
  if [ "$(ran)" -eq 0 ]; then
    printf 'FAILED  %-32s does not build, or ran no test\n' "$name"
    tail -n 20 "$log"
    return 1
  elif [ -z "$caught" ]; then
    printf 'FAILED  %-32s survived: %s\n' "$name" "$(head -n 1 "$patch")"
    return 1
  fi
  printf 'ok      %-32s %2d fail: %s\n' "$name" "$(wc -l <<<"$caught")" "$(head -n 1 <<<"$caught")"
}

patches=()
for name in "$@"; do patches+=("tests/mutants/$name.patch"); done
[ $# -gt 0 ] || patches=(tests/mutants/*.patch)

copy_tree
trap remove_broken_library EXIT

# What fails without any mistake proves nothing.
while read -r layer what; do
  [ "$layer" != unit ] || continue
  say "without a mistake: $layer $what"
  run_tests "$layer" "$what" </dev/null || { cat "$log"; die "tests must pass before anything is broken"; }
done < <(for patch in "${patches[@]}"; do echo "$(field 1) $(field 2)"; done | sort -u)
say "without a mistake: all unit tests"
run_tests unit "" || { failing; die "tests must pass before anything is broken: $log"; }

passed=0 failed=0
for patch in "${patches[@]}"; do
  if try "$patch"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
