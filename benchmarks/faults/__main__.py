"""`python -m benchmarks.faults`: every fault in turn, a table for people or JSON for programs."""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.faults import disks, kills, readers, rivals, soak, sweeps
from benchmarks.faults.lab import Lab, Tally, opened
from selectmdp import console
from selectmdp.config import versions
from selectmdp.machine import cores

Fault = Callable[[Lab, int, int, Callable[[], None]], Tally | list[Tally]]
FAULTS: dict[str, tuple[Fault, float, bool]] = {
    "kill-training": (partial(kills.kill, "kill-training"), 0.5, True),
    "kill-checkpoint": (partial(kills.kill, "kill-checkpoint"), 0.5, True),
    "kill-writer": (partial(kills.kill, "kill-writer"), 2.0, True),
    "clock": (partial(kills.kill, "clock"), 0.1, True),
    "full-disk": (disks.full_disk, 0.1, True),
    "read-only": (disks.read_only, 0.1, True),
    "two-processes": (rivals.two_processes, 0.05, True),
    "damage": (readers.damaged, 0.2, False),
    "ray": (sweeps.sweep_killed, 0.01, False),
}
"""By name: what is done, its share of the trials (damage: of each kind), and whether trials can be
made side by side."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every fault; 0 if each was tried and nothing was lost."""
    asked = parsed(arguments)
    began = time.monotonic()
    told: dict[str, Any]
    with opened() as lab:
        if asked.soak is not None:
            told = {"soak": soak.soak(lab, asked.soak, _look)}
            is_clean = told["soak"]["flat"]
        else:
            tallies = tried(lab, asked.only, asked.trials, asked.seed)
            told = {name: sum(getattr(each, name) for each in tallies) for name in COUNTS}
            told["faults"] = [each.to_json() for each in tallies]
            is_clean = all(each.is_clean for each in tallies)
    told |= {
        "seed": asked.seed,
        "seconds": round(time.monotonic() - began, 1),
        "cores": cores(),
        "versions": versions(),
    }
    if asked.out is not None:
        asked.out.write_text(json.dumps(told, indent=1) + "\n")
    console.as_json(told) if asked.json else show(told)
    return 0 if is_clean else 1


COUNTS = ("trials", "lost", "loaded_corrupt", "untyped", "code_run")


def tried(lab: Lab, only: Sequence[str], trials: int, seed: int) -> list[Tally]:
    """The tallies of all faults, or of some."""
    tallies: list[Tally] = []
    for name in only or FAULTS:
        fault, share, side_by_side = FAULTS[name]
        count = max(round(share * trials), 1)
        print(
            f"{name}: {count} trials{' of each kind' * (name == 'damage')}",
            file=sys.stderr,
            flush=True,
        )
        began, done = time.monotonic(), _counter(name, count)
        if side_by_side:
            tallies.append(_side_by_side(fault, lab, count, seed, done))
        else:
            made = fault(lab, count, seed, done)
            tallies += made if isinstance(made, list) else [made]
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return tallies


def _side_by_side(fault: Fault, lab: Lab, count: int, seed: int, done: Callable[[], None]) -> Tally:
    """The trials of a fault, in as many threads as there are cores, each with runs of its own."""
    _ = lab.references
    threads = min(cores(), count)
    shares = [count // threads + (number < count % threads) for number in range(threads)]
    seeds = [random.Random(f"{seed} {number}").getrandbits(32) for number in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        made = list(pool.map(lambda share, seed: fault(lab, share, seed, done), shares, seeds))
    first, *others = [each for each in made if isinstance(each, Tally)]
    for other in others:
        for name in COUNTS:
            setattr(first, name, getattr(first, name) + getattr(other, name))
        first.notes += other.notes
    return first


def show(told: dict[str, Any]) -> None:
    """A table for people."""
    if "soak" in told:
        console.out.print(f"soak: {told['soak']}", soft_wrap=True)
        return
    rows = [
        (each["fault"], *(str(each[name]) for name in COUNTS), each["about"])
        for each in told["faults"]
    ]
    columns = ("fault", "trials", "lost", "loaded corrupt", "untyped", "code run", "")
    console.table("faults", columns, rows, wrap=True)
    for each in told["faults"]:
        for note in each["notes"]:
            console.out.print(f"{each['fault']}: {note}", soft_wrap=True)
    print(f"lost: {told['lost']}, loaded_corrupt: {told['loaded_corrupt']}, {told['seconds']} s")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--trials", type=int, default=200, help="kills; other faults a share of it")
    parser.add_argument(
        "--only", nargs="*", choices=[*FAULTS], default=[], help="some faults alone"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="train, and watch the memory")
    parser.add_argument("--out", type=Path, help="write the JSON here as well")
    parser.add_argument("--json", action="store_true", help="print one object instead of a table")
    return parser.parse_args(arguments)


def _counter(name: str, count: int) -> Callable[[], None]:
    made = 0

    def done() -> None:
        nonlocal made
        made += 1
        if made % max(count // 10, 1) == 0:
            print(f"{name}: {made} made", file=sys.stderr, flush=True)

    return done


def _look(seconds: float, megabytes: float) -> None:
    print(f"soak: {seconds:.0f} s, {megabytes:.0f} MB", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
