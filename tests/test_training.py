"""A training can be repeated, stopped, killed and resumed bit for bit, and says what went wrong."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import tiny
from worlds import Shelf

import selectmdp as sm
from selectmdp import checkpoint, machine, pace, runs, signals, training, worlds
from selectmdp.checkpoint import CheckpointError, verify
from selectmdp.config import TrainConfig, versions
from selectmdp.engines import ChunkReport, Compiled, Running
from selectmdp.files import sealed
from selectmdp.runlog import COLUMNS, RunLog, read_rows
from selectmdp.settings import PaperSettings, parsed, with_changes
from selectmdp.signals import Stopped
from selectmdp.spec import SelectError
from selectmdp.trainer import Trainer

haste = tiny.haste


class Killed(BaseException):
    """The process is gone: nothing that follows in it is done."""


@pytest.fixture(scope="module")
def whole() -> Path:
    """A run that nothing disturbed."""
    return tiny.finished()


def at_step(monkeypatch: pytest.MonkeyPatch, step: int, do: Any) -> None:
    """Do something once, between the chunk that ends at `step` and what is due after it."""
    show, done = Trainer._show, []

    def wrapped(self: Trainer, running: Any, report: ChunkReport) -> None:
        show(self, running, report)
        if int(running.step) == step and not done:
            done.append(step)
            do()

    monkeypatch.setattr(Trainer, "_show", wrapped)


def kill() -> None:
    raise Killed


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def same_run(one: Path, other: Path) -> bool:
    results = [json.loads((run / "result.json").read_text()) for run in (one, other)]
    for result in results:
        del result["seconds"], result["folder"], result["megabytes"]
    return (
        tiny.state(one) == tiny.state(other)
        and tiny.rows(one) == tiny.rows(other)
        and results[0] == results[1]
    )


# What a run leaves


def test_the_folder_holds_config_metrics_curve_result_and_checkpoints(whole: Path) -> None:
    names = sorted(path.name for path in whole.iterdir())
    assert names == [
        "checkpoints",
        "config.json",
        "curve.png",
        "metrics.csv",
        "result.json",
        "tensorboard",
    ]
    kept = sorted(path.name for path in (whole / "checkpoints").iterdir())
    assert kept == ["best", "step-000000000350", "step-000000000400"]
    for name in kept:
        verify(whole / "checkpoints" / name)
    assert (whole / "curve.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    events = [path.stat().st_size for path in (whole / "tensorboard").iterdir()]
    assert len(events) == 1
    assert events[0] > 9 * 100  # nine rows of it


def test_the_config_tells_everything_that_the_result_depends_on(whole: Path) -> None:
    told = json.loads((whole / "config.json").read_text())
    config = told["config"]
    assert (config["task"], config["algorithm"], config["preset"]) == ("circle", "isq-p", "paper")
    assert (config["steps"], config["seed"]) == (400, 0)
    assert (config["evaluations"], config["episodes"]) == (4, 8)
    assert config["options"] == tiny.WORLD
    assert config["settings"] == tiny.SETTINGS
    assert config["all_settings"]["learning_rate"] == 1e-3
    assert set(config["all_settings"]) == set(PaperSettings.__dataclass_fields__)
    assert told["spec"]["num_items"] == 6
    assert told["versions"]["jax"] == jax.__version__
    assert set(told["versions"]) >= {"selectmdp", "jaxlib", "numpy", "python", "machine"}


def test_metrics_have_a_row_a_chunk_and_an_evaluation_after_every_second(whole: Path) -> None:
    assert (whole / "metrics.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    rows = read_rows(whole / "metrics.csv")
    assert [row["step"] for row in rows] == [0, 50, 100, 150, 200, 250, 300, 350, 400]
    assert [row["step"] for row in rows if "eval_reward" in row] == [0, 100, 200, 300, 400]
    assert all(row["eval_ci95"] > 0 for row in rows if "eval_reward" in row)
    assert "loss" not in rows[0]
    assert all(row["loss"] > 0 for row in rows[1:])
    assert rows[0]["epsilon"] == 1.0
    assert rows[-1]["epsilon"] == pytest.approx(0.1)
    assert [row["parameter_sets"] for row in rows] == [1, 1, 1, 1, 2, 2, 2, 2, 2]


def test_the_result_stands_beside_random_and_greedy_on_the_same_episodes(whole: Path) -> None:
    result = json.loads((whole / "result.json").read_text())
    assert (result["num_items"], result["num_select"], result["steps"]) == (6, 2, 400)
    assert (result["episodes"], result["evaluation_steps"]) == (8, 20)
    assert list(result["references"]) == ["random", "greedy"]
    for name, judge in worlds.references(worlds.world("circle", tiny.WORLD)).items():
        assert result["references"][name] == judge(episodes=8, steps=20).to_json()
    again = sm.evaluate(sm.make("circle", **tiny.WORLD), sm.load(whole), episodes=8)
    assert again.mean_reward == pytest.approx(result["mean_reward"], rel=1e-5)


def test_the_best_is_the_policy_that_earned_most_on_the_way(whole: Path) -> None:
    seen = {row["step"]: row["eval_reward"] for row in tiny.rows(whole) if "eval_reward" in row}
    best = sm.load(whole / "checkpoints" / "best").about["step"]
    assert seen[best] == max(seen.values())


# The same again


def test_the_same_seed_gives_the_same_run_and_another_seed_another(
    whole: Path, tmp_path: Path
) -> None:
    tiny.train(tmp_path / "again")
    assert same_run(whole, tmp_path / "again")
    other = tiny.train(tmp_path / "other", seed=1)
    assert tiny.state(tmp_path / "other") != tiny.state(whole)
    assert other.to_json()["seed"] == 1
    here = json.loads((whole / "result.json").read_text())
    assert here["episode_rewards"] != list(other.evaluation.episode_rewards)
    assert here["references"]["random"] == other.references["random"].to_json()  # paired seeds


def test_a_stopped_run_resumes_to_the_same_end(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a run"
    at_step(monkeypatch, 150, interrupt)  # before the split
    with pytest.raises(Stopped) as stopped:
        tiny.train(out)
    assert str(stopped.value) == (
        "stopped at step 150 of 400; all is saved. Go on with\n"
        f"  selectmdp train --out '{out}' --resume"
    )
    assert not (out / "result.json").exists()
    assert sm.load(out).about["step"] == 150
    assert sm.load(out).phase_map == (0, 0)
    sm.train(None, out=out, resume=True)
    assert same_run(whole, out)
    assert sm.load(out).phase_map == (0, 1)


FAST: dict[str, Any] = {
    "preset": "fast",
    "steps": 256,
    "settings": {"num_envs": 4, "rollout": 8, "minibatch": 8, "channels": 8, "chunk": 32},
}


def test_a_fast_run_that_was_stopped_resumes_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tiny.train(tmp_path / "whole", **FAST), tmp_path / "stopped"
    assert whole.policy.phase_map == (0, 1)
    at_step(monkeypatch, 96, interrupt)  # before the split
    with pytest.raises(Stopped):
        tiny.train(out, **FAST)
    assert sm.load(out).phase_map == (0, 0)
    sm.train(None, out=out, resume=True)
    assert tiny.state(out, 256) == tiny.state(tmp_path / "whole", 256)
    assert tiny.rows(out) == tiny.rows(tmp_path / "whole")
    again = tiny.train(tmp_path / "other", **FAST, seed=1)
    assert tiny.state(again.folder, 256) != tiny.state(out, 256)


@pytest.mark.slow
def test_minutes_become_steps_once_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "_speed", lambda config, world: (100.0, 10.0))
    monkeypatch.setattr(pace, "monotonic", lambda: 5.0)
    out, how = tmp_path / "run", {**FAST, "steps": None, "minutes": 0.25}
    result = tiny.train(out, **how)
    # 100 steps/s · 0.85 · (15 s − 10 s of compiling), in whole chunks
    assert result.to_json()["steps"] == 416
    assert sm.load(out).about["config"]["minutes"] == 0.25
    state = tiny.state(out, 416)
    by_steps = tiny.train(tmp_path / "by steps", **{**FAST, "steps": 416})
    assert tiny.state(by_steps.folder, 416) == state
    resumed = tiny.train(out, **how, resume=True)
    assert resumed.to_json()["steps"] == 416
    with pytest.raises(SelectError, match=r"minutes=0\.5 where the run has 0\.25"):
        tiny.train(out, **{**how, "minutes": 0.5}, resume=True)


@pytest.mark.slow
def test_the_speed_is_measured_on_the_run_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "trial_seconds", lambda minutes: 0.0)
    config = TrainConfig(
        task="circle", options=tiny.WORLD, algorithm="isq-u", seed=0, **FAST, minutes=1.0
    )
    speed, compiling = pace._speed(config, worlds.world("circle", tiny.WORLD))
    assert speed > 0.0
    assert compiling > 0.0


def test_the_speed_of_a_longer_training_is_measured_for_longer() -> None:
    assert [pace.trial_seconds(minutes) for minutes in (0.5, 3, 5, 12, 600)] == pytest.approx(
        [4, 4, 6, 14.4, 120]
    )


@pytest.mark.slow
def test_the_speed_is_that_of_learning_not_of_warming_up(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[ChunkReport] = []
    run = Compiled.run

    def noting(self: Compiled, running: Running) -> tuple[Running, ChunkReport]:
        running, report = run(self, running)
        reports.append(report)
        return running, report

    monkeypatch.setattr(Compiled, "run", noting)
    monkeypatch.setattr(pace, "trial_seconds", lambda minutes: 0.0)
    paper = {name: tiny.RUN[name] for name in ("algorithm", "preset", "settings", "steps")}
    config = TrainConfig(task="circle", options=tiny.WORLD, seed=0, minutes=1.0, **paper)
    pace._speed(config, worlds.world("circle", tiny.WORLD))
    assert len(reports) == 2
    assert reports[1].updates == 50  # one for each step of the chunk


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_speed_is_measured_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    run, calls = Compiled.run, []

    def interrupted(self: Compiled, running: Running) -> tuple[Running, ChunkReport]:
        calls.append(number)
        if len(calls) == 1:
            signal.raise_signal(number)
        return run(self, running)

    monkeypatch.setattr(Compiled, "run", interrupted)
    with pytest.raises(Stopped, match="before the first step; nothing is saved") as stopped:
        tiny.train(tmp_path / "run", **{**FAST, "steps": None, "minutes": 5})
    assert stopped.value.signal_number == number
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (0.1, "minutes=0.1: compiling and one chunk of 32 steps take 0.18; give more"),
        (-1, "minutes=-1: must be more than 0"),
        (float("nan"), "minutes=nan: must be more than 0"),
        (1e308, "minutes=1e\\+308: must be more than 0 and at most 527040"),
        (527_039, "minutes=527039: .* steps would fit, and a run counts to 2,147,483,647"),
        ("12", "minutes='12': must be a number"),
    ],
)
def test_minutes_that_cannot_be_are_refused(
    minutes: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "_speed", lambda config, world: (100.0, 10.0))
    with pytest.raises(SelectError, match=said):
        tiny.train(tmp_path / "run", **{**FAST, "steps": None, "minutes": minutes})
    assert not (tmp_path / "run").exists()


def test_two_processes_do_not_train_in_one_folder(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "run")
    with (
        runs.alone_in(tmp_path / "run"),
        pytest.raises(SelectError, match=f"process {os.getpid()} is training here"),
    ):
        sm.train(None, out=tmp_path / "run", resume=True)
    with runs.alone_in(tmp_path / "run"):
        pass  # the lock went with its holder


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"71 elsewhere\n", "process 71 on 'elsewhere'"), (b"", "another"), (b"\xff", "another")],
)
def test_whoever_holds_a_folder_is_told_as_far_as_known(
    tmp_path: Path, content: bytes, said: str
) -> None:
    with runs.alone_in(tmp_path):
        (tmp_path / ".process").write_bytes(content)
        with (
            pytest.raises(SelectError, match=f"{said}.* is training here"),
            runs.alone_in(tmp_path),
        ):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_run_killed_before_it_had_a_config_leaves_a_folder_that_can_be_used(
    tmp_path: Path,
) -> None:
    (tmp_path / ".process").write_text("71 here\n")
    (tmp_path / ".config.json.0123456789ab.tmp").write_text('{"conf')
    runs.check_empty(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SelectError, match="exists and is not empty"):
        runs.check_empty(tmp_path)


def test_steps_and_minutes_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SelectError, match="steps=256 and minutes=1: give one of them"):
        tiny.train(tmp_path / "run", **FAST, minutes=1)
    assert not (tmp_path / "run").exists()


def test_a_run_killed_in_its_own_process_resumes_to_the_same_end(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = (
        "import os, signal, sys, tiny\n"
        "from pathlib import Path\n"
        "from selectmdp.trainer import Trainer\n"
        "show = Trainer._show\n"
        "def until_250(self, running, report):\n"
        "    show(self, running, report)\n"
        "    if int(running.step) == 250: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Trainer._show = until_250\n"
        "tiny.train(Path(sys.argv[1]))\n"
    )
    out = tmp_path / "killed"
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", program, str(out)], env=environ, timeout=600)
    assert done.returncode == -signal.SIGKILL
    assert tiny.rows(out) == tiny.rows(whole)[:5]
    tiny.train(out, resume=True)
    assert "resumed at step 200 from" in capfd.readouterr().err
    assert same_run(whole, out)


def test_a_finished_run_resumed_is_judged_again_and_stays_as_it_is(
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "again"
    shutil.copytree(whole, out)
    (out / "result.json").unlink()
    (out / "curve.png").unlink()
    other = {**versions(), "jax": "0.0.1"}
    monkeypatch.setattr("selectmdp.trainer.versions", lambda: other)
    sm.train(None, out=out, resume=True, num_items=6, steps=390, num_context=0, seed=0)
    assert same_run(whole, out)
    said = capfd.readouterr().err
    assert "not bit for bit what it would have been: jax=0.0.1 where the run has" in said
    assert (out / "curve.png").read_bytes() == (whole / "curve.png").read_bytes()


def test_compiled_code_without_a_pool_of_threads_is_told_from_one_with_a_single_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_x=1")
    assert machine.threads() == str(machine.cores())
    monkeypatch.setenv("XLA_FLAGS", f"--xla_x=1 {machine.NO_POOL}")
    assert machine.threads() == f"{machine.cores()}, no pool"
    monkeypatch.setenv("NPROC", "1")
    assert machine.threads() == "1, no pool"
    assert versions()["threads"] == "1, no pool"  # which a resumed run compares


def test_one_thread_keeps_what_else_is_asked_of_the_compiler() -> None:
    flag = "--xla_cpu_multi_thread_eigen=false"
    for before, after in (("", flag), ("--xla_x=1", f"--xla_x=1 {flag}"), (flag, flag)):
        assert machine.one_thread({"XLA_FLAGS": before, "A": "b", "NPROC": "8"}) == {
            "XLA_FLAGS": after,
            "A": "b",
            "NPROC": "1",
        }
    assert machine.one_thread({}) == {"XLA_FLAGS": flag, "NPROC": "1"}


def test_a_damaged_newest_checkpoint_is_passed_over_with_a_word(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "damaged"
    shutil.copytree(whole, out)
    file = out / "checkpoints" / tiny.LAST / "training.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    sm.train(None, out=out, resume=True)
    said = capfd.readouterr().err
    assert f"{file} is damaged" in said
    assert "resumed at step 350" in said
    assert same_run(whole, out)
    for folder in (out / "checkpoints").glob("step-*"):
        (folder / "manifest.json").write_text("{}")
    with pytest.raises(
        CheckpointError, match=r"no intact checkpoint in .*manifest\.json is damaged"
    ):
        sm.train(None, out=out, resume=True)


def test_a_checkpoint_of_another_run_is_not_taken_for_this_one(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "mixed")
    config, spec = runs.config_of(whole)
    runs.create(tmp_path / "mixed", replace(config, seed=7), spec)
    with pytest.raises(CheckpointError, match=f"{tiny.LAST} is of another run: move it away"):
        sm.train(None, out=tmp_path / "mixed", resume=True)


def test_a_config_that_was_changed_by_hand_or_has_no_hash_is_refused(
    whole: Path, tmp_path: Path
) -> None:
    content = json.loads((whole / "config.json").read_text())
    path = tmp_path / "config.json"
    path.write_text((whole / "config.json").read_text().replace('"seed": 0', '"seed": 7'))
    with pytest.raises(SelectError, match="its SHA-256 is not the one in it"):
        runs.config_of(tmp_path)
    del content["sha256"]
    path.write_text(json.dumps(content))
    with pytest.raises(SelectError, match=r"config.json cannot be read"):
        runs.config_of(tmp_path)


def test_a_run_that_ended_before_its_first_checkpoint_begins_anew(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, row = tmp_path / "run", RunLog.row

    def interrupted(self: RunLog, step: int, **values: Any) -> None:
        interrupt()
        row(self, step, **values)

    with monkeypatch.context() as patch:  # Ctrl-C in the first evaluation
        patch.setattr(RunLog, "row", interrupted)
        with pytest.raises(Stopped, match="stopped at step 0 of 400"):
            tiny.train(out)
    assert tiny.rows(out) == tiny.rows(whole)[:1]
    shutil.rmtree(out / "checkpoints" / "step-000000000000")
    at_step(monkeypatch, 150, kill)
    with pytest.raises(Killed):
        sm.train(None, out=out, resume=True)
    assert tiny.rows(out) == tiny.rows(whole)[:3]


def test_ctrl_c_in_the_last_evaluation_is_heard_too(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "late"
    shutil.copytree(whole, out)
    finish = Trainer._finish

    def interrupted(self: Trainer, running: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return finish(self, running)

    monkeypatch.setattr(Trainer, "_finish", interrupted)
    with pytest.raises(Stopped, match="stopped at step 400 of 400"):
        sm.train(None, out=out, resume=True)


# What is refused


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 1}, "seed=1 where the run has 0"),
        ({"steps": 500}, "steps=500 where the run has 400"),
        ({"algorithm": "isq-i"}, "algorithm=isq-i where the run has isq-p"),
        ({"episodes": 9}, "episodes=9 where the run has 8"),
        ({"num_items": 7}, "num_items=7 where the run has 6"),
        ({"num_context": 1}, "num_context=1 where the run has 0"),
        ({"settings": {"channels": 9}}, "channels=9 where the run has 8"),
        ({"settings": {"learning_rate": 0.01}}, "learning_rate=0.01 where the run has 0.001"),
        ({"preset": "fast", "settings": {"rollout": 4}}, "preset=fast where the run has paper"),
        ({"task": "predator-prey"}, "task=predator-prey where the run has circle"),
        ({"task": sm.Circle(**tiny.WORLD)}, "task=Circle where the run has circle"),
        ({"steps": "more"}, "steps='more': must be a whole number"),
        ({"settings": {"channels": 0}}, "channels=0: must be at least 1"),
        ({"settings": [1]}, "settings=[1]: give a dict of names and values"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_resuming_with_another_config_says_what_differs(
    whole: Path, changes: dict[str, Any], said: str
) -> None:
    before = tiny.contents(whole)
    with pytest.raises(SelectError) as refused:
        sm.train(changes.pop("task", None), out=whole, resume=True, **changes)
    assert said in str(refused.value)
    assert tiny.contents(whole) == before


def test_a_folder_that_exists_is_left_alone(whole: Path, tmp_path: Path) -> None:
    before = tiny.contents(whole)
    with pytest.raises(SelectError, match=f"{whole} exists and is not empty: choose another --out"):
        tiny.train(whole)
    assert tiny.contents(whole) == before
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SelectError, match="file is a file: choose another --out"):
        tiny.train(tmp_path / "file")
    with pytest.raises(SelectError, match=r"cannot be made \(Not a directory\): choose another"):
        tiny.train(tmp_path / "file" / "run")
    with pytest.raises(SelectError, match=r"cannot be made \(File name too long\)"):
        tiny.train(tmp_path / ("x" * 300))
    assert tiny.contents(tmp_path) == {"file": b"mine"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "holds no run: there is no config.json in it"),
        ("{", "config.json cannot be read"),
        ("[]", "config.json cannot be read"),
        ({"config": []}, "the config of the run is no object"),
        ({"config": {"task": "circle"}}, "not whole: 'options' is missing"),
    ],
)
def test_a_folder_without_a_readable_config_cannot_be_resumed(
    tmp_path: Path, content: str | dict[str, Any] | None, said: str
) -> None:
    if isinstance(content, dict):
        (tmp_path / "config.json").write_bytes(sealed(content))
    elif content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(SelectError) as refused:
        sm.train(None, out=tmp_path, resume=True)
    assert said in str(refused.value)


@pytest.mark.parametrize("out", [None, "/nowhere/at/all"])
def test_without_a_run_there_is_nothing_to_resume(out: str | None) -> None:
    with pytest.raises(SelectError, match=f"out={out}: there is no run to resume"):
        sm.train("circle", out=out, resume=True)


@pytest.mark.parametrize(
    ("task", "changes", "said"),
    [
        (
            "chess",
            {},
            "task 'chess' is none of circle, predator-prey, league, no id that Gymnasium knows",
        ),
        ("", {}, "task '' is none of circle"),
        (None, {}, "which task? One of circle, predator-prey, league"),
        (3, {}, "task=3: give a name, a world, or a function that makes one"),
        ("circle", {"algorithm": "best"}, "algorithm 'best' is none of isq-i, isq-u, isq-p"),
        ("circle", {"algorithm": ["isq-u"]}, "algorithm=['isq-u']: give its name"),
        ("circle", {"preset": "quick"}, "preset 'quick' is none of fast, paper"),
        ("circle", {"steps": 0}, "steps=0: must be at least 1"),
        ("circle", {"steps": -1}, "steps=-1: must not be negative"),
        ("circle", {"steps": 1e5}, "steps=100000.0: must be a whole number, not float"),
        ("circle", {"steps": 2**31 - 1}, "steps=2147483648: must be at most 2147483647"),
        ("circle", {"seed": 2**32}, "seed=4294967296: must be less than 2**32"),
        ("circle", {"episodes": 0}, "episodes=0: must be at least 1"),
        ("circle", {"evaluations": 0}, "evaluations=0: must be at least 1"),
        (
            "circle",
            {"settings": {"pace": 1}},
            "no setting 'pace': there are channels, pairs, layer_norm",
        ),
        ("circle", {"settings": ["pace"]}, "settings=['pace']: give a dict"),
        ("circle", {"settings": {"chunk": 7}}, "chunk=7: must be a multiple of num_envs"),
        ("circle", {"settings": {"minibatch": 7}}, "minibatch=7: must divide num_envs"),
        ("circle", {"settings": {"discount": 1.5}}, "discount=1.5: must be more than 0 and at"),
        ("circle", {"settings": {"learning_rate": np.nan}}, "learning_rate=nan: must be more"),
        ("circle", {"settings": {"learning_rate": "fast"}}, "learning_rate='fast': must be a num"),
        ("circle", {"settings": {"hidden": 3}}, "hidden=3: must be a tuple of whole numbers"),
        ("circle", {"num_items": 3, "num_select": 4}, "num_select=4 is more than num_items=3"),
        ("circle", {"captors": 2}, "captors=2: circle has no such option"),
        ("circle", {"rules": sm.Circle().rules}, "a run keeps its options as numbers and text"),
        (sm.Circle(), {"num_items": 5}, "options ['num_items']: give them to the world itself"),
        (
            sm.Circle(commands=("up", "down")),
            {"algorithm": "isq-i-1"},
            "only gives the command 'stay', and this world has up, down",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_trained_is_refused_before_a_folder_is_made(
    tmp_path: Path, task: Any, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(SelectError) as refused:
        sm.train(task, out=tmp_path / "run", **changes)
    assert said in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_config_whose_task_is_no_name_is_refused() -> None:
    with pytest.raises(SelectError, match=r"task=0\.5: give its name"):
        TrainConfig(0.5, {}, "isq-u", "fast", {}, 4096, 0)  # type: ignore[arg-type]


def test_a_run_without_a_name_gets_one_that_no_other_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = TrainConfig("make.<locals>.world of/mine", {}, "isq-p", "paper", {}, 250, 3)
    first = training._unused(config)
    assert first == Path("runs/make.-locals-.world-of-mine-isq-p-seed3")
    first.mkdir(parents=True)
    assert training._unused(config) == Path(f"{first}-2")


# What goes wrong on the way


def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, run = tmp_path / "run", Compiled.run

    def exploding(self: Compiled, running: Running) -> tuple[Running, ChunkReport]:
        if int(running.step) == 150:
            huge = jax.tree.map(lambda leaf: leaf + 1e30, running.learner.params)
            running = running._replace(learner=running.learner._replace(params=huge))
        return run(self, running)

    monkeypatch.setattr(Compiled, "run", exploding)
    with pytest.raises(SelectError) as stopped:
        tiny.train(out)
    assert str(stopped.value) == (
        "the loss is nan at step 200 (the last good checkpoint is "
        f"{out}/checkpoints/step-000000000150): lower learning_rate, scale the reward, or check "
        "the world's rewards and features for huge numbers"
    )
    assert tiny.rows(out)[-1]["step"] == 150
    assert sm.load(out).select(np.full((6, 3), 0.5)).items.shape == (2,)


@pytest.mark.parametrize(
    ("report", "broken", "said"),
    [
        (
            ChunkReport(np.nan, 0.5, 3),
            False,
            "the reward, or what learning_reward or partial_reward makes of it, is nan at step 0",
        ),
        (ChunkReport(1.0, np.inf, 3), False, "the loss is inf at step 0"),
        (ChunkReport(1.0, 0.5, 3), True, "a parameter is not finite at step 0"),
    ],
)
def test_numbers_that_are_not_finite_never_reach_a_checkpoint(
    tmp_path: Path, report: ChunkReport, broken: bool, said: str
) -> None:
    config = TrainConfig("circle", tiny.WORLD, "isq-p", "paper", tiny.SETTINGS, 400, 0)
    trainer = Trainer(tmp_path, config, worlds.world("circle", tiny.WORLD))
    running = trainer.engine.start()
    trainer._check(running, ChunkReport(1.0, np.nan, 0))  # no update yet, so no loss yet
    if broken:
        params = jax.tree.map(lambda leaf: leaf * np.nan, running.learner.params)
        running = running._replace(learner=running.learner._replace(params=params))
    with pytest.raises(SelectError) as stopped:
        trainer._check(running, report)
    assert said in str(stopped.value)
    assert "nothing was saved yet" in str(stopped.value)


def test_a_full_disk_leaves_the_last_checkpoint_to_go_on_from(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        at_step(patch, 250, lambda: patch.setattr(os, "fsync", full))
        with pytest.raises(CheckpointError) as stopped:
            tiny.train(out)
    assert str(stopped.value).startswith(
        f"{out}/checkpoints/step-000000000250 was not written: disk full"
    )
    assert sm.load(out).about["step"] == 200
    sm.train(None, out=out, resume=True)
    assert same_run(whole, out)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_too_full_for_a_row_leaves_the_last_checkpoint_too(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, row = tmp_path / "run", RunLog.row

    def full(self: RunLog, step: int, **values: Any) -> None:
        if step == 250:
            self._csv.close()
            self._csv = open("/dev/full", "a")  # noqa: SIM115 - the log closes it
        row(self, step, **values)

    monkeypatch.setattr(RunLog, "row", full)
    with pytest.raises(SelectError) as stopped:
        tiny.train(out)
    assert str(stopped.value).startswith(f"cannot write {out}/metrics.csv: No space left on device")
    assert sm.load(out).about["step"] == 200
    assert tiny.rows(out) == tiny.rows(whole)[:5]


# Worlds of one's own


class Mine:
    """Circles again, in a world that offers nothing beside."""

    def __init__(self, num_items: int = 6) -> None:
        circle = sm.Circle(**{**tiny.WORLD, "num_items": num_items})
        self.spec = circle.spec
        self.reset, self.step, self.observe = circle.reset, circle.step, circle.observe


@pytest.mark.slow
def test_a_world_of_ones_own_needs_no_time_limit_and_is_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    at_step(monkeypatch, 350, interrupt)
    with pytest.raises(Stopped) as stopped:
        sm.train(Mine(), out=out, **tiny.RUN)
    assert f"selectmdp.train(the Mine, out='{out}', resume=True)" in str(stopped.value)
    with pytest.raises(SelectError, match="is a run on 'Mine', which no name stands for here"):
        sm.train(None, out=out, resume=True)
    with pytest.raises(SelectError, match="num_items=7 where the run has 6"):
        sm.train(Mine(num_items=7), out=out, resume=True)
    result = sm.train(Mine(), out=out, resume=True)
    assert list(result.references) == ["random"]
    assert (result.evaluation.steps, result.evaluation.unit) == (1000, "reward")
    items = np.linspace(-0.5, 0.5, 18).reshape(6, 3)
    assert sm.load(out).select(items).items.tolist() == result.policy.select(items).items.tolist()


def test_a_policy_that_needs_its_world_asks_for_it(tmp_path: Path) -> None:
    shelf = Shelf()
    learned = tiny.untrained("isq-u", shelf)
    config = TrainConfig("Shelf", {}, "isq-u", "paper", {"channels": 8}, 250, 0)
    meta = runs.policy_meta(config, shelf, 250, learned.phase_map, 1.0)
    checkpoint.save(tmp_path / "best", {"policy": learned.params}, meta)
    with pytest.raises(SelectError, match=r"needs legal_after of the world 'Shelf'.*load\(path"):
        sm.load(tmp_path / "best")
    with pytest.raises(SelectError, match=r"env is not the world of the run: num_items=5 where"):
        sm.load(tmp_path / "best", env=Shelf(num_items=5))
    with pytest.raises(SelectError, match="env='Shelf': give a world"):
        sm.load(tmp_path / "best", env="Shelf")
    items = np.arange(1.0, 5.0)[:, None]
    picks = sm.load(tmp_path / "best", env=shelf).select(items)
    assert picks.items.tolist() == learned.select(items).items.tolist()
    assert sum(picks.commands) <= 1  # only one may be sold in a step
    with pytest.raises(SelectError, match="the run's world 'Shelf' is code of its own"):
        runs.world_of(sm.load(tmp_path / "best", env=shelf), {})


# Signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_is_not_held_back(number: int) -> None:
    before, heard = signal.getsignal(number), []
    signal.signal(number, lambda *_: heard.append(number))
    with signals.noted() as caught:
        signal.raise_signal(number)
        assert (caught, heard) == ([number], [])
        signal.raise_signal(number)
        assert (caught, heard) == ([number], [number])
    signal.raise_signal(number)
    assert heard == [number, number]
    signal.signal(number, signal.SIG_IGN)  # as in a job of the background
    with signals.noted() as caught:
        signal.raise_signal(number)
        signal.raise_signal(number)
    assert caught == [number]
    signal.signal(number, before)


def test_in_another_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work() -> None:
        with signals.noted() as caught:
            seen.append((caught, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [([], before)]


# Settings and configs


def test_settings_as_a_person_types_them() -> None:
    typed = ("channels=8", "hidden=64,32", "learning_rate=3e-4")
    assert parsed(PaperSettings, typed) == {
        "channels": 8,
        "hidden": (64, 32),
        "learning_rate": 3e-4,
    }
    assert with_changes(PaperSettings, {"hidden": [np.int64(5)]}).hidden == (5,)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("channels", "--set channels: give name=value, the names are channels, layers"),
        ("pace=3", "--set pace=3: give name=value"),
        ("channels=many", "--set channels=many: 'many' is not a whole number"),
        ("learning_rate=", "--set learning_rate=: '' is not a number"),
        ("hidden=4,b", "'4,b' is not whole numbers separated by commas"),
    ],
)
def test_a_setting_typed_wrongly_is_told(typed: str, said: str) -> None:
    with pytest.raises(SelectError) as refused:
        parsed(PaperSettings, (typed,))
    assert said in str(refused.value)


def test_a_config_keeps_the_settings_it_was_made_with_though_a_default_moves() -> None:
    kept = TrainConfig("circle", {}, "isq-u", "fast", {"epochs": 3}, 4096, 0).to_json()
    kept["all_settings"]["learning_rate"] = 0.5  # what the default was, then
    del kept["minutes"]  # older runs do not know it
    back = TrainConfig.from_json(json.loads(json.dumps(kept)))
    assert (back.full_settings.learning_rate, back.full_settings.epochs) == (0.5, 3)
    assert back.settings == {"epochs": 3, "learning_rate": 0.5}
    assert back.minutes is None


def test_a_config_comes_back_from_json_as_it_was() -> None:
    options = {"num_items": np.int64(6), "commands": ["stay", "up"]}
    settings = {"hidden": [8, np.int32(4)], "learning_rate": np.float32(0.5)}
    config = TrainConfig("circle", options, "sorting", "paper", settings, np.int64(251), 3)
    assert config.steps == 500  # whole chunks
    told = json.loads(json.dumps(config.to_json()))
    back = TrainConfig.from_json(told)
    assert back == config
    assert asdict(back)["options"] == {"num_items": 6, "commands": ("stay", "up")}
    assert back.full_settings.hidden == (8, 4)
    assert (config.every(20), config.every(1), config.every(1, 300)) == (250, 500, 250)
