"""The engine of a Ray cluster: one task a run, on an existing cluster or one started here.

A task is the same process that the local engine starts, so that a run is the same run everywhere.
When a worker or a node dies, Ray makes the task again and the run goes on from its last checkpoint;
the folder of the runs must be one that every node sees.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray

from selectmdp import signals
from selectmdp.experiments.jobs import Job, finished
from selectmdp.experiments.local import LOOK, Done, Look, UnderWay, fault, spawn
from selectmdp.machine import cores

RETRIES = 5
"""How often a run is tried again whose worker died."""
CPUS = 1.0
"""Cores that a run asks for; set RAY_RUN_GPUS to ask for a share of a GPU as well."""


def run_all(
    jobs: Sequence[Job],
    root: Path,
    *,
    workers: int | None,
    done: Done,
    look: Look = lambda running: None,
) -> list[str]:
    """Run every job as a Ray task; as `local.run_all`."""
    root = root.resolve()
    started = not ray.is_initialized()
    if started:
        ray.init(
            address=os.environ.get("RAY_ADDRESS"),
            num_cpus=None if "RAY_ADDRESS" in os.environ else (workers or cores()),
            include_dashboard=False,
            log_to_driver=False,
        )
    try:
        return _run(jobs, root, done, look)
    finally:
        if started:
            ray.shutdown()


def _run(jobs: Sequence[Job], root: Path, done: Done, look: Look) -> list[str]:
    gpus = float(os.environ.get("RAY_RUN_GPUS", "0"))
    task = ray.remote(num_cpus=CPUS, num_gpus=gpus, max_retries=RETRIES)(_one)
    waiting: dict[Any, Job] = {}
    failed: list[str] = []
    with signals.noted() as caught:
        for job in jobs:
            if finished(job, root / job.name) is not None:
                done(job, root / job.name)
            else:
                waiting[task.remote(job, str(root / job.name))] = job
        while waiting and not caught:
            look([UnderWay(job, root / job.name) for job in waiting.values()])
            ready, _ = ray.wait(list(waiting), timeout=LOOK)
            for each in ready:
                job = waiting.pop(each)
                try:
                    wrong = ray.get(each)
                except ray.exceptions.RayError as error:
                    wrong = f"{job.name}: {error}"
                if wrong is None:
                    done(job, root / job.name)
                else:
                    failed.append(wrong)
        if caught:
            for each in waiting:
                ray.cancel(each, force=False)
            _wait_for(waiting)
            raise signals.Stopped("stopped; all is saved. The same command goes on", caught[0])
    return failed


def _one(job: Job, place: str) -> str | None:
    """In a worker: train to the end; what went wrong, or None."""
    folder = Path(place)
    process, log = spawn(job, folder, one_thread=True)
    try:
        code = process.wait()
    finally:
        if process.poll() is None:  # the task was cancelled: save and end
            process.terminate()
            process.wait()
    return None if finished(job, folder) is not None else fault(job, code, log)


def _wait_for(waiting: dict[Any, Job]) -> None:
    until = time.monotonic() + 60
    while waiting and time.monotonic() < until:
        ready, _ = ray.wait(list(waiting), timeout=1)
        for each in ready:
            waiting.pop(each)
