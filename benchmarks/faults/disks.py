"""Disks that are full and folders that may not be written to.

The run must end with a message that a person can act on, its last checkpoint whole; with room, or
with the right to write, it goes on to the same end as ever.
"""

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.faults.lab import Heard, Lab, Tally
from benchmarks.faults.subject import NOBODY, RUNS, Plan

SMALL, LARGE = 50_000, 280_000
"""Bytes of a disk on which a run hardly begins, and of one on which it nearly ends."""
TRIES = 3
"""A fault that comes after a run's end is none, and is tried again so often."""
PLACES = ("", "checkpoints", "tensorboard", "metrics.csv")
"""What of a run may become read-only; a file that is open stays open."""


def full_disk(lab: Lab, trials: int, seed: int, done: Callable[[], None]) -> Tally:
    """A small tmpfs; a limit on the size of files where none can be mounted."""
    tally, rng = Tally("full-disk", about="disk full"), random.Random(f"full {seed}")
    mounted = 0
    for number in range(TRIES * trials):
        if tally.trials == trials:
            break
        preset = [*RUNS][number % len(RUNS)]
        place = lab.folder("disk")
        place.mkdir()
        with small_disk(place, rng.randint(SMALL, LARGE)) as grow:
            most = None if grow is not None else rng.randint(100, 50_000)
            ended = lab.run(place / "run", preset, Plan(most_file=most))
            _judge(tally, lab, place / "run", preset, ended, "make room on the disk|free space")
            if ended.how == "end":  # there was room enough
                lab.judge_end(tally, place / "run", preset)
                continue
            if grow is not None:
                mounted += 1
                grow()
            lab.finish(tally, place / "run", preset)
        tally.trials += 1
        done()
    limited = tally.trials - mounted
    tally.notes.append(f"{mounted} on a small tmpfs, {limited} by a limit on file sizes")
    return tally


def read_only(lab: Lab, trials: int, seed: int, done: Callable[[], None]) -> Tally:
    """Folders and files that turn read-only on the way, for a user without rights."""
    tally, rng = Tally("read-only", about="folder read-only"), random.Random(f"ro {seed}")
    user = NOBODY if os.geteuid() == 0 else None
    for number in range(TRIES * trials):
        if tally.trials == trials:
            break
        preset = [*RUNS][number % len(RUNS)]
        out = lab.folder("locked")
        begun = lab.run(out, preset, Plan(kill_at=rng.randint(20, 200), user=user))
        if begun.how not in ("killed", "end"):
            tally.lost += 1
            tally.notes.append(f"{out} did not begin: {begun.said}")
            continue
        locked, least = rng.choice(PLACES), lab.judge(tally, out, preset, begun.step)
        if rng.random() < 0.5 and locked != "metrics.csv":  # while it runs
            plan = Plan(lock_at=rng.randint(1, 100), locked=locked, user=user)
        else:
            (out / locked).chmod(0o555)
            plan = Plan(user=user)
        ended = lab.run(out, preset, plan)
        _judge(tally, lab, out, preset, ended, "folder that can be written|can write to", least)
        (out / locked).chmod(0o777)
        if ended.how == "end":  # nothing of it was written any more
            lab.judge_end(tally, out, preset)
            continue
        lab.finish(tally, out, preset)
        tally.trials += 1
        done()
    tally.notes.append("as a user without rights" if user else "as the user that runs this")
    return tally


def _judge(
    tally: Tally,
    lab: Lab,
    out: Path,
    preset: str,
    ended: Heard,
    advice: str,
    least: int = -1,
) -> None:
    """A typed message with advice, and every checkpoint that was complete."""
    if ended.how == "end":
        return
    if ended.how != "refused" or not any(each in ended.said for each in advice.split("|")):
        tally.untyped += 1
        tally.notes.append(f"{out}: {ended.how}, {ended.said:.200}")
    lab.judge(tally, out, preset, max(least, ended.step))


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Callable[[], None] | None]:
    """A disk of so many bytes, and how to make it large; None where nothing can be mounted."""
    options = f"size={size},mode=777"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return

    def grow() -> None:
        again = ["mount", "-o", "remount,size=64m", str(place)]
        subprocess.run(again, capture_output=True, check=True)

    try:
        yield grow
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)
