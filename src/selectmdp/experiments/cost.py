"""What a step of training costs as N and K grow (paper, appendix "computation cost").

The paper: 1.16 million steps a day at N = 200, K = 6, linear in K and robust to N. Each size is
trained for some seconds with nothing else in between; compilation is not counted.
"""

import time
from collections.abc import Callable
from pathlib import Path

import jax

from selectmdp import runs, worlds
from selectmdp.config import TrainConfig
from selectmdp.experiments import store
from selectmdp.machine import cores

ITEMS = (25, 50, 100, 200, 400, 800)
PICKS = (1, 2, 4, 6, 8, 12)
ALGORITHM = "isq-i"
COLUMNS = ("preset", "algorithm", "N", "K", "steps_per_second", "cores", "seconds")
SECONDS = {"smoke": 0.5, "standard": 5.0, "full": 20.0}


def sizes() -> list[tuple[int, int]]:
    """(N, K): N at K = 6, then K at N = 50."""
    return list(dict.fromkeys([(n, 6) for n in ITEMS] + [(50, k) for k in PICKS]))


def measure(folder: Path, budget: str, preset: str, progress: Callable[[int, int], None]) -> None:
    """Add the sizes that are missing to `cost.csv`."""
    path = folder / "cost.csv"
    rows = store.read(path, COLUMNS)
    done = {(row["preset"], row["N"], row["K"]) for row in rows}
    for number, (items, picks) in enumerate(sizes()):
        progress(number, len(sizes()))
        if (preset, str(items), str(picks)) in done:
            continue
        speed = steps_per_second(items, picks, preset, SECONDS[budget])
        told = preset, ALGORITHM, items, picks, f"{speed:.1f}", cores(), SECONDS[budget]
        rows.append(dict(zip(COLUMNS, map(str, told), strict=True)))
        store.write(path, COLUMNS, rows)


def steps_per_second(items: int, picks: int, preset: str, seconds: float) -> float:
    """Whole training: acting, stepping, storing, updating; the best of a few turns."""
    options = {"num_items": items, "num_select": picks}
    config = TrainConfig("circle", options, ALGORITHM, preset, {}, 1, 0)
    config = TrainConfig("circle", options, ALGORITHM, preset, {}, 10 * config.chunk, 0)
    world = worlds.world("circle", options)
    engine = world.engine(runs.learner_of(config, world.env), 0)
    running, best = engine.start(), 0.0
    for _ in range(2):  # the first compiles; by the second a replay is past its warm-up
        running, _ = engine.run(running)
    until = time.monotonic() + seconds
    while True:
        started = time.monotonic()
        running, _ = engine.run(running)
        jax.block_until_ready(running.step)
        best = max(best, config.chunk / (time.monotonic() - started))
        if time.monotonic() > until:
            return best
