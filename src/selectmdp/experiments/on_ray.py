"""The engine of a Ray cluster: one task a run, on an existing cluster or one started here.

A task is the same process that the local engine starts, so that a run is the same run everywhere.
When a worker or a node dies, Ray makes the task again and the run goes on from its last checkpoint;
the folder of the runs must be one that every node sees.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import ray

from selectmdp import runs, signals
from selectmdp.experiments.jobs import Failed, Job, finished
from selectmdp.experiments.local import (
    LOOK,
    PATIENCE,
    RETRIES,
    Done,
    Look,
    UnderWay,
    fault,
    goes_on,
    settled,
    spawn,
    stopped,
    tell,
)
from selectmdp.machine import cores
from selectmdp.spec import SelectError, check_count

REQUESTS = {"RAY_RUN_CPUS": 1.0, "RAY_RUN_GPUS": 0.0}
"""Variables that say how much of its node a run asks for, and what it asks for otherwise."""


def run_all(
    jobs: Sequence[Job],
    root: Path,
    *,
    workers: int | None,
    done: Done,
    look: Look = lambda running: None,
) -> list[Failed]:
    """Run every job as a Ray task; as `local.run_all`. A cluster that is there keeps its size."""
    cpus, gpus = (_asked(name) for name in REQUESTS)
    started = not ray.is_initialized()
    if started:
        _join(cores() if workers is None else check_count("workers", workers))
    try:
        _warn("CPU", cpus, "RAY_RUN_CPUS")
        _warn("GPU", gpus, "RAY_RUN_GPUS")
        with redirect_stdout(sys.stderr):  # Ray tells there of workers that died
            return _run(jobs, root.resolve(), cpus, gpus, done, look)
    finally:
        if started:
            ray.shutdown()


def _join(workers: int) -> None:
    """The cluster of RAY_ADDRESS or of `ray start` on this machine; else one is started."""
    if workers < 1:
        raise SelectError(f"workers={workers}: must be at least 1")
    quiet: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
    try:
        try:
            ray.init(num_cpus=workers, **quiet)
        except ValueError:  # there is one, which has its own number
            ray.init(**quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        address = os.environ.get("RAY_ADDRESS", "of `ray start`")
        raise SelectError(
            f"the Ray cluster {address} does not answer ({error}): start it, set RAY_ADDRESS to "
            "its address, or to local for one here"
        ) from error


def _warn(kind: str, asked: float, name: str) -> None:
    """Tell of a request that no node can meet now; one may come, if the cluster grows."""
    alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    most = max((node.get(kind, 0.0) for node in alive), default=0.0)
    if asked > most:
        tell(
            f"{name}={asked:g}: no node of the Ray cluster has so many now, at most {most:g}; the "
            f"runs wait until one comes. Ctrl-C, then ask for less, if none will"
        )


def _run(
    jobs: Sequence[Job], root: Path, cpus: float, gpus: float, done: Done, look: Look
) -> list[Failed]:
    task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(_one)
    waiting: dict[Any, Job] = {}
    failed: list[Failed] = []
    with signals.noted() as caught:
        try:
            for job in jobs:
                if finished(job, root / job.name) is not None:
                    done(job, root / job.name)
                else:
                    waiting[task.remote(job, str(root / job.name), cpus <= 1)] = job
            while waiting and not caught:
                look(_under_way(waiting, root))
                ready, _ = ray.wait(list(waiting), timeout=LOOK)
                for each in ready:
                    job = waiting.pop(each)
                    wrong = _end_of(job, each)
                    if wrong is None:
                        done(job, root / job.name)
                    else:
                        failed.append(wrong)
                        tell(wrong.told)
        except signals.Stopped as error:  # so was what `done` does
            caught.append(error.signal_number)
        if caught:
            for each in waiting:
                ray.cancel(each, force=False)
            raise stopped(_unsaved(waiting), caught[0])
    return failed


def _end_of(job: Job, task: Any) -> Failed | None:
    """What a task gave; a worker that died for good could give nothing."""
    try:
        given: Failed | None = ray.get(task)
    except ray.exceptions.RayError as error:
        return Failed(job, f"{job.name}: {error}")
    return given


def _one(job: Job, place: str, one_thread: bool) -> Failed | None:
    """In a worker: train to the end; what went wrong, or None."""
    folder = Path(place)
    # How Ray cancels; shells ignore it for what they put aside, and a worker inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if settled(job, folder) is not None:  # its first worker died when all was done
        return None
    deaths = 0
    while True:
        process, log = spawn(job, folder, one_thread=one_thread)
        try:
            while (code := process.poll()) is None:  # a wait would not hear that it is cancelled
                time.sleep(LOOK)
        finally:
            if process.poll() is None:  # the task was cancelled: save and end
                process.terminate()
                process.wait()
        if finished(job, folder) is not None:
            return None
        if not goes_on(job, code, deaths):
            return fault(job, code, log)
        deaths += 1


def _under_way(waiting: dict[Any, Job], root: Path) -> list[UnderWay]:
    """The runs that a process trains now; the others wait for a place."""
    every = [UnderWay(job, root / job.name) for job in waiting.values()]
    return [each for each in every if (each.folder / runs.HOLDER).exists()]


def _unsaved(waiting: dict[Any, Job]) -> list[str]:
    """The names of the runs that did not end in time."""
    until = time.monotonic() + PATIENCE
    while waiting and time.monotonic() < until:
        ready, _ = ray.wait(list(waiting), timeout=1)
        for each in ready:
            waiting.pop(each)
    return [job.name for job in waiting.values()]


def _asked(name: str) -> float:
    text = os.environ.get(name, REQUESTS[name])
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number < 1e6:  # NaN is neither
        raise SelectError(f"{name}={text}: must be a number, 0 or more")
    return number
