"""What a step of training costs as N and K grow (paper, appendix "computation cost").

The paper: 1.16 million steps a day at N = 200, K = 6, linear in K and robust to N. Each size is
trained for some seconds with nothing else in between; compilation is not counted.
"""

import time
from collections.abc import Callable
from pathlib import Path

import jax

from selectmdp import runs, worlds
from selectmdp.config import TrainConfig, versions
from selectmdp.experiments import store
from selectmdp.machine import cores
from selectmdp.spec import SelectError

ITEMS = (25, 50, 100, 200, 400, 800)
PICKS = (1, 2, 4, 6, 8, 12)
ALGORITHM = "isq-i"
COLUMNS = (
    *("preset", "algorithm", "N", "K", "steps_per_second", "cores", "seconds"),
    *("selectmdp", "jax", "numpy", "python", "machine"),
)
SECONDS = {"smoke": 0.5, "standard": 5.0, "full": 20.0}


def sizes() -> list[tuple[int, int]]:
    """(N, K): N at K = 6, then K at N = 50."""
    return list(dict.fromkeys([(n, 6) for n in ITEMS] + [(50, k) for k in PICKS]))


def measure(folder: Path, budget: str, preset: str, progress: Callable[[int, int], None]) -> None:
    """Add the sizes that are missing to `cost.csv`; one measured for another time is refused."""
    path = folder / "cost.csv"
    rows = store.read(path, COLUMNS)
    mine = [row for row in rows if row["preset"] == preset]
    other = next((row for row in mine if row["seconds"] != str(SECONDS[budget])), None)
    if other is not None:
        raise SelectError(
            f"{path} holds N = {other['N']}, K = {other['K']} measured for {other['seconds']} "
            f"seconds, asked for are {SECONDS[budget]}: choose another --out for another budget"
        )
    done = {(row["N"], row["K"]) for row in mine}
    for number, (items, picks) in enumerate(sizes()):
        progress(number, len(sizes()))
        if (str(items), str(picks)) in done:
            continue
        speed = steps_per_second(items, picks, preset, SECONDS[budget])
        told = {
            **{"preset": preset, "algorithm": ALGORITHM, "N": items, "K": picks},
            **{"steps_per_second": f"{speed:.1f}", "cores": cores(), "seconds": SECONDS[budget]},
            **versions(),
        }
        rows.append({name: str(told[name]) for name in COLUMNS})
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
