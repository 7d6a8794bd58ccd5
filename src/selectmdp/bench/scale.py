"""What large worlds and many environments cost: time of a step, memory of a device, bytes told.

Numbers are of the fast learner on circles, on all devices that JAX has. What a device needs is
told by the compiled program itself, so sizes that no memory here could hold are measured as well:
compiled, and not run. What devices tell each other is read off the program too. The processor's own
time stands beside the clock's, which other work on the machine lengthens.
"""

import math
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from selectmdp import agent, tasks, worlds
from selectmdp.bench.policy import latency
from selectmdp.learners.qlambda import QLambda
from selectmdp.machine import cores, peak_megabytes
from selectmdp.policy import Policy
from selectmdp.settings import FastSettings
from selectmdp.sharing import first_map
from selectmdp.spec import SelectError

PICKS = 10
ACTING = (1_000, 10_000, 100_000)
"""N of the worlds in which a policy selects."""


class Size(NamedTuple):
    """A training: environments and steps of a batch are those of one device."""

    num_items: int
    num_envs: int
    rollout: int = 8
    minibatch: int = 16


RUN = (Size(100, 16), Size(1_000, 16), Size(100_000, 4, 2, 4))
"""Trainings that are run for a few rounds."""
COMPILED = (Size(50, 1_000), Size(100_000, 1_000))
"""Trainings that are only compiled."""


def measure(seconds: float, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Acting, rounds that are run, and programs that are not; `seconds` for each time."""
    if not 0 < seconds < math.inf:
        raise SelectError(f"seconds={seconds}: must be more than 0 and finite")
    total, done = len(ACTING) + len(RUN) + len(COMPILED), 0

    def tick(row: dict[str, Any]) -> dict[str, Any]:
        nonlocal done
        progress(done := done + 1, total)
        return row

    return {
        "cores": cores(),
        "jax": jax.__version__,
        "platform": jax.devices()[0].platform,
        "devices": jax.device_count(),
        "num_select": PICKS,
        "acting": [tick(acting_row(num_items, seconds)) for num_items in ACTING],
        "run": [tick(training_row(size, seconds)) for size in RUN],
        "compiled": [tick(training_row(size, None)) for size in COMPILED],
    }


def acting_row(num_items: int, seconds: float) -> dict[str, Any]:
    """Milliseconds of one `select` of one state; the process's memory at its most so far."""
    env = tasks.make("circle", num_items=num_items, num_select=PICKS)
    made = agent.make("isq-u", env, shape=FastSettings().shape)
    params = made.init(jax.random.key(0))
    policy = Policy(made, params, first_map("unified", PICKS), {})
    items = np.random.default_rng(0).uniform(-0.5, 0.5, (num_items, 3)).astype(np.float32)
    timed = latency(partial(policy.select, items), seconds)
    return {"num_items": num_items, **timed, "peak_megabytes": peak_megabytes()}


def training_row(size: Size, seconds: float | None) -> dict[str, Any]:
    """Memory and bytes of a round's program; with `seconds` it is run, and a step's time told."""
    devices = jax.device_count()
    settings = FastSettings(
        num_envs=size.num_envs * devices,
        rollout=size.rollout,
        minibatch=size.minibatch * devices,
        chunk=size.num_envs * devices * size.rollout,
    )
    env = tasks.make("circle", num_items=size.num_items, num_select=PICKS)
    learner = QLambda(agent.make("isq-u", env, shape=settings.shape), settings, 10**6)
    engine = worlds.JaxWorld("circle", env).engine(learner, 0)
    program, like = engine.compiled(), engine.like()
    memory = program.memory_analysis()
    held = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    parameters = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(like.learner.params))
    row = {
        **size._asdict(),
        "state_megabytes": held / 1e6,
        "working_megabytes": memory.temp_size_in_bytes / 1e6,
        "parameters": parameters,
        "updates_a_round": settings.epochs * settings.chunk // settings.minibatch,
        "all_reduce_bytes": all_reduced(program.as_text()),
    }
    if seconds is not None:
        best, worked = _round_seconds(program, engine.start(), seconds)
        row["step_ms"], row["step_cpu_ms"] = (
            each / settings.chunk * 1e3 for each in (best, worked)
        )
    return row


def all_reduced(program: str) -> int:
    """Bytes of what the all-reduces of a program give, each counted once."""
    told = 0
    for line in re.findall(r"^(.*) all-reduce(?:-start)?\(", program, re.MULTILINE):
        for bits, shape in re.findall(r"[a-z](\d+)\[([\d,]*)\]", line.partition("=")[2]):
            told += int(bits) // 8 * math.prod(int(part) for part in shape.split(",") if part)
    return told


def _round_seconds(program: Any, running: Any, seconds: float) -> tuple[float, float]:
    """The best of as many rounds as fit, after the first; what the processor worked for one."""
    running, _ = jax.block_until_ready(program(running))
    times: list[float] = []
    worked = time.process_time()
    while sum(times) < seconds:
        before = time.perf_counter()
        running, _ = jax.block_until_ready(program(running))
        times.append(time.perf_counter() - before)
    return min(times), (time.process_time() - worked) / len(times)
