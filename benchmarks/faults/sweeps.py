"""A sweep on Ray, with a worker killed under it and then the driver: no run lost, none made twice.

The sweep goes on by the same command. What its runs end with is compared with a sweep of the same
file by the local engine, which nothing disturbed.
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
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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


def sweep_killed(lab: Lab, trials: int, seed: int, done: Callable[[], None]) -> Tally:
    """So many sweeps, each with both deaths."""
    tally = Tally("ray", about="Ray worker, then Ray driver, killed in a sweep")
    if find_spec("ray") is None:
        tally.notes.append('not tried: pip install "selectmdp[ray]"')
        return tally
    rng = random.Random(f"ray {seed}")
    path = lab.root / "sweep.toml"
    path.write_text(FILE)
    undisturbed = lab.folder("sweep-local")
    _end(_started(path, undisturbed, "local", lab.cache), undisturbed)
    for _ in range(trials):
        _one(tally, lab, path, undisturbed, rng)
        tally.trials += 1
        done()
    return tally


def _one(tally: Tally, lab: Lab, path: Path, undisturbed: Path, rng: random.Random) -> None:
    out = lab.folder("sweep-ray")
    until = time.monotonic() + PATIENCE
    first = _started(path, out, "ray", lab.cache)
    try:
        _wait(until, lambda: any(out.glob("runs/*/checkpoints/*")))
        os.kill(rng.choice(sorted(set(trainings(out).values()))), signal.SIGKILL)  # a worker
        _wait(until, lambda: len(finals(out)) >= 1)
    finally:
        os.killpg(first.pid, signal.SIGKILL)  # the driver, and its cluster with it
        first.wait()
    before = finals(out)
    told = _end(_started(path, out, "ray", lab.cache), out)
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
    if trainings(out):
        tally.lost += 1
        tally.notes.append(f"{out}: processes are left over")


def _started(path: Path, out: Path, engine: str, cache: Path) -> "subprocess.Popen[bytes]":
    typed = ["sweep", str(path), "--engine", engine, "--workers", "2", "--out", str(out), "--json"]
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, "-m", "selectmdp", *typed],
        stdout=subprocess.PIPE,
        stderr=Path(f"{out}.log").open("ab"),
        start_new_session=True,
        env=environment,
    )


def _end(process: "subprocess.Popen[bytes]", out: Path) -> dict[str, Any]:
    try:
        told, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise SelectError(f"the sweep in {out} hung") from None
    if process.returncode:
        raise SelectError(f"the sweep in {out} failed: {Path(f'{out}.log').read_text()[-500:]}")
    return dict(json.loads(told))


def _wait(until: float, what: Callable[[], bool]) -> None:
    while not what():
        if time.monotonic() > until:
            raise SelectError("the sweep did not come so far")
        time.sleep(0.1)


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


def trainings(out: Path) -> dict[int, int]:
    """The processes that train below a folder, and the parent of each."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if b"train" in command and any(str(out).encode() in part for part in command):
                found[int(entry.name)] = parent
    return found
