"""What a step of other people's worlds costs, bare and with our adapter, by the same orders.

python -m benchmarks.thirdparty_steps [benchmarks/results/thirdparty-steps.json]

Both take turns of an episode each, and the best turn of each counts, since other work on the
machine only ever adds.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pyRDDLGym

from examples import mobile, rddl
from selectmdp.interop.edge import made_picks

TURNS = 10


def _competition(domain: str, instance: int) -> Callable[[], Any]:
    return lambda: pyRDDLGym.make(domain, str(instance), vectorized=True)


def _mobile(scenario: str) -> Callable[[], Any]:
    return lambda: gymnasium.make(f"mobile-{scenario}-central-v0").unwrapped


WORLDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "SysAdmin 4": (rddl.sysadmin, _competition("SysAdmin_MDP_ippc2011", 4)),
    "Wildfire 1": (rddl.wildfire, _competition("Wildfire_MDP_ippc2014", 1)),
    "Tamarisk 1": (rddl.tamarisk, _competition("Tamarisk_MDP_ippc2014", 1)),
    "AcademicAdvising 2": (rddl.advising, _competition("AcademicAdvising_MDP_ippc2014", 2)),
    "mobile small": (mobile.small, _mobile("small")),
    "mobile medium": (mobile.medium, _mobile("medium")),
}
"""Ours and theirs."""


def measured(name: str) -> dict[str, Any]:
    """Milliseconds of a step in one world."""
    world, bare = (make() for make in WORLDS[name])
    ours, theirs = [], []
    for seed in range(TURNS):
        taken, sent = adapted(world, seed)
        ours.append(taken)
        theirs.append(stepped(bare, sent, seed))
    return {"world": name, "bare_ms": min(theirs), "adapted_ms": min(ours)}


def adapted(world: Any, seed: int) -> tuple[float, list[Any]]:
    """An episode of random picks: milliseconds of a step, and what their environment was sent."""
    rng, spec = np.random.default_rng(seed), world.spec
    world.reset(seed)
    theirs, sent, taken = world.env.step, [], 0.0

    def noted(orders: Any) -> Any:
        sent.append(orders)
        return theirs(orders)

    world.env.step = noted
    for _ in range(world.time_limit):
        items = rng.permutation(spec.num_items)[: spec.num_select]
        picks = made_picks(items, rng.integers(spec.num_commands, size=len(items)))
        started = time.perf_counter()
        world.step(picks)
        taken += time.perf_counter() - started
    world.env.step = theirs
    return taken / len(sent) * 1e3, sent


def stepped(bare: Any, sent: list[Any], seed: int) -> float:
    """Milliseconds of a step of their environment alone."""
    bare.reset(seed=seed)
    started = time.perf_counter()
    for orders in sent:
        bare.step(orders)
    return (time.perf_counter() - started) / len(sent) * 1e3


def main(out: Path) -> None:
    """Every world, told as it is measured."""
    rows = []
    for name in WORLDS:
        rows.append(measured(name))
        print(f"{name}: bare {rows[-1]['bare_ms']:.2f} ms, adapted {rows[-1]['adapted_ms']:.2f} ms")
    out.write_text(json.dumps({"rows": rows}) + "\n")


if __name__ == "__main__":
    default = Path(__file__).parent / "results" / "thirdparty-steps.json"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
