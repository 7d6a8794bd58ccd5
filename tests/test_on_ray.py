"""The engine of Ray: a real cluster of this machine with deaths in it, and what needs none."""

import json
import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_experiments import TINY, Process, fake_run, result_of

from benchmarks.faults import sweeps
from benchmarks.faults.lab import Lab
from selectmdp import checkpoint, runs
from selectmdp.experiments import local
from selectmdp.experiments.jobs import Job, jobs_of
from selectmdp.signals import Stopped
from selectmdp.spec import SelectError

ray = pytest.importorskip("ray", reason='pip install "selectmdp[ray]"')

from selectmdp.experiments import on_ray  # noqa: E402

pytestmark = pytest.mark.slow

SEEDS = [replace(TINY, seed=seed) for seed in (0, 1)]


def test_a_killed_worker_alone_and_with_the_driver_lose_and_repeat_nothing(tmp_path: Path) -> None:
    tally = sweeps.sweep_killed(Lab(tmp_path / "lab"), trials=2, seed=0, done=lambda: None)
    assert tally.notes == []
    assert (tally.trials, tally.lost) == (2, 0)


LONG = sweeps.FILE.replace("24576", "2_000_000_000")
"""Runs that come to no end by themselves."""


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_ctrl_c_saves_every_run_under_way_before_it_says_so(tmp_path: Path, engine: str) -> None:
    path, out = tmp_path / "long.toml", tmp_path / "out"
    path.write_text(LONG)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as shells do for what they put aside
    driver = sweeps.started(path, out, engine, tmp_path / "cache")
    signal.signal(signal.SIGINT, before)
    try:
        begun = sweeps.wait(time.monotonic() + 300, lambda: two_that_save(out))
        os.kill(driver.pid, signal.SIGINT)
        driver.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
    assert driver.returncode == 130
    assert "stopped; all is saved" in Path(f"{out}.log").read_text()
    assert sweeps.trainings(out) == []
    for run, step in begun.items():
        saved = newest(run)
        checkpoint.verify(saved)
        assert int(saved.name.removeprefix("step-")) > step


def two_that_save(out: Path) -> dict[Path, int]:
    """Runs with a checkpoint and its step, once there are two of them."""
    saved = {each.parent.parent for each in out.glob("runs/*/checkpoints/step-*")}
    return (
        {run: int(newest(run).name.removeprefix("step-")) for run in saved}
        if len(saved) == 2
        else {}
    )


def newest(run: Path) -> Path:
    return max((run / "checkpoints").glob("step-*"))


def test_a_cluster_that_is_there_keeps_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def init(**given: Any) -> None:
        asked.append(given)
        if "num_cpus" in given:
            raise ValueError("When connecting to an existing cluster, num_cpus … must not be")

    monkeypatch.setattr(ray, "init", init)
    on_ray._join(3)
    assert [each.get("num_cpus") for each in asked] == [3, None]


def test_a_cluster_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**given: Any) -> None:
        raise ConnectionError("nobody there")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setenv("RAY_ADDRESS", "far:6379")
    with pytest.raises(SelectError, match="cluster far:6379 does not answer"):
        on_ray._join(3)


@pytest.mark.parametrize(
    ("name", "value"), [("RAY_RUN_CPUS", "two"), ("RAY_RUN_GPUS", "-1"), ("RAY_RUN_GPUS", "nan")]
)
def test_a_request_that_is_none_is_refused(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SelectError, match=f"{name}={value}: must be a number, 0 or more"):
        on_ray.run_all((), tmp_path, workers=1, done=lambda job, folder: None)


def test_a_task_made_again_after_its_run_had_ended_does_not_run_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = jobs_of([TINY])
    folder = fake_run(tmp_path / job.name, TINY, reward=None)

    def ends(folder: Path) -> None:
        (folder / "result.json").write_text(json.dumps(result_of(TINY)))

    monkeypatch.setattr(local, "_wait_for_leftover", ends)
    monkeypatch.setattr(on_ray, "spawn", lambda *given, **more: pytest.fail("it was run again"))
    assert on_ray._one(job, str(folder), True) is None


def test_runs_that_do_not_end_in_time_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = {f"task {seed}": job for seed, job in enumerate(jobs_of(SEEDS))}
    tokens = iter(jobs)
    task = SimpleNamespace(remote=lambda *given: next(tokens))
    cancelled: list[str] = []

    def wait(waiting: list[str], timeout: float) -> tuple[list[str], list[str]]:
        if not cancelled:
            os.kill(os.getpid(), signal.SIGINT)
        return [each for each in waiting if each == "task 1" and cancelled], []

    monkeypatch.setattr(ray, "remote", lambda **how: lambda function: task)
    monkeypatch.setattr(ray, "cancel", lambda each, force: cancelled.append(each))
    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(on_ray, "PATIENCE", 0.1)
    name = jobs["task 0"].name
    with pytest.raises(Stopped, match=f"stopped; {re.escape(name)} were ended before they saved"):
        on_ray._run(
            [*jobs.values()], tmp_path, 1, 0, lambda job, folder: None, lambda running: None
        )
    assert cancelled == [*jobs]


def test_what_is_done_with_a_run_may_be_stopped_and_the_others_are_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, cancelled = jobs_of(SEEDS), list[str]()
    fake_run(tmp_path / jobs[1].name, jobs[1].config)

    def done(job: Job, folder: Path) -> None:
        raise Stopped("stopped while it was played elsewhere", signal.SIGTERM)

    task = SimpleNamespace(remote=lambda *given: "task 0")
    monkeypatch.setattr(ray, "remote", lambda **how: lambda function: task)
    monkeypatch.setattr(ray, "cancel", lambda each, force: cancelled.append(each))
    monkeypatch.setattr(ray, "wait", lambda waiting, timeout: (waiting, []))
    with pytest.raises(Stopped, match="stopped; all is saved"):
        on_ray._run(jobs, tmp_path, 1, 0, done, lambda running: None)
    assert cancelled == ["task 0"]


def test_a_run_whose_process_is_killed_goes_on_in_the_same_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = jobs_of([TINY])
    (tmp_path / "log").write_text("Killed\n")
    begun: list[str] = []

    def spawn(job: Job, folder: Path, **how: Any) -> tuple[Process, Path]:
        begun.append(job.name)
        if len(begun) == 3:
            fake_run(folder, TINY)
        return Process(0 if len(begun) == 3 else -9), tmp_path / "log"

    monkeypatch.setattr(on_ray, "spawn", spawn)
    assert on_ray._one(job, str(tmp_path / job.name), True) is None
    assert len(begun) == 3
    begun.extend(["others"] * 10)
    said = on_ray._one(job, str(tmp_path / "other"), True)
    assert said is not None
    assert "ended with code -9: Killed" in said.told
    assert len(begun) == 13 + 6


def test_what_ray_prints_of_a_death_does_not_become_part_of_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "nodes", list)
    monkeypatch.setattr(on_ray, "_run", lambda *given: print("(raylet) A worker died") or [])
    assert on_ray.run_all((), tmp_path, workers=1, done=lambda job, folder: None) == []
    told = capsys.readouterr()
    assert told.out == ""
    assert "A worker died" in told.err


def test_only_what_is_trained_now_is_under_way(tmp_path: Path) -> None:
    (job,) = jobs_of([TINY])
    folder = fake_run(tmp_path / job.name, TINY, reward=None)
    assert on_ray._under_way({"task": job}, tmp_path) == []
    with runs.alone_in(folder):
        assert on_ray._under_way({"task": job}, tmp_path) == [local.UnderWay(job, folder)]
