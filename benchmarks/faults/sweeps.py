"""Sweeps on Ray with a worker killed under them: no run lost, none made twice.

The run of the worker must go on in another while the sweep does. Every other sweep then comes to
its end by itself; under the rest the driver is killed too, and they go on by the same command. What
the runs end with is compared with a sweep of the same file by the local engine, undisturbed.
"""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from benchmarks.faults.lab import Lab, Tally
from benchmarks.faults.subject import hashes
from selectmdp.spec import SelectError

FILE = """
task = "circle"
steps = 24576
seed = [0, 1, 2, 3]
evaluations = 6
episodes = 2
options = { num_items = 6, num_select = 2, time_limit = 50 }
settings = { channels = 8 }
"""
RUNS = 4
PATIENCE = 900.0

Awaited = TypeVar("Awaited")


def sweep_killed(lab: Lab, trials: int, seed: int, done: Callable[[], None]) -> Tally:
    """So many sweeps, with both deaths and with that of a worker alone in turn."""
    tally = Tally("ray", about="Ray worker killed in a sweep, every other time the driver too")
    if find_spec("ray") is None:
        tally.notes.append('not tried: pip install "selectmdp[ray]"')
        return tally
    rng = random.Random(f"ray {seed}")
    path = lab.root / "sweep.toml"
    path.write_text(FILE)
    undisturbed = lab.folder("sweep-local")
    _end(started(path, undisturbed, "local", lab.cache), undisturbed)
    for number in range(trials):
        try:
            _one(tally, lab, path, undisturbed, rng, with_driver=number % 2 == 0)
        except SelectError as error:
            tally.lost += 1
            tally.notes.append(str(error))
        tally.trials += 1
        done()
    return tally


def _one(
    tally: Tally,
    lab: Lab,
    path: Path,
    undisturbed: Path,
    rng: random.Random,
    *,
    with_driver: bool,
) -> None:
    out = lab.folder("sweep-ray")
    until = time.monotonic() + PATIENCE
    first = started(path, out, "ray", lab.cache)
    try:
        wait(until, lambda: any(out.glob("runs/*/checkpoints/step-*")))
        _kill(rng.choice(wait(until, lambda: on_ray(out))), with_its_run=rng.random() < 0.5)
        wait(until, lambda: any(each.resumes for each in trainings(out)))
        if not with_driver:
            _judge(tally, out, undisturbed, {}, _end(first, out))
            return
        wait(until, lambda: len(finals(out)) >= 1)
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)  # the driver, and its cluster with it
            first.communicate()
    before = finals(out)
    _judge(tally, out, undisturbed, before, _end(started(path, out, "ray", lab.cache), out))


def _judge(
    tally: Tally,
    out: Path,
    undisturbed: Path,
    before: dict[str, dict[str, str]],
    told: dict[str, Any],
) -> None:
    """A sweep at its end: every run once, those that were done `before` as they were."""
    after = finals(out)
    lost = [name for name in before if after.get(name) != before[name]]
    if lost or len(after) != RUNS:
        tally.lost += 1
        tally.notes.append(f"{out}: {len(after)} runs of {RUNS}; {lost} were lost")
    if told["run_now"] != RUNS - len(before):
        tally.lost += 1
        tally.notes.append(f"{out}: {told['run_now']} runs were made after {len(before)} were done")
    if ends(out) != ends(undisturbed):
        tally.lost += 1
        tally.notes.append(f"{out} did not end as the undisturbed sweep")
    if rows(out) != rows(undisturbed):
        tally.lost += 1
        tally.notes.append(f"{out} did not keep what the undisturbed sweep kept")
    if trainings(out):
        tally.lost += 1
        tally.notes.append(f"{out}: processes are left over")


def started(path: Path, out: Path, engine: str, cache: Path) -> "subprocess.Popen[bytes]":
    """The sweep of a file into a folder, in a session of its own."""
    typed = ["sweep", str(path), "--engine", engine, "--workers", "2", "--out", str(out), "--json"]
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PLATFORMS": "cpu"}
    environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "RAY_ADDRESS": "local"}
    with Path(f"{out}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "selectmdp", *typed],
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            env=environment,
        )


def _end(process: "subprocess.Popen[bytes]", out: Path) -> dict[str, Any]:
    try:
        told, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise SelectError(f"the sweep in {out} hung") from None
    if process.returncode:
        raise SelectError(f"the sweep in {out} failed: {Path(f'{out}.log').read_text()[-500:]}")
    return dict(json.loads(told))


def wait(until: float, what: Callable[[], Awaited]) -> Awaited:
    """What `what` gives once it gives something."""
    while not (found := what()):
        if time.monotonic() > until:
            raise SelectError("the sweep did not come so far")
        time.sleep(0.1)
    return found


def finals(out: Path) -> dict[str, dict[str, str]]:
    """The rows of finished runs; a run that stands there twice is an error."""
    path = out / "sweep-finals.csv"
    if not path.exists():
        return {}
    with path.open() as file:
        rows = list(csv.DictReader(file))
    if len({row["run"] for row in rows}) != len(rows):
        raise SelectError(f"{path} has a run twice")
    return {row["run"]: row for row in rows}


def ends(out: Path) -> dict[str, dict[str, str]]:
    """The hashes of each run's last checkpoint."""
    return {
        run.name: hashes(max((run / "checkpoints").glob("step-*")))
        for run in (out / "runs").iterdir()
        if (run / "checkpoints").is_dir()
    }


def rows(out: Path) -> list[list[dict[str, str]]]:
    """What is kept of the runs, without what a clock, the memory or an engine's cores say."""
    measured = ("seconds", "megabytes", "cores")
    kept = []
    for name in ("sweep-finals.csv", "sweep-curves.csv"):
        with (out / name).open() as file:
            every = [
                {column: row[column] for column in row if column not in measured}
                for row in csv.DictReader(file)
            ]
        kept.append(sorted(every, key=lambda row: (row["run"], int(row.get("step", 0)))))
    return kept


class Training(NamedTuple):
    """A process that trains, and who started it."""

    process: int
    parent: int
    resumes: bool


def trainings(out: Path) -> list[Training]:
    """The processes that train below a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            command = _command(entry)
            if b"train" in command and any(str(out).encode() in part for part in command):
                with suppress(OSError):
                    parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                    found.append(Training(int(entry.name), parent, b"--resume" in command))
    return found


def on_ray(out: Path) -> list[Training]:
    """Those whose parent is a worker of Ray: nobody else is to be killed."""
    parents = {each: _command(Path(f"/proc/{each.parent}"))[0] for each in trainings(out)}
    return [each for each, command in parents.items() if command.startswith(b"ray::")]


def _command(entry: Path) -> list[bytes]:
    try:
        return (entry / "cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return [b""]


def _kill(training: Training, with_its_run: bool) -> None:
    """A worker dies; or its node, and the run saves nothing any more."""
    os.kill(training.parent, signal.SIGKILL)
    if with_its_run:
        with suppress(ProcessLookupError):
            os.kill(training.process, signal.SIGKILL)
