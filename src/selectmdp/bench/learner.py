"""Speed of the paper's learner: one update beside a plain matrix product in the same run.

What an update nominally computes is one fixed formula; `fraction_of_peak` divides the rate by that
of a float32 product [K · batch · N, channels] × [channels, channels]. Both have turns of equal
length and the mean of the best turn counts, so that other work on the machine does not decide. As
in training, several updates compile into one call.
"""

import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from selectmdp import agent, replay
from selectmdp.algorithms import Shape
from selectmdp.engines import Compiled, Running, blank
from selectmdp.envs import Circle
from selectmdp.iterative import random_action
from selectmdp.learners.dqn import DQN, State
from selectmdp.machine import cores
from selectmdp.settings import PaperSettings
from selectmdp.spec import SelectError

NAMES = {"I": "isq-i", "U": "isq-u"}
ITEMS = (50, 200)
PICKS = 6
BATCH = 64
CHANNELS = 48
GROWTH_ITEMS = (50, 100, 200, 400, 800)
GROWTH_PICKS = (2, 4, 6, 8, 12)
MANY_ITEMS = 1000
CAPACITY = 50_000
UPDATES = 10
"""Updates compiled into one call."""
CHUNK = 50
"""Training steps compiled into one call."""
TURN = 0.02
"""Seconds of one turn at least; short calls repeat, so that other work hits all alike."""
PAUSE = 0.1
"""Seconds before a turn: the threads of NumPy's product spin for a while after it."""
PUBLISHED = {50: 80.0, 200: 37.0}
"""Steps per second of the published code at N items."""

AIMS = {
    "fraction_of_peak": 0.4,
    "exponent": 1.05,
    "act_ms": 5.0,
    "replay_megabytes": 150.0,
    "training_ratio": {50: 4.0, 200: 2.5},
}

Call = Callable[[], Any]


class Case(NamedTuple):
    """A learner whose replay is filled."""

    env: Circle
    learner: DQN
    running: Running


def measure(seconds: float, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Updates, acting, growth with N and K, memory, whole training; `seconds` for each number."""
    if not 0 < seconds < math.inf:
        raise SelectError(f"seconds={seconds}: must be more than 0 and finite")
    total, done = len(ITEMS) * len(NAMES) + len(ITEMS) + 4, 0

    def tick(result: Any) -> Any:
        nonlocal done
        done += 1
        progress(done, total)
        return result

    by_items = {num_items: (num_items, PICKS) for num_items in GROWTH_ITEMS}
    by_picks = {picks: (ITEMS[0], picks) for picks in GROWTH_PICKS}
    return {
        "cores": cores(),
        "jax": jax.__version__,
        "aims": AIMS,
        "updates": [
            tick(update_row(num_items, sharing, seconds))
            for num_items in ITEMS
            for sharing in NAMES
        ],
        "growth": {
            "items": tick(growth(by_items, seconds)),
            "picks": tick(growth(by_picks, seconds)),
        },
        "acting": tick({"num_items": MANY_ITEMS, "act_ms": act_ms(MANY_ITEMS, "isq-i", seconds)}),
        "replay": tick(
            {
                "num_items": ITEMS[-1],
                "steps": CAPACITY,
                "megabytes": replay_bytes(ITEMS[-1], CAPACITY) / 1e6,
            }
        ),
        "training": [tick(training_row(num_items, seconds)) for num_items in ITEMS],
    }


def update_row(num_items: int, sharing: str, seconds: float) -> dict[str, Any]:
    """Acting and one update, and how near that is to the machine's matrix product."""
    name = NAMES[sharing]
    products = matrix_products(PICKS * BATCH * num_items)
    update, *product = best_times([updates(num_items, PICKS, name), *products], seconds)
    rate = nominal_flops(num_items, PICKS) * UPDATES / update / 1e9
    peak = 2 * PICKS * BATCH * num_items * CHANNELS**2 / min(product) / 1e9
    return {
        "num_items": num_items,
        "num_select": PICKS,
        "sharing": sharing,
        "act_ms": act_ms(num_items, name, seconds),
        "update_ms": update / UPDATES * 1e3,
        "gflops": rate,
        "peak_gflops": peak,
        "fraction_of_peak": rate / peak,
    }


def growth(sizes: dict[int, tuple[int, int]], seconds: float) -> dict[str, Any]:
    """Milliseconds of an update at each size (N, K), and the exponent with which they grow."""
    times = best_times(
        [updates(*size, NAMES["I"]) for size in sizes.values()], seconds * len(sizes)
    )
    update_ms = [each / UPDATES * 1e3 for each in times]
    slope = np.polyfit(np.log(list(sizes)), np.log(update_ms), 1)[0]
    return {"sizes": list(sizes), "update_ms": update_ms, "exponent": float(slope)}


def training_row(num_items: int, seconds: float) -> dict[str, Any]:
    """Whole steps per second: acting, the world, storing and an update, on a full replay."""
    env, learner, running = filled(num_items, PICKS, NAMES["I"], CAPACITY)
    engine = Compiled(env, learner, seed=0)

    def chunk() -> Running:
        nonlocal running
        running, _ = engine.run(running)
        return running

    speed = CHUNK / best_times([chunk], seconds)[0]
    published = PUBLISHED.get(num_items)
    return {
        "num_items": num_items,
        "steps_per_second": speed,
        "published_steps_per_second": published,
        "ratio": None if published is None else speed / published,
    }


def act_ms(num_items: int, name: str, seconds: float) -> float:
    """K greedy picks in one state."""
    env = Circle(num_items=num_items, num_select=PICKS)
    here = agent.make(name, env, shape=Shape(CHANNELS))
    init_key, reset_key, act_key = jax.random.split(jax.random.key(0), 3)
    params, observation = here.init(init_key), env.observe(env.reset(reset_key))
    phase_map = jnp.asarray(DQN(here, PaperSettings(), 1).phase_map(0))
    act = jax.jit(lambda key, observation: here.act(key, params, phase_map, observation).action)
    return best_times([lambda: act(act_key, observation)], seconds)[0] * 1e3


def replay_bytes(num_items: int, steps: int) -> int:
    """Memory of a replay of that many steps; nothing is allocated."""
    env = Circle(num_items=num_items, num_select=PICKS)

    def empty(key: Any) -> replay.Rows:
        return replay.init(steps, blank(env.observe(env.reset(key)), PICKS))

    rows = jax.eval_shape(empty, jax.random.key(0))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(rows))


def nominal_flops(num_items: int, num_select: int) -> float:
    """Of an update: four passes of three layers over the items; 3 features, 5 commands."""
    spec = Circle().spec
    layers = spec.item_features * CHANNELS + CHANNELS**2 + CHANNELS * spec.num_commands
    return 4.0 * 2 * num_items * layers * num_select * BATCH


@lru_cache
def updates(num_items: int, num_select: int, name: str) -> Call:
    """`UPDATES` updates in one compiled call."""
    _, learner, running = filled(num_items, num_select, name, capacity=1000)

    @jax.jit
    def several(state: State) -> Any:
        def update(carry: Any, key: Any) -> tuple[Any, Any]:
            params, optimiser, loss = learner.update(*carry, state=state, key=key)
            return (params, optimiser), loss

        keys = jax.random.split(jax.random.key(1), UPDATES)
        return jax.lax.scan(update, (state.params, state.optimiser), keys)

    return lambda: several(running.learner)


def filled(num_items: int, num_select: int, name: str, capacity: int) -> Case:
    """A learner after its warm-up; a few random steps, repeated, fill the replay."""
    env = Circle(num_items=num_items, num_select=num_select)
    settings = PaperSettings(
        channels=CHANNELS, batch_size=BATCH, replay_capacity=capacity, chunk=CHUNK
    )
    learner = DQN(agent.make(name, env, shape=Shape(CHANNELS)), settings, 100 * capacity)
    running = Compiled(env, learner, seed=0).start()
    rings = jax.jit(lambda rings: _played(env, rings))(running.learner.replay)
    learned = running.learner._replace(replay=rings)
    return Case(env, learner, running._replace(step=jnp.asarray(capacity), learner=learned))


def _played(env: Circle, rings: replay.Rows) -> replay.Rows:
    def step(carry: Any, key: Any) -> tuple[Any, None]:
        ring, world = carry
        act_key, env_key = jax.random.split(key)
        observation = env.observe(world)
        action = random_action(act_key, env, observation)
        world, reward, alive = env.step(env_key, world, action)
        seen = blank(observation, env.spec.num_select)._replace(
            action=action, reward=reward, discount=alive
        )
        return (replay.add(ring, seen), world), None

    key = jax.random.key(0)
    first = jax.tree.map(lambda leaf: leaf[0], rings), env.reset(key)
    (ring, _), _ = jax.lax.scan(step, first, jax.random.split(key, CHUNK))
    capacity = ring.reward.shape[0]
    again = jnp.arange(capacity) % CHUNK
    full = jax.tree.map(lambda leaf: leaf[again] if leaf.ndim else leaf, ring)
    full = full._replace(filled=jnp.asarray(capacity, jnp.int32))
    return jax.tree.map(lambda leaf: leaf[None], full)


def matrix_products(rows: int) -> list[Call]:
    """The product that is the peak, by JAX and by NumPy."""
    left = np.ones((rows, CHANNELS), np.float32)
    right = np.ones((CHANNELS, CHANNELS), np.float32)
    out = np.empty_like(left)
    product = jax.jit(jnp.matmul)
    on_device = jnp.asarray(left), jnp.asarray(right)
    return [lambda: product(*on_device), lambda: np.matmul(left, right, out=out)]


def best_times(calls: list[Call], seconds: float) -> list[float]:
    """Seconds of each call: the best of turns, which come one after the other and last alike."""
    turn = TURN
    for call in calls:
        jax.block_until_ready(call())  # compiles
        turn = max(turn, _mean_time(call, 0.0))
    best = [math.inf] * len(calls)
    start, rounds = time.perf_counter(), 0
    while rounds < 3 or time.perf_counter() - start < seconds:
        best = [min(old, _mean_time(call, turn)) for old, call in zip(best, calls, strict=True)]
        rounds += 1
    return best


def _mean_time(call: Call, seconds: float) -> float:
    time.sleep(PAUSE)
    jax.block_until_ready(call())
    start, done, passed = time.perf_counter(), 0, 0.0
    while not done or passed < seconds:
        jax.block_until_ready(call())
        done, passed = done + 1, time.perf_counter() - start
    return passed / done
