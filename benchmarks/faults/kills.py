"""SIGKILL, again and again: at any moment of training, and at any file operation of a checkpoint.

A run is killed until it comes to its end all the same; then its end must be that of the run which
nothing disturbed, bit for bit.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.lab import Lab, Tally
from benchmarks.faults.subject import RUNS, WRITER, Plan

Death = tuple[Plan, float | None]
"""What happens to a process, and after how many seconds of training it is killed from outside."""


def at_a_moment(rng: random.Random, lab: Lab, preset: str, out: Path) -> Death:
    """At any moment of a run, by the clock."""
    return Plan(), rng.uniform(0.0, lab.references[preset].seconds)


def while_writing(rng: random.Random, lab: Lab, preset: str, out: Path) -> Death:
    """Before any file operation, or with the file written in part."""
    number = rng.randint(1, lab.references[preset].operations)
    return Plan(kill_at=number, cut=rng.choice([None, rng.random()])), None


def clock_set_back(rng: random.Random, lab: Lab, preset: str, out: Path) -> Death:
    """As `while_writing`; the clock runs backwards, and files get any time of change."""
    for path in out.rglob("*"):
        then = rng.uniform(0, 4e9)
        os.utime(path, (then, then))
    plan, _ = while_writing(rng, lab, preset, out)
    return Plan(plan.kill_at, plan.cut, clock=rng.uniform(0.0, 1e6)), None


Deadly = Callable[[random.Random, Lab, str, Path], Death]
DEATHS: dict[str, tuple[str, Deadly, tuple[str, ...]]] = {
    "kill-training": ("SIGKILL at a random moment of training", at_a_moment, (*RUNS,)),
    "kill-checkpoint": ("SIGKILL at a random file operation of a run", while_writing, (*RUNS,)),
    "kill-writer": ("SIGKILL at one of a mere writer of checkpoints", while_writing, (WRITER,)),
    "clock": ("SIGKILL, with the clock running backwards", clock_set_back, (*RUNS,)),
}
"""By name: in words, what happens, and to which runs."""


def kill(name: str, lab: Lab, trials: int, seed: int, done: Callable[[], None]) -> Tally:
    """So many kills, over as many runs as it takes; `done` hears of each."""
    about, death, presets = DEATHS[name]
    tally, rng = Tally(name, about=about), random.Random(f"{name} {seed}")
    runs = 0
    while tally.trials < trials:
        preset = presets[runs % len(presets)]
        runs += 1
        _run(tally, rng, lab, preset, trials, death, done)
    same = ", each to the same end as undisturbed" * (not tally.lost)
    tally.notes.append(f"{runs} runs{same}")
    return tally


def _run(
    tally: Tally,
    rng: random.Random,
    lab: Lab,
    preset: str,
    trials: int,
    death: Deadly,
    done: Callable[[], None],
) -> None:
    """One run, killed until it ends."""
    out, least = lab.folder(tally.fault), -1
    while tally.trials < trials:
        plan, moment = death(rng, lab, preset, out)
        ended = lab.run(out, preset, plan, moment)
        if ended.how == "end":
            lab.judge_end(tally, out, preset)
            return
        tally.trials += 1
        done()
        if ended.how != "killed":
            tally.lost += 1
            tally.notes.append(f"{out} did not go on: {ended.said}")
            return
        least = lab.judge(tally, out, preset, max(least, ended.step))
    lab.finish(tally, out, preset)
