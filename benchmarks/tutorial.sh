#!/usr/bin/env bash
# The numbers of docs/tutorial.md and its curve, by the commands of that page: season.json and
# league.json in benchmarks/results. From the project's folder, some twelve minutes.
set -euo pipefail
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/python - "$work/season.py" <<'PYTHON'
import re, sys
from pathlib import Path
page = Path("docs/tutorial.md").read_text(encoding="utf-8")
parts = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
Path(sys.argv[1]).write_text("\n".join(part for part in parts if "# use.py" not in part))
PYTHON
cd "$work"
train() { # NAME COMMAND …
  local name=$1
  shift
  "$here/.venv/bin/selectmdp" "$@" --out "runs/$name" --json | "$here/.venv/bin/python" -c '
import json, sys
told = {"command": " ".join(["selectmdp", *sys.argv[1:]]), **json.load(sys.stdin)}
del told["folder"]
print(json.dumps(told))' "$@" >"$here/benchmarks/results/$name.json"
}
train season train season:Season --steps 60000 --episodes 100
cp runs/season/curve.png "$here/docs/images/season-curve.png"
train league train league --minutes 10 --episodes 300
