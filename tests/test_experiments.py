"""The figures as data, runs as jobs, and what is kept of them: no run lost, none made twice."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.subject import hashes
from selectmdp import cli, processes, runs, tasks
from selectmdp.cli.options import TaskOptions
from selectmdp.config import TrainConfig
from selectmdp.experiments import cost, generalization, local, store, sweeps
from selectmdp.experiments.figures import FIGURES, GENERALIZATION, chosen
from selectmdp.experiments.jobs import (
    Failed,
    Job,
    arguments,
    fingerprint,
    finished,
    jobs_of,
    name_of,
)
from selectmdp.experiments.reproduce import sweep, tasks_of
from selectmdp.experiments.store import Store
from selectmdp.settings import FastSettings
from selectmdp.signals import Stopped
from selectmdp.spec import SelectError, Spec

TINY = TrainConfig(
    task="circle",
    options={"num_items": 5, "num_context": 1, "num_select": 1, "commands": ("stay",)},
    algorithm="isq-i",
    preset="fast",
    settings={"sums": True},
    steps=4096,
    seed=3,
    evaluations=2,
    episodes=2,
)


def result_of(config: TrainConfig, reward: float = 0.25) -> dict[str, Any]:
    return {
        "num_items": 5,
        "num_context": 1,
        "num_select": 1,
        "num_commands": 1,
        "dynamics": "figures",
        "unit": "area",
        "mean_reward": reward,
        "ci95": 0.01,
        "references": {"random": {"mean_reward": 0.1}, "greedy": {"mean_reward": 0.2}},
        "evaluation_steps": 2500,
        "seconds": 12.5,
        "cores": 2,
        "megabytes": 400,
    }


def fake_run(folder: Path, config: TrainConfig, reward: float | None = 0.25) -> Path:
    """A run's folder as training leaves it, without training; no reward: it is not at its end."""
    runs.make_folder(folder)
    runs.create(folder, config, Spec(5, 3, 1, 3, 1, 1))
    header = "step,seconds,loss,epsilon,train_reward,parameter_sets,steps_per_second"
    rows = "0,1.5,,1,,1,,0.05,0.002\n4096,9.25,0.1,0.5,0.2,1,900,0.24,0.003\n"
    (folder / "metrics.csv").write_text(f"{header},eval_reward,eval_ci95\n{rows}")
    if reward is not None:
        (folder / "result.json").write_text(json.dumps(result_of(config, reward)))
    return folder


def test_the_figures_have_the_papers_algorithms_and_four_seeds() -> None:
    isq, others = ("isq-i", "isq-u", "isq-p"), ("myopic", "eq", "rsq", "idqn")
    assert FIGURES["4a"].algorithms == ("isq-i", "vanilla", "sorting")
    assert FIGURES["4b"].algorithms == FIGURES["4c"].algorithms == (*isq, "isq-i-1", *others)
    for name in ("5a", "5b", "5c"):
        assert FIGURES[name].algorithms == (*isq, *others)
    counts = {name: len(figure.configs("standard", "fast")) for name, figure in FIGURES.items()}
    assert counts == {"4a": 36, "4b": 32, "4c": 32, "5a": 28, "5b": 28, "5c": 28}
    assert {config.episodes for config in FIGURES["5b"].configs("standard", "fast")} == {20}


def test_the_full_budget_has_the_papers_steps() -> None:
    assert FIGURES["4b"].configs("full", "paper")[0].steps == 5_000_000
    assert FIGURES["5c"].configs("full", "paper")[0].steps == 10_000_000


@pytest.mark.parametrize("name", FIGURES)
def test_every_config_of_a_figure_makes_its_world_and_learner(name: str) -> None:
    sizes = {"4a": [5, 20, 50], "4b": [50], "4c": [200]}.get(name, [10])
    configs = FIGURES[name].configs("smoke", "fast")
    made = [tasks.make(config.task, **config.options) for config in configs]
    assert sorted({env.spec.num_items for env in made}) == sizes
    for config, env in zip(configs, made, strict=True):
        assert runs.learner_of(config, env).agent.name == config.algorithm


def test_all_stands_for_every_figure_and_an_unknown_name_is_refused_with_those_there_are() -> None:
    assert chosen("all") == ("4a", "4b", "4c", "5a", "5b", "5c", "generalization", "cost")
    assert chosen("5b") == ("5b",)
    with pytest.raises(SelectError, match="reproduce '6': there is 4a, 4b, 4c"):
        chosen("6")


def test_no_two_runs_of_all_figures_have_one_name_unless_they_are_the_same_run() -> None:
    every = [config for each in FIGURES.values() for config in each.configs("standard", "fast")]
    every += [config for each in GENERALIZATION for config in each.configs("standard", "fast")]
    by_name: dict[str, TrainConfig] = {}
    for config in every:
        assert by_name.setdefault(name_of(config), config) == config
    assert len(by_name) == 36 + 32 + 32 + 3 * 28 + 16  # those of pairs are in 4b and 4c


def test_the_papers_preset_generalizes_with_the_network_that_it_has() -> None:
    told = {
        preset: [
            (generalization.network(config), store.told_settings(config.settings))
            for config in GENERALIZATION[0].configs("smoke", preset)
        ]
        for preset in ("fast", "paper")
    }
    paper = "pairs=False;channels=48"
    assert told["fast"] == [("pairs", ""), ("means", paper), ("sums", f"{paper};sums=True")]
    assert told["paper"] == [("means", ""), ("sums", "sums=True")]


def test_runs_wanted_by_a_figure_and_by_generalization_are_made_once() -> None:
    wanted = tasks_of(("4b", "generalization"), "smoke", "fast")
    assert len(wanted) == 8 + 5
    stores = {task.job.name: task.stores for task in wanted if task.generalizes}
    assert stores == {
        f"circle-N{size}-K6-isq-p-{change}seed0": (store,)
        for size, figure in ((50, "4b"), (200, "4c"))
        for change, store in (
            ("", figure),  # kept there though 4c was not asked for: one copy of a run
            ("pairs=False-channels=48-", "generalization"),
            ("pairs=False-channels=48-sums=True-", "generalization"),
        )
    }


def test_a_run_is_named_after_what_it_is_and_typed_as_a_person_would() -> None:
    assert name_of(TINY) == "circle-N5-U1-K1-C1-isq-i-sums=True-seed3"
    typed = "train circle --num-items 5 --num-context 1 --num-select 1 --commands stay"
    typed += " --algorithm isq-i --preset fast --steps 4096 --seed 3 --evaluations 2 --episodes 2"
    assert arguments(TINY) == [*typed.split(), "--set", "sums=true"]


def test_a_name_too_long_for_a_folder_ends_in_a_fingerprint() -> None:
    known = {each.name for each in fields(FastSettings) if isinstance(each.default, float)}
    values = dict.fromkeys(sorted(known)[:7], 0.12345678901234566)
    names = [name_of(replace(TINY, settings=values, seed=seed)) for seed in (0, 1)]
    assert len(names[0]) == len(names[1]) == 150 + 1 + 12
    assert names[0][:150] == names[1][:150]
    assert names[0] != names[1]


def test_a_run_that_was_begun_goes_on_and_one_at_its_end_is_finished(tmp_path: Path) -> None:
    (job,) = jobs_of([TINY])
    assert job.command(tmp_path / "new")[:2] == ["train", "circle"]
    begun = fake_run(tmp_path / "begun", TINY, reward=None)
    assert job.command(begun) == ["train", "--out", str(begun), "--resume", "--json"]
    assert finished(job, begun) is None
    ended = finished(job, fake_run(tmp_path / "ended", TINY))
    assert ended is not None
    assert ended["mean_reward"] == 0.25


def test_a_folder_with_another_run_in_it_is_refused(tmp_path: Path) -> None:
    fake_run(tmp_path / "run", TINY)
    other = Job(name_of(TINY), replace(TINY, steps=8192))
    with pytest.raises(SelectError, match="steps=8192 where the run has 4096"):
        finished(other, tmp_path / "run")


def test_a_result_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    folder = fake_run(tmp_path / "run", TINY)
    for damaged in ('{"mean_rew', "{}", "[]", '{"mean_reward": 1}'):
        (folder / "result.json").write_text(damaged)
        assert finished(Job("x", TINY), folder) is None


def test_a_result_whose_numbers_are_none_is_made_again(tmp_path: Path) -> None:
    folder = fake_run(tmp_path / "run", TINY)
    for changed in (
        {"mean_reward": None},
        {"mean_reward": "0.5"},
        {"mean_reward": math.nan},
        {"mean_reward": True},
        {"ci95": math.inf},
        {"seconds": None},
        {"references": None},
        {"references": {"random": 3}},
        {"references": {"random": {"mean_reward": "x"}}},
    ):
        (folder / "result.json").write_text(json.dumps({**result_of(TINY), **changed}))
        assert finished(Job("x", TINY), folder) is None, changed
    (folder / "result.json").write_text(json.dumps({**result_of(TINY), "ci95": None}))
    assert finished(Job("x", TINY), folder) is not None  # of one episode


def test_a_run_is_kept_with_its_curve_and_then_counts_as_done(tmp_path: Path) -> None:
    (job,) = jobs_of([TINY])
    kept = Store(tmp_path, "4a")
    assert not kept.has(job)
    kept.add(job, fake_run(tmp_path / "run", TINY), result_of(TINY))
    assert kept.has(job)
    (final,) = kept.finals()
    assert (final["N"], final["mean_reward"], final["greedy"]) == ("5", "0.25000", "0.20000")
    assert (final["settings"], final["seed"], final["python"][:2]) == ("sums=True", "3", "3.")
    assert [(row["step"], row["reward"]) for row in kept.curves()] == [
        ("0", "0.05000"),
        ("4096", "0.24000"),
    ]
    kept.add(job, tmp_path / "run", result_of(TINY, 0.5))  # once more: replaced, not doubled
    assert [row["mean_reward"] for row in kept.finals()] == ["0.50000"]
    assert len(kept.curves()) == 2


def test_a_run_that_is_kept_is_done_by_any_name_so_that_a_sweep_may_grow(tmp_path: Path) -> None:
    told = {"task": "circle", "steps": 4096}
    (before,) = jobs_of(sweeps.configs_from(told))
    kept = Store(tmp_path, "sweep")
    kept.add(before, fake_run(tmp_path / "run", before.config), result_of(before.config))
    first, second = jobs_of(sweeps.configs_from({**told, "steps": [4096, 8192]}))
    assert (before.name, first.name) == ("circle-isq-u-seed0", "circle-isq-u-seed0-steps=4096")
    assert kept.has(first)
    assert not kept.has(second)


def test_a_kept_run_of_another_budget_is_refused(tmp_path: Path) -> None:
    (job,) = jobs_of([TINY])
    kept = Store(tmp_path, "4a")
    kept.add(job, fake_run(tmp_path / "run", TINY), result_of(TINY))
    with pytest.raises(SelectError, match=r"steps=4096, asked for is 8192.*another --out"):
        kept.has(Job(job.name, replace(TINY, steps=8192)))


def test_a_kept_run_of_another_world_or_of_other_defaults_is_refused(tmp_path: Path) -> None:
    (job,) = jobs_of([TINY])
    kept = Store(tmp_path, "4a")
    kept.add(job, fake_run(tmp_path / "run", TINY), result_of(TINY))
    for other in (
        replace(TINY, options={**TINY.options, "commands": ("up",)}),
        replace(TINY, settings={**TINY.settings, "epochs": 7}),
    ):
        with pytest.raises(SelectError, match=r"by other options or settings.*another --out"):
            kept.has(Job(job.name, other))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "another version or not ours"),
        ("", "another version or not ours"),
        (",".join(store.CURVES) + "\nx,y\n", "damaged at line 2"),
        (",".join(store.CURVES) + "\n" + "1," * 7 + "1", "damaged at line 2"),
    ],
)
def test_a_csv_file_of_another_version_or_cut_off_is_told(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(SelectError, match=message):
        store.read(tmp_path / "x.csv", store.CURVES)


def test_a_cut_curve_is_made_again_as_its_advice_says(tmp_path: Path) -> None:
    (job,) = jobs_of([TINY])
    kept, run = Store(tmp_path, "4a"), fake_run(tmp_path / "run", TINY)
    kept.add(job, run, result_of(TINY))
    whole = kept.curves_path.read_text()
    kept.curves_path.write_text(whole[:-3])
    with pytest.raises(SelectError, match=r"that line and its run's row in 4a-finals\.csv, and"):
        kept.curves()
    kept.curves_path.write_text(whole[: whole.rindex("\n", 0, -1) + 1])
    assert kept.has(job)  # the line alone would not be enough
    store.write(kept.finals_path, store.FINALS, [])
    assert not kept.has(job)
    kept.add(job, run, result_of(TINY))
    assert kept.curves_path.read_text() == whole
    kept.finals_path.write_text(kept.finals_path.read_text()[:-3])
    with pytest.raises(SelectError, match="delete that line, and the same command makes it again"):
        kept.finals()


class Quiet:
    """Shows nothing."""

    def total(self, count: int, done: int) -> None: ...

    def look(self, running: Any) -> None: ...

    def ended(self, job: Job, result: Any) -> None: ...

    def measuring(self, done: int, total: int) -> None: ...


def make_fakes(jobs: Sequence[Job], root: Path, *, done: Any, **how: Any) -> list[Failed]:
    """An engine that makes what is missing, without training."""
    for job in jobs:
        if finished(job, root / job.name) is None:
            fake_run(root / job.name, job.config)
        done(job, root / job.name)
    return []


def gone(path: Path) -> None:
    path.unlink()


def cut_short(path: Path) -> None:
    path.write_text(path.read_text()[:-3])


def without_its_end(path: Path) -> None:
    path.write_text(path.read_text().rpartition("4096,")[0])


def damaged(path: Path) -> None:
    path.write_text(path.read_text().replace("\n0,1.5,,1", "\nx"))


@pytest.mark.parametrize("harm", [gone, cut_short, without_its_end, damaged])
def test_a_run_without_its_curve_fails_alone_and_its_folder_deleted_it_is_made_again(
    tmp_path: Path, harm: Any
) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "out"
    path.write_text('task = "circle"\nsteps = 4096\nseed = [0, 1, 2]\n')
    jobs = jobs_of(sweeps.configs_of(path))
    bad = out / "runs" / jobs[1].name
    harm(fake_run(bad, jobs[1].config) / "metrics.csv")

    def swept() -> dict[str, Any]:
        more: dict[str, Any] = {"budget": "smoke", "preset": "fast", "workers": 1}
        show = nullcontext(Quiet())
        return sweep(str(path), out=out, show=show, engine=make_fakes, **more)

    said = rf"^{jobs[1].name}: .*delete this run's folder {bad}, .* The same command tries these"
    for _ in range(2):
        with pytest.raises(SelectError, match=said):
            swept()
        kept = {row["run"] for row in Store(out, "sweep").finals()}
        assert kept == {jobs[0].name, jobs[2].name}
    shutil.rmtree(bad)
    assert swept()["run_now"] == 1
    assert len(Store(out, "sweep").finals()) == 3


def test_a_run_whose_config_is_damaged_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = jobs_of([replace(TINY, seed=seed) for seed in (0, 1)])
    for job in jobs:
        fake_run(tmp_path / job.name, job.config)
    (tmp_path / jobs[0].name / runs.CONFIG).write_text("{")
    done: list[str] = []
    failed = local.run_all(jobs, tmp_path, workers=1, done=lambda job, _: done.append(job.name))
    assert done == [jobs[1].name]
    assert [each.job for each in failed] == [jobs[0]]
    assert "config.json cannot be read" in failed[0].told
    assert not failed[0].lasting


def test_finished_runs_are_not_run_again_and_half_made_folders_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = jobs_of([replace(TINY, seed=seed) for seed in (0, 1, 2)])
    fake_run(tmp_path / jobs[0].name, jobs[0].config)
    junk = tmp_path / jobs[1].name
    junk.mkdir()
    (junk / ".config.json.0123456789ab.tmp").write_text("killed here")
    started: list[str] = []

    def pretend(self: Job, folder: Path) -> list[str]:
        started.append(self.name)
        if self.config.seed == 1:
            fake_run(folder, self.config, 0.75)
            return ["--help"]  # a command that ends well
        return ["train", "nonsense"]  # one that does not

    monkeypatch.setattr(Job, "command", pretend)
    done: list[str] = []
    failed = local.run_all(jobs, tmp_path, workers=2, done=lambda job, _: done.append(job.name))
    assert started == [jobs[1].name, jobs[2].name]
    assert sorted(done) == sorted([jobs[0].name, jobs[1].name])
    assert len(failed) == 1
    assert "ended with code 2" in failed[0].told
    assert "nonsense" in failed[0].told
    assert failed[0].lasting


def test_a_folder_with_somebodys_files_in_it_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x" / "checkpoints").mkdir(parents=True)
    (tmp_path / "x" / "notes.txt").write_text("of mine")
    monkeypatch.setattr(Job, "command", lambda self, folder: ["--help"])
    process, _ = local.spawn(Job("x", TINY), tmp_path / "x", one_thread=True)
    assert process.wait() == 0
    names = sorted(path.name for path in (tmp_path / "x").iterdir())
    assert names == ["checkpoints", "notes.txt"]


def test_a_child_whose_disk_or_folder_does_not_serve_ends_otherwise_than_one_with_bad_values(
    tmp_path: Path,
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("of mine")
    for values, code in (TINY, 75), (replace(TINY, options={**TINY.options, "grid": 3}), 2):
        process, log = local.spawn(Job("run", values), tmp_path / "run", one_thread=True)
        assert process.wait() == code, log.read_text()
    typed = [sys.executable, "-m", "selectmdp", *arguments(TINY), "--out", str(tmp_path / "run")]
    assert subprocess.run(typed, check=False, capture_output=True).returncode == 2


class Process:
    """One that ended with a code."""

    def __init__(self, code: int) -> None:
        self.returncode = code

    def poll(self) -> int:
        return self.returncode

    wait = poll


@pytest.mark.parametrize(("deaths", "says"), [(5, ""), (6, "ended with code -9: Killed")])
def test_a_run_whose_process_is_killed_goes_on_up_to_five_times(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    deaths: int,
    says: str,
) -> None:
    begun: list[str] = []

    def spawn(job: Job, folder: Path, **how: Any) -> tuple[Process, Path]:
        begun.append(job.name)
        (tmp_path / "log").write_text("Killed\n")
        if len(begun) > deaths:
            fake_run(folder, TINY)
        return Process(-9 if len(begun) <= deaths else 0), tmp_path / "log"

    monkeypatch.setattr(local, "spawn", spawn)
    monkeypatch.setattr(local, "LOOK", 0.0)
    (job,) = jobs_of([TINY])
    done: list[Job] = []
    failed = local.run_all([job], tmp_path, workers=1, done=lambda job, _: done.append(job))
    said = capsys.readouterr().err
    assert said.count("was killed by signal 9: it goes on from its last checkpoint") == 5
    assert len(begun) == 6
    assert done == ([] if says else [job])
    assert says in "".join(each.told for each in failed)
    assert not any(each.lasting for each in failed)
    assert says in said  # as it happens


def test_the_next_run_begins_before_what_takes_time_after_an_ended_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def spawn(job: Job, folder: Path, **how: Any) -> tuple[Process, Path]:
        told.append(f"begins {job.config.seed}")
        fake_run(folder, job.config)
        return Process(0), tmp_path / "log"

    monkeypatch.setattr(local, "spawn", spawn)
    monkeypatch.setattr(local, "LOOK", 0.0)
    jobs = jobs_of([replace(TINY, seed=seed) for seed in (0, 1)])

    def done(job: Job, folder: Path) -> None:
        told.append(f"done with {job.config.seed}")

    assert local.run_all(jobs, tmp_path, workers=1, done=done) == []
    assert told == ["begins 0", "begins 1", "done with 0", "done with 1"]


@pytest.mark.parametrize(
    ("workers", "runs_to_make", "kept"),
    [
        (3, 4, [True] * 4),
        (3, 3, [True] * 3),
        (3, 2, [False] * 2),
        (3, 1, [False]),
        (2, 4, [False] * 4),
        (4, 4, [False] * 4),
    ],
)
def test_runs_keep_to_a_core_each_where_there_are_as_many(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
    runs_to_make: int,
    kept: list[bool],
) -> None:
    pinned: list[bool] = []

    class Slow(Process):
        """One that ends once the first one's place is taken."""

        def poll(self) -> int | None:
            return 0 if self is first or len(pinned) >= min(workers + 1, runs_to_make) else None

    first = Slow(0)

    def spawn(job: Job, folder: Path, *, own_core: bool, **how: Any) -> tuple[Process, Path]:
        pinned.append(own_core)
        fake_run(folder, job.config)
        return first if len(pinned) == 1 else Slow(0), tmp_path / "log"

    monkeypatch.setattr(local, "spawn", spawn)
    monkeypatch.setattr(local, "LOOK", 0.0)
    monkeypatch.setattr(local, "cores", lambda: 3)
    jobs = jobs_of([replace(TINY, seed=seed) for seed in range(runs_to_make)])
    assert local.run_all(jobs, tmp_path, workers=workers, done=lambda job, folder: None) == []
    assert pinned == kept


@pytest.mark.skipif(sys.platform != "linux", reason="cores are not chosen here")
def test_a_process_keeps_to_a_core_that_no_other_keeps_to_and_lets_it_go_when_killed() -> None:
    every, name = os.sched_getaffinity(0), f"selectmdp-test-{os.getpid()}-"
    code = f"import os; from selectmdp.machine import keep_to_a_core; keep_to_a_core({name!r})"
    code += "; print(*os.sched_getaffinity(0), flush=True); input()"
    begun: list[subprocess.Popen[str]] = []

    def cores_of_another() -> set[int]:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        begun.append(subprocess.Popen([sys.executable, "-c", code], text=True, **pipes))
        assert begun[-1].stdout is not None
        return {int(core) for core in begun[-1].stdout.readline().split()}

    try:
        kept = [cores_of_another() for _ in every]
        assert sorted(kept) == [{core} for core in sorted(every)]
        assert cores_of_another() == every  # none is left
        begun[0].kill()
        begun[0].wait()
        assert cores_of_another() == kept[0]
    finally:
        for each in begun:
            each.kill()
            each.communicate()


@pytest.mark.slow
def test_a_core_of_its_own_changes_no_bit_of_a_run(tmp_path: Path) -> None:
    options = {"num_items": 50, "num_select": 3}
    (job,) = jobs_of([replace(TINY, options=options, settings={}, evaluations=1)])
    for folder, own_core in (("kept", True), ("free", False)):
        where = tmp_path / folder / "run"
        process, log = local.spawn(job, where, one_thread=True, own_core=own_core)
        assert process.wait() == 0, log.read_text()
    kept, free = (tmp_path / folder / "run" / "checkpoints" for folder in ("kept", "free"))
    last = f"step-{4096:012d}"
    assert hashes(kept / last) == hashes(free / last)


SAVES = "signal.signal(signal.SIGTERM, lambda *given: sys.exit(143))"
BAD_ENDS = {
    "deaf": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "full disk": "signal.signal(signal.SIGTERM, lambda *given: sys.exit(75))",
}


@pytest.mark.parametrize("end", BAD_ENDS)
def test_a_stopped_sweep_names_the_runs_that_did_not_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    def spawn(job: Job, folder: Path, **how: Any) -> tuple[Any, Path]:
        does = f"{BAD_ENDS[end] if job.config.seed else SAVES}; print(flush=True); time.sleep(60)"
        typed = [sys.executable, "-c", f"import signal, sys, time; {does}"]
        process = subprocess.Popen(typed, stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout as out:
            out.readline()  # it hears now
        return process, tmp_path / "log"

    monkeypatch.setattr(local, "spawn", spawn)
    monkeypatch.setattr(local, "PATIENCE", 2.0)
    jobs = jobs_of([replace(TINY, seed=seed) for seed in (0, 1)])
    said = f"stopped; {jobs[1].name} were ended before they saved: they go on from their last"
    with pytest.raises(Stopped, match=re.escape(said)) as stopped:
        local.run_all(
            jobs,
            tmp_path,
            workers=2,
            done=lambda job, folder: pytest.fail("none ended"),
            look=lambda running: os.kill(os.getpid(), signal.SIGINT),
        )
    assert stopped.value.signal_number == signal.SIGINT


def test_a_run_that_had_failed_when_a_sweep_was_stopped_is_told_of_with_its_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text("selectmdp: the loss is NaN\n")
    monkeypatch.setattr(local, "spawn", lambda *given, **how: (Process(2), tmp_path / "log"))
    (job,) = jobs_of([TINY])
    with pytest.raises(Stopped, match=r"^stopped; all is saved"):
        local.run_all(
            [job],
            tmp_path,
            workers=1,
            done=lambda job, folder: pytest.fail("none ended"),
            look=lambda running: os.kill(os.getpid(), signal.SIGINT),
        )
    assert f"{job.name} ended with code 2: selectmdp: the loss is NaN" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_heard_the_signal_of_its_group_hears_another_and_still_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    hears = "from selectmdp.signals import noted\nwith noted() as caught:\n print(flush=True)\n"
    saves = f"{hears} while len(caught) < 2: time.sleep(0.1)\nprint('saved'); sys.exit(143)"

    def spawn(job: Job, folder: Path, **how: Any) -> tuple[Any, Path]:
        typed = [sys.executable, "-c", f"import sys, time\n{saves}"]
        process = subprocess.Popen(typed, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        begun.append(process)
        return process, tmp_path / "log"

    def to_the_group(running: Any) -> None:
        for each in (begun[0].pid, os.getpid()):
            os.kill(each, number)

    begun: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(local, "spawn", spawn)
    (job,) = jobs_of([TINY])
    with pytest.raises(Stopped, match="stopped; all is saved"):
        local.run_all([job], tmp_path, workers=1, done=lambda *given: None, look=to_the_group)
    assert begun[0].stdout is not None
    with begun[0].stdout as out:
        assert out.read() == b"saved\n"


def test_a_run_that_fails_is_not_tried_again(tmp_path: Path) -> None:
    (job,) = jobs_of([TINY])
    assert not local.goes_on(job, 2, 0)
    assert not local.goes_on(job, 128 + signal.SIGTERM, 0)


def test_runs_take_the_memory_of_a_gpu_as_they_need_it_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []

    def popen(*what: Any, env: dict[str, str], **more: Any) -> None:
        given.append(env["XLA_PYTHON_CLIENT_PREALLOCATE"])

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    local.spawn(Job("x", TINY), tmp_path / "x", one_thread=True)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    local.spawn(Job("x", TINY), tmp_path / "x", one_thread=True)
    assert given == ["false", "true"]


def test_a_run_of_a_sweep_meets_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[set[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *what, env, **more: given.append(set(env)))
    for name in processes.VARIABLES:
        monkeypatch.setenv(name, "1")
    local.spawn(Job("x", TINY), tmp_path / "x", one_thread=True)
    assert not given[0] & set(processes.VARIABLES)
    assert "PATH" in given[0]


def test_a_run_that_ends_while_it_is_waited_for_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = jobs_of([TINY])
    folder = fake_run(tmp_path / job.name, TINY, reward=None)

    def ends(folder: Path) -> None:  # what the parent that was killed had started
        (folder / "result.json").write_text(json.dumps(result_of(TINY)))

    monkeypatch.setattr(local, "_wait_for_leftover", ends)
    monkeypatch.setattr(local, "spawn", lambda *given, **more: pytest.fail("it was run again"))
    done: list[str] = []
    failed = local.run_all([job], tmp_path, workers=1, done=lambda job, _: done.append(job.name))
    assert (failed, done) == ([], [folder.name])


def test_a_folder_that_somebody_trains_in_for_long_fails_its_own_run_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "PATIENCE", 0.2)
    monkeypatch.setattr(local, "LOOK", 0.05)
    jobs = jobs_of([replace(TINY, seed=seed) for seed in (0, 1)])
    held = fake_run(tmp_path / jobs[0].name, jobs[0].config, reward=None)
    done: list[str] = []

    def pretend(self: Job, folder: Path) -> list[str]:
        if self.config.seed == 0:
            return ["train", "--out", str(folder), "--resume", "--json"]
        fake_run(folder, self.config)
        return ["--help"]

    monkeypatch.setattr(Job, "command", pretend)
    with runs.alone_in(held):
        failed = local.run_all(jobs, tmp_path, workers=1, done=lambda job, _: done.append(job.name))
    assert done == [jobs[1].name]
    assert len(failed) == 1
    assert f"process {os.getpid()} is training here" in failed[0].told
    assert not failed[0].lasting


def test_a_run_whose_parent_went_before_it_began_does_not_begin(tmp_path: Path) -> None:
    typed = [sys.executable, "-c", local.CHILD, "1234567", "0", "--help"]
    gone = subprocess.run(typed, check=False)
    assert gone.returncode == 128 + signal.SIGTERM
    here = [sys.executable, "-c", local.CHILD, str(os.getpid()), "0", "--help"]
    assert b"usage: selectmdp" in subprocess.run(here, check=True, capture_output=True).stdout


def test_no_worker_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SelectError, match="workers=0: must be at least 1"):
        local.run_all((), tmp_path, workers=0, done=lambda job, folder: None)


def test_a_trained_policy_is_played_at_both_sizes_and_over_a_sweep() -> None:
    home, elsewhere = [(50, 20, None), (200, 20, None)], (10, 20, 100, 500, 1000)
    assert generalization.plays("standard", 20) == [
        *home,
        *((played, 4, None) for played in elsewhere),
    ]
    small, large = (figure.configs("standard", "fast")[0] for figure in GENERALIZATION)
    assert small.steps == large.steps == 303_104  # or the one would be at home in a better policy


def test_plays_count_when_all_of_them_are_kept(tmp_path: Path) -> None:
    config = GENERALIZATION[0].configs("smoke", "fast")[0]
    job, rows = Job(name_of(config), config), []
    for played, _, steps in generalization.plays("smoke", 2):
        told = (job.name, "pairs", 50, played, 0, config.steps, "fast", 2, steps, 0.1, 0.01)
        told += (fingerprint(config),)
        rows.append(dict(zip(generalization.COLUMNS, map(str, told), strict=True)))
    path = tmp_path / "generalization.csv"
    store.write(path, generalization.COLUMNS, rows[:-1])
    assert not generalization.is_played(tmp_path, job, "smoke")
    store.write(path, generalization.COLUMNS, rows)
    assert generalization.is_played(tmp_path, job, "smoke")
    for other in (replace(config, steps=81920), replace(config, settings={"epochs": 7})):
        with pytest.raises(SelectError, match=r"holds .* 8192 steps by preset fast.*another --out"):
            generalization.is_played(tmp_path, Job(job.name, other), "smoke")


@pytest.mark.parametrize(
    ("code", "number"),
    [
        (130, signal.SIGINT),
        (143, signal.SIGTERM),
        (-signal.SIGINT, signal.SIGINT),
        (-signal.SIGTERM, signal.SIGTERM),
        (2, None),
        (-signal.SIGKILL, None),
    ],
)
def test_a_play_that_is_stopped_stops_the_sweep_and_one_that_fails_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, number: int | None
) -> None:
    def evaluate(typed: list[str], **how: Any) -> Any:
        return subprocess.CompletedProcess(typed, code, b"", b"selectmdp: oh\n")

    monkeypatch.setattr(subprocess, "run", evaluate)
    (job,) = jobs_of([TINY])
    if number is None:
        with pytest.raises(SelectError, match=r"selectmdp evaluate .*: selectmdp: oh"):
            generalization.play(tmp_path, job, tmp_path / "run", "smoke")
        return
    with pytest.raises(Stopped) as stopped:
        generalization.play(tmp_path, job, tmp_path / "run", "smoke")
    assert stopped.value.signal_number == number


def test_what_is_done_with_a_run_may_be_stopped_and_the_others_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = jobs_of([replace(TINY, seed=seed) for seed in (0, 1)])
    fake_run(tmp_path / jobs[1].name, jobs[1].config)
    begun: list[Process] = []

    class Hears(Process):
        def send_signal(self, number: int) -> None:
            self.returncode = 128 + signal.SIGTERM

        def poll(self) -> Any:
            return self.returncode or None

        def wait(self, patience: float) -> int:
            return self.returncode

    def spawn(job: Job, folder: Path, **how: Any) -> tuple[Process, Path]:
        begun.append(Hears(0))
        return begun[-1], tmp_path / "log"

    def done(job: Job, folder: Path) -> None:
        raise Stopped("stopped while it was played elsewhere", signal.SIGINT)

    monkeypatch.setattr(local, "spawn", spawn)
    with pytest.raises(Stopped, match="stopped; all is saved") as stopped:
        local.run_all(jobs, tmp_path, workers=2, done=done)
    assert stopped.value.signal_number == signal.SIGINT
    assert [each.returncode for each in begun] == [128 + signal.SIGTERM]


def test_cost_is_measured_over_items_and_over_picks_each_size_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(cost.sizes()) == 11  # N = 50, K = 6 is in both rows
    asked: list[tuple[int, int]] = []

    def speed(items: int, picks: int, preset: str, seconds: float) -> float:
        asked.append((items, picks))
        return 1000.0 / items / picks

    monkeypatch.setattr(cost, "steps_per_second", speed)
    cost.measure(tmp_path, "smoke", "fast", lambda done, total: None)
    cost.measure(tmp_path, "smoke", "fast", lambda done, total: None)
    assert asked == cost.sizes()
    rows = store.read(tmp_path / "cost.csv", cost.COLUMNS)
    assert rows[1]["steps_per_second"] == "3.3"
    assert rows[1]["python"][:2] == "3."
    with pytest.raises(SelectError, match=r"for 0\.5 seconds, asked for are 5\.0.*another --out"):
        cost.measure(tmp_path, "standard", "fast", lambda done, total: None)
    cost.measure(tmp_path, "standard", "paper", lambda done, total: None)
    assert len(store.read(tmp_path / "cost.csv", cost.COLUMNS)) == 22


SWEEP = """
task = "circle"
algorithm = ["isq-u", "isq-p"]
steps = [4096, 8192]
seed = [0, 1]
options = { num_items = 8, num_select = 2, commands = [["stay"], ["stay", "up"]] }
settings = { learning_rate = 1e-3 }
"""


def test_a_sweep_is_the_product_of_its_lists(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    configs = sweeps.configs_of(tmp_path / "s.toml")
    assert len(configs) == 2 * 2 * 2 * 2
    first = configs[0]
    assert (first.algorithm, first.steps, first.seed) == ("isq-u", 4096, 0)
    assert first.options == {"num_items": 8, "num_select": 2, "commands": ("stay",)}
    assert first.full_settings.learning_rate == 1e-3
    names = [job.name for job in jobs_of(configs)]
    assert names[0] == "circle-N8-K2-C1-isq-u-learning_rate=0.001-seed0-steps=4096"
    assert len(set(names)) == 16


def test_a_run_asked_for_twice_is_one_and_two_whose_names_are_alike_have_fingerprints() -> None:
    told = {"task": "circle", "seed": [0, 0], "options": {"commands": [["stay"], ["up"]]}}
    jobs = jobs_of(sweeps.configs_from(told))
    assert [(job.name, job.config.options["commands"]) for job in jobs] == [
        (f"circle-C1-isq-u-seed0-{fingerprint(jobs[0].config)}", ("stay",)),
        (f"circle-C1-isq-u-seed0-{fingerprint(jobs[1].config)}", ("up",)),
    ]


@pytest.mark.parametrize("commands", [[["up"], ["stay"]], [["stay"], ["up"]]])
def test_a_value_put_before_or_after_one_that_is_done_leaves_it_done(
    tmp_path: Path, commands: list[list[str]]
) -> None:
    def jobs(*commands: list[str]) -> dict[tuple[str, ...], Job]:
        told = {"task": "circle", "steps": 4096, "options": {"commands": [*commands]}}
        every = jobs_of(sweeps.configs_from(told))
        return {job.config.options["commands"]: job for job in every}

    alone, both = jobs(["stay"])[("stay",)], jobs(*commands)
    kept = Store(tmp_path, "sweep")
    kept.add(alone, fake_run(tmp_path / "run", alone.config), result_of(alone.config))
    assert kept.has(both[("stay",)])
    assert not kept.has(both[("up",)])
    kept.add(both[("up",)], fake_run(tmp_path / "up", both[("up",)].config), result_of(TINY))
    assert len(kept.finals()) == 2
    assert kept.has(jobs(["up"])[("up",)])


def test_a_range_of_items_is_swept_as_it_is_typed() -> None:
    (job,) = jobs_of(sweeps.configs_from({"task": "circle", "options": {"num_items": [[20, 50]]}}))
    assert job.name == "circle-N20:50-isq-u-seed0"
    assert job.command(Path("nowhere"))[:4] == ["train", "circle", "--num-items", "20:50"]


def test_each_variant_of_a_sweep_lies_over_the_rest_and_its_lists_are_swept_too() -> None:
    configs = sweeps.configs_from(
        {
            "task": "circle",
            "seed": [0, 1],
            "settings": {"epochs": 3},
            "variants": [{}, {"algorithm": "isq-p", "settings": {"minibatch": [16, 64]}}],
        }
    )
    told = [(each.algorithm, each.seed, dict(each.settings)) for each in configs]
    assert told == [
        ("isq-u", 0, {"epochs": 3}),
        ("isq-u", 1, {"epochs": 3}),
        ("isq-p", 0, {"epochs": 3, "minibatch": 16}),
        ("isq-p", 0, {"epochs": 3, "minibatch": 64}),
        ("isq-p", 1, {"epochs": 3, "minibatch": 16}),
        ("isq-p", 1, {"epochs": 3, "minibatch": 64}),
    ]


def test_the_ablation_has_the_preset_and_every_change_on_the_same_seeds() -> None:
    jobs = jobs_of(sweeps.configs_of(Path(__file__).parent.parent / "benchmarks" / "ablation.toml"))
    names = [job.name for job in jobs]
    assert len(set(names)) == len(names) == 34
    assert {job.config.seed for job in jobs} == {0, 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task = ", "is no TOML"),
        ('algorithm = "isq-u"', "which task"),
        ('task = "circle"\nalgoritm = "isq-u"', "no name 'algoritm'; there are task, algorithm"),
        ('task = "circle"\nseed = []', "seed=\\[\\]: give at least one value"),
        ('task = "circle"\nseed = [0, -1]', "seed=-1: must not be negative"),
        ('task = "circle"\noptions = 3', "options=3 must be a table"),
        ('task = "circle"\nsettings = { pace = 1 }', "no setting 'pace'"),
        ('task = "--json"', "task '--json' is none of circle"),
        ("task = 3", "task 3 is none of circle"),
        ('task = "circle"\noptions = { json = "evil:make" }', "circle has no such option"),
        ('task = "circle"\noptions = { commands = [["--json"]] }', "--json"),
        ('task = "circle"\nvariants = 3', "variants=3 must be tables"),
        ('task = "circle"\ntrials = 3', "trials=3: is for a search"),
        (
            'task = "league"\noptions = { formation = [[1, 4, 4, 2]] }',
            r"options.formation=\(1, 4, 4, 2\): `selectmdp train` has no such option",
        ),
        ('task = "circle"\n[[variants]]\npase = 1', "no name 'pase'; there are task"),
    ],
)
def test_a_sweep_that_is_wrong_says_what_and_where(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(SelectError, match=message):
        sweeps.configs_of(path)
    with pytest.raises(
        SelectError, match=r"cannot be read: No such file.*, and no figure: those are 4a, 4b"
    ):
        sweeps.configs_of(tmp_path / "none.toml")


def test_the_options_of_a_sweep_are_those_of_train() -> None:
    assert tuple(each.name for each in fields(TaskOptions)) == sweeps.OPTIONS


def test_a_sweep_of_more_runs_than_anybody_makes_is_refused_before_any_is_described() -> None:
    many = list(range(200))
    told = {"task": "circle", "seed": many, "steps": many, "evaluations": many, "episodes": many}
    with pytest.raises(SelectError, match=r"make 1,600,000,000 runs, more than the 100,000 of one"):
        sweeps.configs_from(told)


def test_what_the_command_line_refuses_is_told_without_its_box(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("╭─ Oh ─╮\n│ no --way │\n╰──────╯\n")
    said = local.fault(Job("x", TINY), 2, tmp_path / "x.log")
    assert said.told.startswith("x ended with code 2: no --way (")


@pytest.mark.parametrize(
    ("code", "lasting"), [(2, True), (75, False), (1, False), (130, False), (143, False)]
)
def test_only_what_is_refused_for_its_values_would_fail_again(
    tmp_path: Path, code: int, lasting: bool
) -> None:
    (tmp_path / "x.log").write_text("why\n")
    assert local.fault(Job("x", TINY), code, tmp_path / "x.log").lasting is lasting


def test_a_budget_or_preset_for_a_file_that_has_its_own_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.toml").write_text('task = "circle"\n')
    for given in (["--budget", "smoke"], ["--preset", "paper"]):
        with pytest.raises(SystemExit):
            cli.main(["sweep", str(tmp_path / "s.toml"), *given])
        assert f"{given[1]}: is for figures of the paper" in capsys.readouterr().err
