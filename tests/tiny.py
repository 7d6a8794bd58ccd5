"""Trainings that take seconds: a tiny circle world, a tiny learner, compiled programs shared.

Programs are kept in a folder of this process and of those it starts: most trainings here differ in
a seed or in how they end, and need not be compiled again.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import load_file

import selectmdp as sm
from selectmdp.runlog import read_rows

CACHE = {
    "jax_compilation_cache_dir": tempfile.mkdtemp(prefix="selectmdp-tests-"),
    "jax_persistent_cache_min_compile_time_secs": 0.2,
}
for name, value in CACHE.items():
    jax.config.update(name, value)
    os.environ[name.upper()] = str(value)
atexit.register(shutil.rmtree, CACHE["jax_compilation_cache_dir"], ignore_errors=True)

WORLD: dict[str, Any] = {"num_items": 6, "num_select": 2, "time_limit": 20}
SETTINGS: dict[str, Any] = {
    "replay_capacity": 200,
    "chunk": 50,
    "target_period": 100,
    "batch_size": 8,
    "channels": 8,
}
RUN: dict[str, Any] = {
    "algorithm": "isq-p",
    "steps": 400,
    "evaluations": 4,
    "episodes": 8,
    "settings": SETTINGS,
}
"""Eight chunks, a checkpoint after each, an evaluation after every second, a split after four."""
LAST = "step-000000000400"


def train(out: Path, **changes: Any) -> sm.TrainResult:
    """A tiny training on circles."""
    return sm.train("circle", out=out, **{**WORLD, **RUN, **changes})


def state(run: Path, step: int = 400) -> dict[str, bytes]:
    """All numbers that a training goes on from, as bytes."""
    file = run / "checkpoints" / f"step-{step:012d}" / "training.safetensors"
    return {name: np.asarray(leaf).tobytes() for name, leaf in load_file(file).items()}


def rows(run: Path) -> list[dict[str, float]]:
    """The metrics of a run without what a clock says."""
    clock = ("seconds", "steps_per_second")
    return [
        {name: value for name, value in row.items() if name not in clock}
        for row in read_rows(run / "metrics.csv")
    ]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
