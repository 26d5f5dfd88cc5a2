#!/usr/bin/env bash
# The demo: it can be run again and again, shows live progress, leaves a picture of the run, and every statement that
# it proposes at its end works. On a server of its own, so that the user's demo stays as it is.
. "$(dirname "${BASH_SOURCE[0]}")/../harness/env.sh"
. "$project/tests/harness/checks.sh"

example=$project/docs/examples/wordcount
work=$project/.build/demo-output
rm -rf "$work"
mkdir -p "$work/texts"
for name in one two three four five; do
  echo "a few words about $name: another example, worth repeating, repeating and repeating again" >"$work/texts/$name"
done
test_server demotest
export PGDATABASE=wordcount PGFLOW_DEMO_SERVER=demotest

demo() { # FILE
  local status=0
  "$example/demo.sh" "$work/texts" >"$work/$1" 2>&1 || status=$?
  [ "$status" -eq 0 ] || cat "$work/$1"
  echo "$status"
}
sql() { psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 --command "$1"; }
# Those of the patterns that no line of a file matches.
missing() { # FILE PATTERN ...
  local pattern
  for pattern in "${@:2}"; do grep -qE -- "$pattern" "$work/$1" || echo "$pattern"; done
}

check 'the demo ends well' 0 "$(demo first)"
check 'its run has completed' 'completed 5/5 steps, 9/9 tasks' "$(sql "
  select format('%s %s/%s steps, %s/%s tasks', status, completed_steps, total_steps, completed_tasks, total_tasks)
  from pgflow.run_progress")"
check 'it shows the progress of steps and run while they go on' '' \
  "$(missing first ' s  count +started +[0-4]/5 tasks' ' s  count +completed +5/5 tasks, 1 retry$' ' s  the run +started, 1/5 steps' \
    ' s  the run +completed, 5/5 steps, 9/9 tasks$')"
check 'it draws the run, with the retry' '' "$(missing first '│ 5/5 tasks, 1 retry')"
run=$(sql 'select run_id from pgflow.runs')
check 'the picture that it leaves is the graph of the run' "$(printf '```mermaid\n%s\n```\n' "$(sql "select pgflow.run_graph('$run')")")" \
  "$(cat "$project/.build/wordcount/run.md")"

# What is printed behind the psql command.
sed -n '/^  psql /,$ p' "$work/first" | sed 1d | sed 's/^  //' >"$work/tour.sql"
check 'the tour is tour.sql with the id of the run' "$(sed "s/:'run'/'$run'/" "$example/tour.sql")" "$(sed '1{/^$/d}' "$work/tour.sql")"
status=0
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --file "$work/tour.sql" >"$work/toured" 2>&1 || status=$?
check 'every statement of the tour works' 0 "$status"
check 'no answer of the tour is empty' '' "$(grep -B 3 '(0 rows)' "$work/toured" || true)"
check 'the tour shows what is stuck, what is claimed and what becomes of it' '' \
  "$(missing toured 'no live worker polls queue "wordcount"' '\| files +\| +0 \| \{"folder": ' '^ completed$' \
    '^ count +\| started +\| +1 \| +1 \| $' '^ top_words +\| created +\| +0 \| +1 \| \{count\}')"

check 'the demo can be run again' 0 "$(demo second)"
check 'a second demo adds a run to the same database' 3 "$(sql 'select count(*) from pgflow.runs')"
check 'its workers go on with the run that the tour has left' 1 "$(sql "
  select count(*) from pgflow.step_progress where step_slug = 'count' and total_tasks = 1 and attempts_count > 0")"

status=0
script --quiet --return --command "stty rows 40 columns 120; '$example/demo.sh' '$work/texts'" "$work/terminal" \
  </dev/null >/dev/null 2>&1 || status=$?
check 'on a terminal too' 0 "$status"
check 'on a terminal the drawing is drawn over, again and again' 'more than 5 times' \
  "$([ "$(grep -c $'\x1b\\[[0-9]*Athe run: started' "$work/terminal")" -le 5 ] || echo 'more than 5 times')"

summary
