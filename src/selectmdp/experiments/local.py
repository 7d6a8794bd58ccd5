"""The engine of this machine: one process a run, as many side by side as there are cores.

A run that was broken off goes on from its checkpoint, and so does one whose process was killed, as
where memory ran out. Children end, after saving, when their parent does; Ctrl-C reaches them all.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from selectmdp import console, machine, processes, runs, signals
from selectmdp.experiments.jobs import Failed, Job, finished
from selectmdp.files import told
from selectmdp.machine import compiled_cache, cores
from selectmdp.spec import SelectError, check_count

LOOK = 0.5
"""Seconds between two looks at the running processes."""
PATIENCE = 60.0
"""Seconds that a run has to save and end, also one left over by a killed parent."""
RETRIES = 5
"""How often a run goes on whose process, or whose worker on Ray, was killed."""

CHILD = """
import ctypes, os, signal, sys
parent, own_core = int(sys.argv.pop(1)), sys.argv.pop(1) == "1"
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for what they put aside
if sys.platform == "linux":  # SIGTERM, which saves, when the parent is gone (PR_SET_PDEATHSIG)
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    if os.getppid() != parent:  # it went before that
        sys.exit(128 + signal.SIGTERM)
from selectmdp.cli import main
from selectmdp.machine import keep_to_a_core
if own_core:
    keep_to_a_core()
main(place=75)
"""
"""`selectmdp`, as a child that does not outlive its parent; no fork, which threads forbid."""
REFUSED = 2
"""How a child ends whose values are at fault; where its place is, by 75, EX_TEMPFAIL of sysexits.h.
Who was stopped, or broke, could not say what was wrong."""


class UnderWay(NamedTuple):
    """A run that has begun."""

    job: Job
    folder: Path


class Running(NamedTuple):
    """A run and its process."""

    job: Job
    folder: Path
    process: "subprocess.Popen[bytes]"
    log: Path
    deaths: int
    """Processes of it that were killed before this one."""


Look = Callable[[Sequence[UnderWay]], None]
Done = Callable[[Job, Path], None]


def run_all(
    jobs: Sequence[Job],
    root: Path,
    *,
    workers: int | None,
    done: Done,
    look: Look = lambda running: None,
) -> list[Failed]:
    """Run every job in `root`/its name; `done` hears of each that ends well, finished ones at once.

    Gives the runs that failed; the others went on.
    """
    side_by_side = cores() if workers is None else check_count("workers", workers)
    if side_by_side < 1:
        raise SelectError(f"workers={workers}: must be at least 1")
    left, running, failed = list(jobs), list[Running](), list[Failed]()
    ended: list[UnderWay] = []
    with signals.noted() as caught:
        try:
            while (left or running or ended) and not caught:
                while left and len(running) < side_by_side:
                    job = left.pop(0)
                    folder = root / job.name
                    if settled(job, folder) is not None:
                        done(job, folder)
                    else:
                        running.append(_begun(job, folder, side_by_side, len(left) + len(running)))
                while ended:  # after others have begun: no core waits while `done` takes its time
                    done(*ended.pop(0))
                look([UnderWay(each.job, each.folder) for each in running])
                time.sleep(LOOK if running else 0.0)
                if caught:
                    break
                for each in [each for each in running if each.process.poll() is not None]:
                    running.remove(each)
                    if finished(each.job, each.folder) is not None:
                        ended.append(UnderWay(each.job, each.folder))
                    elif goes_on(each.job, each.process.returncode, each.deaths):
                        others, deaths = len(left) + len(running), each.deaths + 1
                        running.append(_begun(*each[:2], side_by_side, others, deaths))
                    else:
                        failed.append(fault(each.job, each.process.returncode, each.log))
                        tell(failed[-1].told)
        except signals.Stopped as error:  # so was what `done` does
            caught.append(error.signal_number)
        finally:
            unsaved = _end(running, signal.SIGINT if signal.SIGTERM in caught else signal.SIGTERM)
    if caught:
        raise stopped(unsaved, caught[0])
    return failed


def stopped(unsaved: Sequence[str], signal_number: int) -> signals.Stopped:
    """What to tell of runs that were to save and end; some may not have saved."""
    saved = "all is saved"
    if unsaved:
        saved = (
            f"{', '.join(unsaved)} were ended before they saved: they go on from their last "
            "checkpoint. All else is saved"
        )
    return signals.Stopped(f"stopped; {saved}. The same command goes on", signal_number)


def settled(job: Job, folder: Path) -> Mapping[str, Any] | None:
    """As `finished`, once no run that a killed parent left over is at it any more."""
    result = finished(job, folder)
    if result is None and folder.exists():
        _wait_for_leftover(folder)
        result = finished(job, folder)
    return result


def goes_on(job: Job, code: int, deaths: int) -> bool:
    """Whether a run that ended so is tried again: who was killed could not say what was wrong."""
    if code >= 0 or deaths >= RETRIES:
        return False
    tell(f"{job.name} was killed by signal {-code}: it goes on from its last checkpoint")
    return True


def tell(text: str) -> None:
    """Say at once what a person may want to look at."""
    console.aside.print(text, soft_wrap=True)


def spawn(
    job: Job, folder: Path, *, one_thread: bool, own_core: bool = False
) -> tuple["subprocess.Popen[bytes]", Path]:
    """The process that makes a run, or goes on with it, and the file of what it says.

    A core of its own changes no bit of what the run becomes: its code is compiled for one anyhow.
    """
    log = folder.parent / f"{job.name}.log"
    runs.make_folder(log.parent)
    # A run of a sweep meets no other process, whatever the sweep itself was told.
    environment = {k: v for k, v in os.environ.items() if k not in processes.VARIABLES}
    if one_thread:  # runs side by side are fastest so
        environment = machine.one_thread(environment)
    # A GPU may have several runs: none takes most of its memory before it needs it.
    environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # Seeds of one world and algorithm are one program: it is compiled once.
    cache = compiled_cache()
    if cache is not None:
        environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    with told(log):
        log.unlink(missing_ok=True)  # it may be a link, and is not written through
        said = log.open("xb")
    with said:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", CHILD, str(os.getpid()), str(int(own_core))),
                *job.command(folder),
            ],
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=environment,
        )
    return process, log


BORDER = "╭╮╰╯│─ \t"
"""Around what the command line refuses."""


def fault(job: Job, code: int, log: Path) -> Failed:
    """A run that failed, with what it said last."""
    lines = [line.strip(BORDER) for line in log.read_text(errors="replace").splitlines()]
    last = next(filter(None, reversed(lines)), "it said nothing")
    return Failed(job, f"{job.name} ended with code {code}: {last} ({log})", code == REFUSED)


def _begun(job: Job, folder: Path, side_by_side: int, others: int, deaths: int = 0) -> Running:
    # Where there is a run for each core it has one of its own: those that wander are slower by a
    # fifth. The last few, and one alone, are left to the system.
    own_core = 1 < side_by_side == cores() <= others + 1
    process, log = spawn(job, folder, one_thread=side_by_side > 1, own_core=own_core)
    return Running(job, folder, process, log, deaths)


def _wait_for_leftover(folder: Path) -> None:
    """A run whose parent was killed saves and ends; until then its folder is its own.

    Who stays longer is left alone: the next process of that run is refused, and no other run is.
    """
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(SelectError), runs.alone_in(folder):
            return
        time.sleep(LOOK)


def _end(running: Sequence[Running], how: signal.Signals) -> list[str]:
    """Each saves and ends; one that hears nothing is killed. The names of those that did not save.

    `how` is not what this process heard: a run that heard it too would not hold a second back.
    """
    alive = [each for each in running if each.process.poll() is None]
    for each in alive:
        each.process.send_signal(how)
    for each in alive:
        try:
            each.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            each.process.kill()
            each.process.wait()
    unsaved = []
    for each in running:
        code = each.process.returncode
        if code > 0 and each not in alive and not signals.asked_to_end(code):
            tell(fault(each.job, code, each.log).told)  # it had failed by itself
        elif code and not signals.asked_to_end(code):
            unsaved.append(each.job.name)
    return unsaved
