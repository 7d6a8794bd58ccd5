"""A sweep on a real Ray cluster of this machine, with a worker and then the driver killed."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason='pip install "selectmdp[ray]"')
pytestmark = pytest.mark.slow

FILE = """
task = "circle"
steps = 24576
seed = [0, 1, 2, 3]
evaluations = 6
episodes = 2
options = { num_items = 6, num_select = 2, time_limit = 50 }
settings = { channels = 8 }
"""


def started(path: Path, out: Path) -> "subprocess.Popen[bytes]":
    typed = ["sweep", str(path), "--engine", "ray", "--workers", "2", "--out", str(out), "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "selectmdp", *typed], stdout=subprocess.PIPE, start_new_session=True
    )


def finals(out: Path) -> dict[str, dict[str, str]]:
    path = out / "sweep-finals.csv"
    if not path.exists():
        return {}
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["run"] for row in rows}) == len(rows)
    return {row["run"]: row for row in rows}


def trainings(out: Path) -> dict[int, int]:
    """Processes that train in this folder, with their parents: Ray's workers."""
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


def waited(until: float, what: object) -> None:
    while not what():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_killed_worker_and_a_killed_driver_lose_and_repeat_nothing(tmp_path: Path) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "out"
    path.write_text(FILE)
    until = time.monotonic() + 600
    first = started(path, out)
    try:
        waited(until, lambda: any(out.glob("runs/*/checkpoints/*")))
        worker = next(iter(trainings(out).values()))
        os.kill(worker, signal.SIGKILL)
        waited(until, lambda: len(finals(out)) >= 1)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    before = finals(out)
    second = started(path, out)
    told, _ = second.communicate(timeout=max(until - time.monotonic(), 1))
    assert second.returncode == 0
    after = finals(out)
    assert len(after) == 4
    assert {name: after[name] for name in before} == before
    assert json.loads(told)["run_now"] == 4 - len(before)
    assert trainings(out) == {}
