"""What our loop costs for a step of a host environment, beside stepping the bare environment.

The bare environments are stepped one after the other by the same picks, and nothing is done with
what they give; our loop also checks it, puts it into arrays and watches over the workers. Both take
turns, and the best turn of each counts, since other work on the machine only ever adds; a turn is
short, so that some are free of it.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from selectmdp import runs, worlds
from selectmdp.bench import host_worlds
from selectmdp.config import TrainConfig
from selectmdp.interop.crew import Crew, Source, here
from selectmdp.interop.edge import made_picks
from selectmdp.interop.workers import Workers
from selectmdp.machine import cores
from selectmdp.settings import Hosting
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action

WORLDS = {"shelves N=50": ("Shelves", 128), "circle twin N=50": ("Circles", 8)}
"""The class, and how many copies are stepped in a turn."""


def measure(seconds: float, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Each world without workers, with one, and with one a core; then in a whole training."""
    if not 0 < seconds < math.inf:
        raise SelectError(f"seconds={seconds}: must be more than 0 and finite")
    numbers = sorted({0, 1, cores()})
    total = len(WORLDS) * (len(numbers) + 1)
    told: dict[str, Any] = {"cores": cores(), "rows": [], "training": []}
    for name, (factory, copies) in WORLDS.items():
        for workers in numbers:
            row: dict[str, Any] = {"world": name, "copies": copies, "workers": workers}
            row |= _beside(factory, copies, workers, seconds)
            told["rows"].append(row)
            progress(len(told["rows"]) + len(told["training"]), total)
        told["training"].append({"world": name, **_training(factory, seconds)})
        progress(len(told["rows"]) + len(told["training"]), total)
    return told


def _beside(factory: str, copies: int, workers: int, seconds: float) -> dict[str, float]:
    """Microseconds of a step, bare and ours, in turns."""
    make = getattr(host_worlds, factory)
    envs = [make() for _ in range(copies)]
    for seed, env in enumerate(envs):
        env.reset(seed)
    spec: Spec = envs[0].spec
    picks = _picks(spec, copies)
    each = [made_picks(*row) for row in zip(*picks, strict=True)]
    crew = _crew(factory, spec, copies, workers)
    bare, ours = [], []
    try:
        crew.reset(0)
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            before = time.perf_counter()
            for env, action in zip(envs, each, strict=True):
                env.step(action)
            between = time.perf_counter()
            crew.step(picks)
            bare.append(between - before)
            ours.append(time.perf_counter() - between)
    finally:
        crew.close()
    bare_us, loop_us = (min(times) / copies * 1e6 for times in (bare, ours))
    return {
        "bare_us": bare_us,
        "loop_us": loop_us,
        "overhead_us": loop_us - bare_us,
        "ratio": loop_us / bare_us,
    }


def _crew(factory: str, spec: Spec, copies: int, workers: int) -> Crew:
    address = f"{host_worlds.__name__}:{factory}"
    if workers == 0:
        return Crew(here(Source.of(address, {}), spec, copies, partial_reward=False))
    return Crew(Workers(address, {}, spec, copies, workers, Hosting().timeout))


def _picks(spec: Spec, copies: int) -> Action:
    """Random ones for every copy."""
    rng = np.random.default_rng(0)
    items = np.stack([rng.permutation(spec.num_items) for _ in range(copies)])
    commands = rng.integers(spec.num_commands, size=(copies, spec.num_select))
    return Action(items[:, : spec.num_select], commands)  # type: ignore[arg-type]


def _training(factory: str, seconds: float) -> dict[str, float]:
    """Microseconds of a step of the fast preset, acting and learning counted."""
    place = worlds.world(f"{host_worlds.__name__}:{factory}", {})
    config = TrainConfig(place.name, {}, "isq-u", "fast", {}, 1_000_000, 0)
    with place.opened():
        engine = place.engine(runs.learner_of(config, place.env), 0)
        running, _ = engine.run(engine.start())
        times: list[float] = []
        while sum(times) < seconds:
            before = time.perf_counter()
            running, _ = engine.run(running)
            times.append(time.perf_counter() - before)
    return {"step_us": min(times) / config.chunk * 1e6}
