"""Trainings that take seconds: a tiny circle world, a tiny learner, programs compiled in haste.

Most trainings here differ in how they end alone. So those alike share their traced programs in a
process; compiled ones are kept in a folder, for the processes that it starts too; and they are
compiled without what would make them fast.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from safetensors.numpy import load_file

import selectmdp as sm
from selectmdp import agent, worlds
from selectmdp.algorithms import Shape
from selectmdp.config import TrainConfig
from selectmdp.policy import Policy
from selectmdp.runlog import read_rows
from selectmdp.sharing import first_map
from selectmdp.trainer import Trainer

PROGRAMS = os.environ.get("JAX_COMPILATION_CACHE_DIR", "")  # of the process that started this one
if not PROGRAMS:
    PROGRAMS = tempfile.mkdtemp(prefix="selectmdp-programs-")
    atexit.register(shutil.rmtree, PROGRAMS, ignore_errors=True)
HASTE = {
    "jax_compilation_cache_dir": PROGRAMS,
    "jax_persistent_cache_min_compile_time_secs": 0.2,
    "jax_disable_most_optimizations": True,
}


@pytest.fixture(scope="module", autouse=True)
def haste() -> Iterator[None]:
    """A test module that has this as its own `haste` compiles in haste."""
    with in_haste():
        yield


@contextmanager
def in_haste() -> Iterator[None]:
    """Compile in haste, and share what is alike."""
    before = {name: jax.config.values[name] for name in HASTE}
    environ = {name.upper(): str(value) for name, value in HASTE.items()}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        for name, value in HASTE.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        patch.setattr(Trainer, "__init__", sharing_init)
        patch.setattr(worlds, "references", shared_references)
        try:
            yield
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()


def sharing_init(
    self: Trainer, folder: Path, config: TrainConfig, world: worlds.World, *began: float
) -> None:
    """A trainer's constructor that takes engine and judge of an earlier trainer like it."""
    INIT(self, folder, config, world, *began)
    if isinstance(world, worlds.JaxWorld):
        alike = repr((config.algorithm, config.full_settings, config.steps, world))
        self.engine, self.judge = MADE.setdefault(alike, (self.engine, self.judge))
        if self.engine.seed != config.seed:
            self.engine = copy(self.engine)
            object.__setattr__(self.engine, "seed", config.seed)


INIT, MADE = Trainer.__init__, {}
shared_references = cache(worlds.references)

WORLD: dict[str, Any] = {"num_items": 6, "num_select": 2, "time_limit": 20}
SETTINGS: dict[str, Any] = {
    "replay_capacity": 200,
    "chunk": 50,
    "target_period": 100,
    "batch_size": 8,
    "channels": 8,
}
RUN: dict[str, Any] = {
    "preset": "paper",
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


@cache
def finished() -> Path:
    """A tiny training of this process that nothing disturbed; not to be changed."""
    folder = tempfile.mkdtemp(dir=PROGRAMS)
    return train(Path(folder) / "run").folder


def untrained(name: str, env: Any) -> Policy:
    """A policy whose parameters are any numbers."""
    made = agent.make(name, env, shape=Shape(8, hidden=(16,)))
    rng = np.random.default_rng(1)
    params = jax.tree.map(
        lambda leaf: jnp.asarray(rng.normal(0.0, 0.4, leaf.shape), jnp.float32),
        jax.eval_shape(made.init, jax.random.key(0)),
    )
    return Policy(made, params, first_map(made.algorithm.sharing, env.spec.num_select), {})


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
