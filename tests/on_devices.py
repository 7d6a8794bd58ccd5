"""What the tests of several devices run in processes of their own, since a process has one number.

`python on_devices.py WHAT ARGUMENTS` prints what it found as JSON.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tiny
from probing import LEVELS, share_of_the_best

import selectmdp as sm
from selectmdp import agent, devices
from selectmdp.engines import ChunkReport, Compiled
from selectmdp.learners.dqn import DQN
from selectmdp.learners.qlambda import QLambda
from selectmdp.settings import FastSettings, PaperSettings
from selectmdp.sharded import Sharded
from selectmdp.trainer import Trainer

ONE_UPDATE = FastSettings(channels=16, num_envs=8, rollout=4, minibatch=32, epochs=1, chunk=32)
"""A chunk is one round, a round one batch: the order in it does not matter."""
PAPER = PaperSettings(channels=16, batch_size=8, replay_capacity=100, chunk=1, target_period=4)
CIRCLE = sm.Circle(num_items=6, num_select=3)
PREDATOR_PREY = sm.PredatorPrey(num_select=3)
CASES: dict[str, tuple[str, Any, Any, Any]] = {
    "one set": ("isq-u", QLambda, ONE_UPDATE, CIRCLE),
    "many sets": ("isq-i", QLambda, ONE_UPDATE, PREDATOR_PREY),
    "each pick alone": ("idqn", QLambda, ONE_UPDATE, CIRCLE),
    "the paper's": ("isq-u", DQN, PAPER, CIRCLE),
}
RUN: dict[str, Any] = {
    "algorithm": "isq-p",
    "preset": "fast",
    "steps": 640,
    "evaluations": 2,
    "episodes": 2,
    "settings": {"channels": 8, "num_envs": 8, "rollout": 4, "minibatch": 16, "chunk": 64},
}
"""Ten chunks with a checkpoint after each, a split of sets after five."""
LEARNS = FastSettings(
    channels=32,
    num_envs=16,
    minibatch=32,
    epochs=4,
    learning_rate=3e-3,
    discount=0.9,
    epsilon_end=0.3,
    averaging=0.2,
    chunk=256,
)


def update(name: str) -> list[dict[str, float]]:
    """One update from one state, on 2 devices and on 4, beside that of a single one."""
    algorithm, kind, settings, env = CASES[name]
    learner = kind(agent.make(algorithm, env, shape=settings.shape), settings, 400)
    alone = Compiled(env, learner, seed=0)
    state = alone.start()
    for _ in range(60 if kind is DQN else 3):  # past random acting
        state, _ = alone.run(state)
    many = [Sharded(env, learner, 0, count) for count in (2, 4)]
    states = [devices.placed(state, engine.like()) for engine in many]
    before = jax.tree.map(np.array, state.learner.params)
    one, report = alone.run(state)
    told = []
    for engine, same in zip(many, states, strict=True):
        other, reported = engine.run(same)
        told.append(
            {
                "apart": _distance(one._replace(key=one.step), other._replace(key=other.step)),
                "same_key": bool(
                    (jax.random.key_data(one.key) == jax.random.key_data(other.key)).all()
                ),
                "moved": _distance(before, other.learner.params),
                "losses_apart": abs(report.loss - reported.loss),
            }
        )
    return told


def _distance(left: Any, right: Any) -> float:
    pairs = [
        map(np.float64, pair) for pair in zip(*map(jax.tree.leaves, (left, right)), strict=True)
    ]
    return max(float(np.abs(np.subtract(*pair)).max(initial=0.0)) for pair in pairs)


def broken_off(folder: str) -> None:
    """A run, and the same killed after a few chunks."""
    tiny.train(Path(folder) / "whole", **RUN)
    show = Trainer._show

    def dies(self: Trainer, running: Any, report: ChunkReport) -> None:
        show(self, running, report)
        if int(running.step) == 448:
            raise KeyboardInterrupt

    Trainer._show = dies  # type: ignore[method-assign]
    with suppress(KeyboardInterrupt):
        tiny.train(Path(folder) / "killed", **RUN)


def resumed(folder: str) -> dict[str, Any]:
    """The run in a folder, gone on with."""
    return sm.train(None, out=folder, resume=True).to_json()


def learned(*counts: str) -> dict[str, list[float]]:
    """By number of devices, the share of the best that policies reach which they learned."""
    learner = QLambda(agent.make("isq-i", LEVELS, shape=LEARNS.shape), LEARNS, 12_800)
    told = {}
    for count in counts:
        engine = Sharded(LEVELS, learner, 0, int(count))
        told[count] = [_share(engine, seed) for seed in (0, 1, 2, 3)]
    return told


def _share(engine: Sharded, seed: int) -> float:
    object.__setattr__(engine, "seed", seed)  # the same program, which is compiled once
    running = engine.start()
    for _ in range(50):
        running, _ = engine.run(running)
    state = devices.here(running.learner)
    return share_of_the_best(engine.learner.agent, (state.average, state.phase_map))


if __name__ == "__main__":
    what = {each.__name__: each for each in (update, broken_off, resumed, learned)}
    print(json.dumps(what[sys.argv[1]](*sys.argv[2:])))
