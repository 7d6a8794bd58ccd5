"""How many steps a training makes in some minutes: measured once, before the first of them."""

import math
import signal
from contextlib import ExitStack
from dataclasses import replace
from time import monotonic

import jax

from selectmdp import console, processes, runs, signals, worlds
from selectmdp.config import MOST_STEPS, TrainConfig, whole_chunks
from selectmdp.spec import SelectError

TRIAL_SECONDS, TRIAL_SHARE, TRIAL_MOST = 4.0, 0.02, 120.0
"""How long the speed is measured: this share of the time, between these bounds; one chunk at least.
A machine with other work is faster in one second and slower in the next."""
TRIAL_STEPS = 10
"""Chunks that the trial pretends to train for: a tenth of them, all that a learner may use to warm
up, is the one that compiles."""
SHARE = 0.85
"""Of the time for training itself; the rest is for evaluations and checkpoints."""


def steps_in(config: TrainConfig, world: worlds.World) -> int:
    """Steps that fit in the config's minutes, with this measurement and compilation counted."""
    assert config.minutes is not None
    begun = monotonic()
    speed, compiling = _speed(config, world)
    spent = monotonic() - begun + compiling  # the training compiles once more
    return processes.told(lambda: _fitting(config, speed, spent))


def trial_seconds(minutes: float) -> float:
    """How long the speed of a training of so many minutes is measured."""
    return min(max(TRIAL_SECONDS, TRIAL_SHARE * 60 * minutes), TRIAL_MOST)


def _fitting(config: TrainConfig, speed: float, spent: float) -> int:
    """Steps at a speed, after some seconds were spent."""
    assert config.minutes is not None
    left = 60 * config.minutes - spent
    steps = int(speed * SHARE * left)
    if steps < config.chunk:
        least = math.ceil((spent + config.chunk / speed / SHARE) / 0.6) / 100
        raise SelectError(
            f"minutes={config.minutes:g}: compiling and one chunk of {config.chunk} steps take "
            f"{least:g}; give more, or steps instead"
        )
    if steps > MOST_STEPS:
        raise SelectError(
            f"minutes={config.minutes:g}: {steps:,} steps would fit, and a run counts to "
            f"{MOST_STEPS:,}; give fewer"
        )
    return whole_chunks(steps - config.chunk + 1, config.chunk)  # rounded down


def _speed(config: TrainConfig, world: worlds.World) -> tuple[float, float]:
    """Steps a second, and the seconds that compiling took; a signal is heard between chunks."""
    assert config.minutes is not None
    trial, wanted = replace(config, steps=config.chunk * TRIAL_STEPS), trial_seconds(config.minutes)
    with ExitStack() as stack:
        caught = stack.enter_context(signals.noted())
        bar = stack.enter_context(console.progress("measuring the speed"))
        stack.enter_context(world.opened())
        engine = world.engine(runs.learner_of(trial, world.env), config.seed)
        first = monotonic()
        running = engine.start()
        running, _ = engine.run(running)
        compiled, done = monotonic(), 0
        seconds = 0.0
        while not done or processes.any_of(seconds < wanted and not caught):
            running, _ = engine.run(running)
            jax.block_until_ready(running.step)
            done, seconds = done + 1, monotonic() - compiled
            bar(int(seconds), int(wanted))
        seconds /= done
        if processes.any_of(bool(caught)):
            raise signals.Stopped(
                "stopped while the speed was measured, before the first step; nothing is saved",
                next(iter(caught), signal.SIGTERM),  # another process may have caught it
            )
    return config.chunk / seconds, max(compiled - first - seconds, 0.0)
