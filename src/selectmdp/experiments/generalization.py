"""Trained at one N, played at others (paper §5.3): ISQ-P, with means and with sums in the network.

The four pairs of N = 50 and N = 200 are played over whole episodes as everywhere; the sweep over
other N over shorter ones, which is enough to see a trend.
"""

import json
import subprocess
import sys
from pathlib import Path

from selectmdp.experiments import store
from selectmdp.experiments.jobs import Job
from selectmdp.spec import SelectError

PAIRS = (50, 200)
SWEEP = (10, 20, 50, 100, 200, 500, 1000)
SWEEP_STEPS = 200
"""Steps of an episode in the sweep."""
COLUMNS = (
    *("run", "network", "trained_N", "played_N", "seed", "steps", "preset", "episodes"),
    *("episode_steps", "mean_reward", "ci95"),
)


def plays(budget: str) -> list[tuple[int, int | None]]:
    """(N, steps of an episode; None: the world's own)."""
    if budget == "smoke":
        return [(played, 50) for played in (*PAIRS, SWEEP[0], SWEEP[-1])]
    return [(played, None) for played in PAIRS] + [(played, SWEEP_STEPS) for played in SWEEP]


def is_played(folder: Path, job: Job, budget: str) -> bool:
    """Whether all plays of a trained policy are kept."""
    rows = store.read(folder / "generalization.csv", COLUMNS)
    kept = [row for row in rows if row["run"] == job.name]
    if kept and kept[0]["steps"] != str(job.config.steps):
        raise SelectError(
            f"{folder / 'generalization.csv'} holds {job.name} of {kept[0]['steps']} steps: choose "
            "another --out for another budget"
        )
    return len(kept) == len(plays(budget))


def play(folder: Path, job: Job, run: Path, budget: str) -> None:
    """Evaluate a trained policy at every N, each in a process of its own; all rows or none."""
    rows = []
    for played, steps in plays(budget):
        typed = ["evaluate", str(run), "--num-items", str(played), "--json"]
        typed += ["--episodes", str(job.config.episodes)]
        typed += [] if steps is None else ["--time-limit", str(steps)]
        ended = subprocess.run(
            [sys.executable, "-m", "selectmdp", *typed], capture_output=True, check=False
        )
        if ended.returncode:
            raise SelectError(f"`selectmdp {' '.join(typed)}`: {ended.stderr.decode().strip()}")
        told = json.loads(ended.stdout)
        row = {
            "run": job.name,
            "network": "sums" if job.config.settings.get("sums") else "means",
            "trained_N": job.config.options["num_items"],
            "played_N": played,
            "seed": job.config.seed,
            **{name: getattr(job.config, name) for name in ("steps", "preset", "episodes")},
            "episode_steps": told["steps"],
            "mean_reward": f"{told['mean_reward']:.5f}",
            "ci95": f"{told['ci95']:.5f}",
        }
        rows.append({name: str(row[name]) for name in COLUMNS})
    path = folder / "generalization.csv"
    others = [row for row in store.read(path, COLUMNS) if row["run"] != job.name]
    store.write(path, COLUMNS, [*others, *rows])
