"""The run that all the faults are done to: tiny, real, in a process of its own.

Processes are forked from a server that has imported JAX but not started it, which saves seconds a
trial; what they compile is kept in a folder. `Plan` says what happens to a process on its way, in
counts of its file operations and not in seconds, so that a seed repeats it.
"""

import json
import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import jax
import numpy as np

from selectmdp import runs
from selectmdp.checkpoint import Keeper
from selectmdp.runlog import read_rows
from selectmdp.spec import SelectError
from selectmdp.trainer import Trainer
from selectmdp.training import train

WORLD: dict[str, Any] = {"num_items": 6, "num_select": 2, "time_limit": 20}
RUNS: dict[str, dict[str, Any]] = {
    "paper": {
        "algorithm": "isq-p",
        "steps": 1000,
        "settings": {
            "replay_capacity": 200,
            "chunk": 50,
            "target_period": 100,
            "batch_size": 8,
            "channels": 8,
        },
    },
    "fast": {
        "algorithm": "isq-u",
        "steps": 1280,
        "settings": {"num_envs": 8, "rollout": 4, "chunk": 64, "minibatch": 8, "channels": 8},
    },
}
"""By preset: twenty chunks with a checkpoint after each; replay and splits, or neither."""
WRITER = "writer"
"""In the place of a preset: twenty checkpoints without any training between, for many trials."""
BRIEF: dict[str, Any] = {"evaluations": 5, "episodes": 2}
WRITES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}
"""Audit events of Python that change a folder; fsync, which has none, is counted as well."""
PRELOADED = (
    *("jax", "optax", "scipy.stats", "matplotlib.figure", "matplotlib.backends.backend_agg"),
    *("tensorboardX.record_writer", "tensorboardX.proto.event_pb2", "jaxlib.mlir.dialects.chlo"),
    *("selectmdp.training", "selectmdp.curves", "selectmdp.envs", "selectmdp.card"),
)
NOBODY = 65534
"""The user without rights; root may write anywhere."""


@dataclass(frozen=True)
class Plan:
    """What happens to a process, and at which of its file operations."""

    kill_at: int | None = None
    """Killed before this one."""
    cut: float | None = None
    """Where that is an fsync: only this share of the file had reached the disk."""
    lock_at: int | None = None
    """From this one on, `locked` is read-only."""
    locked: str = ""
    user: int | None = None
    """The user to be."""
    most_file: int | None = None
    """Bytes that a file may have: a disk that is full, where none can be mounted."""
    clock: float | None = None
    """Seconds that the clock goes back each time it is asked."""


def context() -> Any:
    """Where processes come from: a server with everything imported and nothing started."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([*PRELOADED, "benchmarks.faults.subject"])
    return made


def process(out: Path, preset: str, cache: Path, plan: Plan, told: Connection) -> None:
    """Train in `out`, or go on there; the other end of `told` hears of every checkpoint."""
    log = os.open(f"{out}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(log, stream)
    if plan.user is not None:
        os.setgid(plan.user)
        os.setuid(plan.user)
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_disable_most_optimizations", True)
    if plan.clock is not None:
        _set_back(plan.clock)
    if plan.most_file is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (plan.most_file, plan.most_file))
    _tell(told)
    watch = Watch(out, plan)
    try:
        if preset == WRITER:
            _write(out)
        elif runs.is_run(out):
            train(None, out=out, resume=True)
        else:
            train("circle", preset=preset, out=out, **WORLD, **BRIEF, **RUNS[preset])
        told.send(("end", watch.count))
    except SelectError as error:
        told.send(("refused", str(error)))
    except BaseException as error:
        told.send(("broken", repr(error)))
        raise


def _write(out: Path) -> None:
    """Checkpoints 1 … 20, or those that are missing after the newest that is whole."""
    keeper = Keeper(out / "checkpoints")
    done = int(keeper.newest_intact()[0].name[5:]) if keeper.steps() else 0
    for step in range(done + 1, 21):
        trees = {
            "policy": {"w": np.full(1000, step, np.float32)},
            "training": {"w": np.full(10_000, step, np.float32), "step": np.asarray(step)},
        }
        if step % 3 == 0:  # before the step, as training does: a step that is there has its best
            keeper.write_best({"policy": trees["policy"]}, {"step": step})
        keeper.write(step, trees, {"step": step})


class Watch:
    """Counts the file operations in a folder, and does what is planned at each."""

    def __init__(self, out: Path, plan: Plan) -> None:
        self.out, self.plan, self.count = out, plan, 0
        self._fsync = os.fsync
        sys.addaudithook(self._hook)
        os.fsync = self._sync  # type: ignore[assignment]

    def _hook(self, event: str, given: tuple[Any, ...]) -> None:
        if event not in WRITES or (event == "open" and not _writes(given)):
            return
        relative = event != "open" and given[-1] not in (-1, None)  # to an open folder: rmtree
        if relative or self._is_below(given[0]):
            self._happens()

    def _is_below(self, path: Any) -> bool:
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        return isinstance(text, str) and f"{text}/".startswith(f"{self.out}/")

    def _sync(self, descriptor: int) -> None:
        is_folder = os.path.isdir(f"/proc/self/fd/{descriptor}")
        self._happens(None if is_folder else descriptor)
        self._fsync(descriptor)

    def _happens(self, descriptor: int | None = None) -> None:
        self.count += 1
        plan = self.plan
        if self.count == plan.lock_at:
            os.chmod(self.out / plan.locked, 0o555)
        if self.count == plan.kill_at:
            if descriptor is not None and plan.cut is not None:
                size = os.fstat(descriptor).st_size
                os.truncate(descriptor, int(plan.cut * size))
            os.kill(os.getpid(), signal.SIGKILL)


def _writes(given: tuple[Any, ...]) -> bool:
    flags = given[2] if len(given) > 2 else 0
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _tell(told: Connection) -> None:
    """Say when a first chunk is made, and each checkpoint that is complete, with its hashes."""
    chunk, write, best = Trainer._chunk, Keeper.write, Keeper.write_best
    begun: list[float] = []

    def first_chunk(self: Trainer, running: Any) -> Any:
        running = chunk(self, running)
        if not begun:
            begun.append(time.monotonic())
            told.send(("begun", os.getpid()))
        return running

    def written(self: Keeper, step: int, trees: Any, meta: Any) -> Path:
        folder = write(self, step, trees, meta)
        told.send(("step", (step, hashes(folder), time.monotonic())))  # heard though it dies next
        return folder

    def written_best(self: Keeper, trees: Any, meta: Any) -> Path:
        folder = best(self, trees, meta)
        told.send(("best", (meta["step"], hashes(folder))))
        return folder

    Trainer._chunk, Keeper.write = first_chunk, written  # type: ignore[method-assign]
    Keeper.write_best = written_best  # type: ignore[method-assign]


def _set_back(seconds: float) -> None:
    """A clock that goes backwards; monotonic time, as promised, does not."""
    now = time.time()

    def earlier() -> float:
        nonlocal now
        now -= seconds
        return now

    time.time = earlier


def hashes(folder: Path) -> dict[str, str]:
    """What a manifest says of each file."""
    content = json.loads((folder / "manifest.json").read_text())
    return {name: entry["sha256"] for name, entry in content["files"].items()}


def end_of(out: Path) -> dict[str, Any]:
    """All that a finished run says, without what a clock says."""
    told: dict[str, Any] = {}
    if runs.is_run(out):
        result = json.loads((out / "result.json").read_text())
        clock = ("seconds", "folder", "megabytes")
        told["result"] = {name: each for name, each in result.items() if name not in clock}
        rows = read_rows(out / "metrics.csv")
        told["rows"] = [{k: v for k, v in row.items() if "second" not in k} for row in rows]
    return {
        **told,
        "state": hashes(max((out / "checkpoints").glob("step-*"))),  # a kill may leave one too many
        "best": hashes(out / "checkpoints" / "best"),
    }
