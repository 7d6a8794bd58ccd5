"""What a policy costs where it is used: a cold start, and the time of one `select`.

A cold start is a plain Python process that loads a checkpoint and selects once, timed from outside;
its parts are told by the process itself. Beside each stands onnxruntime on the exported policy,
where it is installed. The processor's own time stands beside the clock's, which other work on the
machine lengthens. The parameters are untrained: what they are does not matter to speed.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

from selectmdp import checkpoint, runs, tasks
from selectmdp.config import TrainConfig
from selectmdp.machine import cores
from selectmdp.sharing import first_map
from selectmdp.spec import SelectError

ITEMS = (50, 200, 1000)
PICKS = 6
STARTS = 3
"""Cold starts of each kind; the best counts, since other work on the machine only ever adds."""

HEAD = """
import json, sys, time
marks = [time.perf_counter()]
import numpy as np
"""
TAIL = """
marks.append(time.perf_counter())
print(json.dumps([after - before for before, after in zip(marks, marks[1:])]))
"""
OURS = f"""{HEAD}
import selectmdp
selectmdp.load
marks.append(time.perf_counter())
policy = selectmdp.load(sys.argv[1])
marks.append(time.perf_counter())
policy.select(np.zeros(({ITEMS[0]}, 3), np.float32))
{TAIL}"""
THEIRS = f"""{HEAD}
import onnxruntime
marks.append(time.perf_counter())
session = onnxruntime.InferenceSession(sys.argv[1] + ".onnx")
marks.append(time.perf_counter())
shapes = {{"items": (1, {ITEMS[0]}, 3), "present": (1, {ITEMS[0]}), "legal": (1, {ITEMS[0]}, 5)}}
dtypes = {{"items": np.float32, "present": bool, "legal": bool}}
session.run(None, {{name: np.ones(shape, dtypes[name]) for name, shape in shapes.items()}})
{TAIL}"""


def measure(seconds: float, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Cold starts, and the latency of one state at each N; `seconds` for each latency."""
    if not 0 < seconds < math.inf:
        raise SelectError(f"seconds={seconds}: must be more than 0 and finite")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy"
        _save(path)
        ways: dict[str, Callable[[Any], Any]] = {"selectmdp": runs.load(path).select}
        starts = {"selectmdp": OURS, "selectmdp, compiled before": OURS}
        if find_spec("onnx") and find_spec("onnxruntime"):
            ways["onnxruntime"], starts["onnxruntime"] = _runtime(path), THEIRS
        total, done = len(starts) + len(ways) * len(ITEMS), 0
        told: dict[str, Any] = {"cores": cores(), "jax": jax.__version__, "cold": [], "warm": []}
        for name, program in starts.items():
            kept = Path(folder) / "programs" if "before" in name else None
            told["cold"].append({"way": name, **_cold(program, path, kept)})
            progress(done := done + 1, total)
        for name, way in ways.items():
            for num_items in ITEMS:
                timed = latency(partial(way, _items(num_items)), seconds)
                told["warm"].append({"way": name, "num_items": num_items, **timed})
                progress(done := done + 1, total)
    return told


def latency(call: Callable[[], Any], seconds: float) -> dict[str, float]:
    """Milliseconds of a call after the first: of as many as fit the median and the best."""
    call()
    times: list[float] = []
    worked = time.process_time()
    while sum(times) < seconds:
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    worked = time.process_time() - worked
    return {
        "median_ms": median(times) * 1e3,
        "best_ms": min(times) * 1e3,
        "cpu_ms": worked / len(times) * 1e3,
    }


def _save(path: Path) -> None:
    """A checkpoint of the fast preset on circles, untrained, and the same as ONNX."""
    from selectmdp.export import export_run

    env = tasks.make("circle", num_items=ITEMS[0], num_select=PICKS)
    options = {"num_items": ITEMS[0], "num_select": PICKS}
    config = TrainConfig("circle", options, "isq-u", "fast", {}, 1024, 0)
    params = runs.agent_of(config, env).init(jax.random.key(0))
    meta = runs.policy_meta(config, env, 0, first_map("unified", PICKS), 0.0)
    checkpoint.save(path, {"policy": params}, meta)
    if find_spec("onnx"):
        export_run(path, f"{path}.onnx")


def _cold(program: str, path: Path, programs: Path | None) -> dict[str, float]:
    """Seconds of the best start; `programs` is where compiled ones are kept from start to start."""
    kept = {
        "JAX_COMPILATION_CACHE_DIR": str(programs),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    environ = {**os.environ, **(kept if programs else {})}
    command = [sys.executable, "-c", program, str(path)]
    rows = []
    for _ in range(STARTS):
        before, worked = time.perf_counter(), _children_seconds()
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
        whole, worked = time.perf_counter() - before, _children_seconds() - worked
        if done.returncode:
            raise SelectError(f"a process that selects once failed: {done.stderr[-500:]}")
        rows.append([whole, worked, *json.loads(done.stdout)])
    names = ("seconds", "cpu_seconds", "import_seconds", "load_seconds", "select_seconds")
    return dict(zip(names, min(rows), strict=True))


def _children_seconds() -> float:
    """Of the processor, by all processes that have ended."""
    used = os.times()
    return used.children_user + used.children_system


def _runtime(path: Path) -> Callable[[Any], Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(f"{path}.onnx")

    def select(items: Any) -> Any:
        present, legal = np.ones((1, len(items)), bool), np.ones((1, len(items), 5), bool)
        return session.run(None, {"items": items[None], "present": present, "legal": legal})

    return select


def _items(num_items: int) -> Any:
    return np.random.default_rng(0).uniform(-0.5, 0.5, (num_items, 3)).astype(np.float32)
