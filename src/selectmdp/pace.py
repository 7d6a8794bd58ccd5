"""How many steps a training makes in some minutes: measured once, before the first of them."""

from dataclasses import replace
from time import monotonic

import jax

from selectmdp import console, runs, worlds
from selectmdp.config import TrainConfig, whole_chunks
from selectmdp.spec import SelectError

TRIAL_SECONDS, TRIAL_CHUNKS = 4.0, 3
"""How long the speed is measured at least."""
SHARE = 0.85
"""Of the time for training itself; the rest is for evaluations and checkpoints."""


def steps_in(config: TrainConfig, world: worlds.World) -> int:
    """Steps that fit in the config's minutes, with this measurement and compilation counted."""
    assert config.minutes is not None
    begun = monotonic()
    speed, compiling = _speed(config, world)
    spent = monotonic() - begun + compiling  # the training compiles once more
    left = 60 * config.minutes - spent
    steps = int(speed * SHARE * left)
    if steps < config.chunk:
        least = (spent + config.chunk / speed / SHARE) / 60
        raise SelectError(
            f"minutes={config.minutes:g}: compiling and one chunk of {config.chunk} steps take "
            f"{least:.1f}; give more, or steps instead"
        )
    return whole_chunks(steps - config.chunk + 1, config.chunk)  # rounded down


def _speed(config: TrainConfig, world: worlds.World) -> tuple[float, float]:
    """Steps a second, and the seconds that compiling took."""
    trial = replace(config, steps=config.chunk * 1000)
    with console.progress("measuring the speed") as bar, world.opened():
        engine = world.engine(runs.learner_of(trial, world.env), config.seed)
        first = monotonic()
        running = engine.start()
        running, _ = engine.run(running)
        compiled, done = monotonic(), 0
        while done < TRIAL_CHUNKS or monotonic() - compiled < TRIAL_SECONDS:
            running, _ = engine.run(running)
            jax.block_until_ready(running.step)
            done += 1
            bar(done, max(done + 1, TRIAL_CHUNKS))
        seconds = (monotonic() - compiled) / done
    return config.chunk / seconds, max(compiled - first - seconds, 0.0)
