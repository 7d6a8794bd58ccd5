#!/usr/bin/env bash
# The rows of the table in docs/fast.md: one training each, one line of JSON each.
# Usage: benchmarks/ablation.sh [SEED] [ROW …], from the project's folder.
set -euo pipefail
seed=${1:-0}
shift || true
steps=500000
declare -A rows=(
  [fast]=""
  [lambda-phases-0]="--set lambda_phases=0"
  [lambda-steps-0]="--set lambda_steps=0"
  [marginal]="--set marginal=true"
  [paper-network]="--set pairs=false channels=48"
  [no-layer-norm]="--set layer_norm=false"
  [minibatch-128]="--set minibatch=128"
  [learning-rate-1e-3]="--set learning_rate=1e-3"
  [epochs-4]="--set epochs=4"
  [isq-i]="--algorithm isq-i"
  [isq-p]="--algorithm isq-p"
)
order=(fast lambda-phases-0 lambda-steps-0 marginal paper-network no-layer-norm minibatch-128
  learning-rate-1e-3 epochs-4 isq-i isq-p)
if (($#)); then order=("$@"); fi
for row in "${order[@]}"; do
  # shellcheck disable=SC2086 - words of a row are words of the command
  .venv/bin/selectmdp train circle --num-items 50 --num-select 6 --steps $steps --seed "$seed" \
    --evaluations 10 --out "runs/ablation/$row-seed$seed" --json ${rows[$row]} |
    .venv/bin/python -c '
import json, sys
told = json.load(sys.stdin)
keep = ("algorithm", "seed", "steps", "mean_reward", "ci95", "seconds")
print(json.dumps({"row": sys.argv[1], **{name: told[name] for name in keep}}))' "$row"
done
