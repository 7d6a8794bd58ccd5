#!/usr/bin/env bash
# Trained results on other people's worlds (extra envs), the table of docs/other-worlds.md: what each
# earned and its curve, as JSON and PNG in benchmarks/results.
# Usage: benchmarks/thirdparty.sh [WORLD …], from the project's folder.
set -euo pipefail
declare -A rows=(
  [sysadmin]="examples.rddl:sysadmin --minutes 10"
  [mobile-small]="examples.mobile:small --minutes 10"
  [tamarisk]="examples.rddl:tamarisk --minutes 6"
  [advising]="examples.rddl:advising --minutes 6"
  [wildfire]="examples.rddl:wildfire --instance 4 --minutes 8"
  [mobile-medium]="examples.mobile:medium --minutes 10"
)
order=(sysadmin mobile-small tamarisk advising wildfire mobile-medium)
if (($#)); then order=("$@"); fi
for row in "${order[@]}"; do
  run="runs/thirdparty/$row"
  typed="train ${rows[$row]} --episodes 100"
  # shellcheck disable=SC2086 - words of a row are words of the command
  .venv/bin/selectmdp $typed --out "$run" --json | .venv/bin/python -c '
import csv, json, sys
run, typed, into = sys.argv[1:]
told = {"command": f"selectmdp {typed}", **json.load(sys.stdin)}
del told["folder"]
columns = ("step", "seconds", "eval_reward", "eval_ci95")
with open(f"{run}/metrics.csv") as metrics:
    rows = [row for row in csv.DictReader(metrics) if row["eval_reward"]]
told["curve"] = [[float(row[name]) for name in columns] for row in rows]
with open(into, "w") as file:
    file.write(json.dumps(told) + "\n")' "$run" "$typed" "benchmarks/results/$row.json"
  cp "$run/curve.png" "benchmarks/results/$row.png"
done
