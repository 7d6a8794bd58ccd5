"""Environment steps per second, compiled and batched, beside the plain NumPy twin in the same run.

Random picks are drawn beforehand for both: what is measured is the world, with its chance.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from selectmdp.bench.twins import CircleTwin, PredatorPreyTwin
from selectmdp.envs import Circle, PredatorPrey
from selectmdp.iterative import random_action
from selectmdp.machine import cores
from selectmdp.spec import SelectError

BATCHES = (1, 64, 1024)
CHUNK = 32
"""Steps compiled into one call."""

WORLDS: dict[str, tuple[Any, Any]] = {
    f"circle N={num_items} K=6": (
        Circle(num_items=num_items),
        CircleTwin(
            num_items=num_items,
            num_context=0,
            num_select=6,
            commands=Circle().commands,
            dynamics="figures",
        ),
    )
    for num_items in (50, 200)
} | {
    "predator-prey N=10 K=4": (
        PredatorPrey(),
        PredatorPreyTwin(
            num_items=10,
            num_context=4,
            num_select=4,
            grid=10,
            captors=2,
            commands=PredatorPrey().commands,
        ),
    )
}


def measure(seconds: float, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Every world and batch, with the ratio to the twin's speed."""
    if not 0 < seconds < math.inf:
        raise SelectError(f"seconds={seconds}: must be more than 0 and finite")
    rows: list[dict[str, Any]] = []
    total = len(WORLDS) * len(BATCHES)
    for name, (env, twin) in WORLDS.items():
        slow = twin_steps_per_second(twin, seconds)
        for batch in BATCHES:
            fast = steps_per_second(env, batch, seconds)
            rows.append(
                {
                    "world": name,
                    "batch": batch,
                    "steps_per_second": fast,
                    "twin_steps_per_second": slow,
                    "ratio": fast / slow,
                }
            )
            progress(len(rows), total)
    return {"cores": cores(), "jax": jax.__version__, "rows": rows}


def steps_per_second(env: Any, batch: int, seconds: float) -> float:
    """Steps of all `batch` worlds together, after compilation."""
    reset_key, act_key = jax.random.split(jax.random.key(0))
    states = jax.vmap(env.reset)(jax.random.split(reset_key, batch))
    observations = jax.vmap(env.observe)(states)

    def picks(_: None, key: Any) -> tuple[None, Any]:
        keys = jax.random.split(key, batch)
        return None, jax.vmap(lambda key, seen: random_action(key, env, seen))(keys, observations)

    _, actions = jax.lax.scan(picks, None, jax.random.split(act_key, CHUNK))

    def step(states: Any, chance: Any) -> tuple[Any, Any]:
        key, action = chance
        states, rewards, _ = jax.vmap(env.step)(jax.random.split(key, batch), states, action)
        return states, rewards.sum()

    @jax.jit
    def chunk(states: Any, actions: Any, key: Any) -> tuple[Any, Any]:
        return jax.lax.scan(step, states, (jax.random.split(key, CHUNK), actions))

    states, _ = jax.block_until_ready(chunk(states, actions, jax.random.key(1)))
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        states, _ = jax.block_until_ready(chunk(states, actions, jax.random.key(2 + done)))
        done += 1
    return done * CHUNK * batch / (time.perf_counter() - start)


def twin_steps_per_second(twin: Any, seconds: float) -> float:
    """Steps of one plain NumPy world."""
    rng = np.random.default_rng(0)
    left, right = twin.reset(rng)
    picks = [twin.random_picks(rng) for _ in range(CHUNK)]
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        left, right, _ = twin.step(left, right, picks[done % CHUNK], twin.draw(rng))
        done += 1
    return done / (time.perf_counter() - start)
