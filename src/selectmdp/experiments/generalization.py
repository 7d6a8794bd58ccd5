"""Trained at one N, played at others (paper §5.3): ISQ-P with three networks.

They are the fast preset's own, of pairs, and the paper's with means and with sums over its sets.

Episodes are whole everywhere: large worlds begin with a stock of large circles, so that what a few
steps earn says little. At N = 50 and N = 200 as many are played as after training, at others fewer.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from selectmdp import signals
from selectmdp.config import TrainConfig
from selectmdp.experiments import store
from selectmdp.experiments.jobs import Job, fingerprint
from selectmdp.spec import SelectError

PAIRS = (50, 200)
OTHERS = (10, 20, 100, 500, 1000)
FEW, SHORT = 4, 50
"""Episodes at other N, and steps of an episode in the smallest budget."""
COLUMNS = (
    *("run", "network", "trained_N", "played_N", "seed", "steps", "preset", "episodes"),
    *("episode_steps", "mean_reward", "ci95", "config"),
)
NETWORKS = ("pairs", "means", "sums")


class Play(NamedTuple):
    """An N to play at."""

    num_items: int
    episodes: int
    steps: int | None = None
    """Of an episode; None: the world's own."""


def plays(budget: str, episodes: int) -> list[Play]:
    """Where a policy is played, that is judged by so many episodes after training."""
    if budget == "smoke":
        return [Play(played, episodes, SHORT) for played in (*PAIRS, OTHERS[0], OTHERS[-1])]
    return [Play(played, episodes) for played in PAIRS] + [Play(each, FEW) for each in OTHERS]


def network(config: TrainConfig) -> str:
    """Which of the three a policy has; the paper's preset has none of pairs."""
    settings = config.full_settings
    return "pairs" if getattr(settings, "pairs", False) else "sums" if settings.sums else "means"


def is_played(folder: Path, job: Job, budget: str) -> bool:
    """Whether all plays of a trained policy are kept; those of another config are refused."""
    path = folder / "generalization.csv"
    kept = [row for row in store.read(path, COLUMNS) if row["run"] == job.name]
    if any(row["config"] != fingerprint(job.config) for row in kept):
        raise SelectError(
            f"{path} holds {job.name} of {kept[0]['steps']} steps by preset {kept[0]['preset']}, "
            f"asked for is {job.config.steps} by {job.config.preset}, or another default of it: "
            "choose another --out, or delete its rows"
        )
    return len(kept) == len(plays(budget, job.config.episodes))


def play(folder: Path, job: Job, run: Path, budget: str) -> None:
    """Evaluate a trained policy at every N, each in a process of its own; all rows or none."""
    rows = []
    for played in plays(budget, job.config.episodes):
        typed = ["evaluate", str(run), "--num-items", str(played.num_items), "--json"]
        typed += ["--episodes", str(played.episodes)]
        typed += [] if played.steps is None else ["--time-limit", str(played.steps)]
        ended = subprocess.run(
            [sys.executable, "-m", "selectmdp", *typed], capture_output=True, check=False
        )
        stopped = signals.asked_to_end(ended.returncode)
        if stopped is not None:
            raise signals.Stopped(f"stopped while {job.name} was played elsewhere", stopped)
        if ended.returncode:
            raise SelectError(f"`selectmdp {' '.join(typed)}`: {ended.stderr.decode().strip()}")
        told = json.loads(ended.stdout)
        row = {
            "run": job.name,
            "network": network(job.config),
            "trained_N": job.config.options["num_items"],
            "played_N": played.num_items,
            "seed": job.config.seed,
            **{name: getattr(job.config, name) for name in ("steps", "preset")},
            "episodes": played.episodes,
            "episode_steps": told["steps"],
            "mean_reward": f"{told['mean_reward']:.5f}",
            "ci95": f"{told['ci95']:.5f}",
            "config": fingerprint(job.config),
        }
        rows.append({name: str(row[name]) for name in COLUMNS})
    path = folder / "generalization.csv"
    others = [row for row in store.read(path, COLUMNS) if row["run"] != job.name]
    store.write(path, COLUMNS, [*others, *rows])
