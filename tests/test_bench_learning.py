"""`bench learning`: what it would type, what it reads of finished runs, its JSON and picture."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tiny

from selectmdp import cli
from selectmdp.bench import learning
from selectmdp.bench.learning import TASKS, Task
from selectmdp.settings import FastSettings
from selectmdp.spec import SelectError

haste = tiny.haste
SETTINGS = {"num_envs": 4, "rollout": 8, "minibatch": 8, "channels": 8, "chunk": 32}
FAST: dict[str, Any] = {"preset": "fast", "steps": 128, "settings": SETTINGS}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two finished runs of a task of our own, where the bench looks for them."""
    monkeypatch.setattr(learning, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(learning, "FastSettings", lambda: FastSettings(**SETTINGS))
    levels = {"isq-i": -100.0, "isq-u": 100.0}
    monkeypatch.setitem(TASKS, "small", Task("circle", tiny.WORLD, levels, 2.0))
    for seed in (0, 3):
        tiny.train(tmp_path / "runs" / f"small-2min-seed{seed}", **FAST, seed=seed)
    return tmp_path


def test_a_training_is_the_command_that_anybody_would_type() -> None:
    typed = learning.command("circle-50", 1, 12.0, Path("runs/x"))
    assert " ".join(typed) == (
        "train circle --num-items 50 --num-select 6 --dynamics figures --minutes 12 --seed 1 "
        "--out runs/x --json"
    )


def test_finished_runs_are_read_and_not_trained_again(
    ran: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    out = ran / "results"
    typed = ["bench", "learning", "--task", "small", "--seeds", "0", "3", "--out", str(out)]
    cli.main([*typed, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((out / "small-2min.json").read_text())
    assert (out / "learning.png").read_bytes()[:4] == b"\x89PNG"
    assert [row["seed"] for row in told["rows"]] == [0, 3]
    first = told["rows"][0]
    kept = json.loads((ran / "runs" / "small-2min-seed0" / "result.json").read_text())
    assert (first["mean_reward"], first["steps"]) == (kept["mean_reward"], 128)
    assert first["updates_per_second"] == pytest.approx(first["steps_per_second"] * 4 / 8)
    assert first["minutes_to"] == {"isq-i": first["curve"][0][0], "isq-u": None}
    assert [step for _, step, _ in first["curve"]] == [0, 32, 64, 96, 128]
    assert first["command"].startswith("selectmdp train circle --num-items 6 --num-select 2")
    cli.main(["bench", "learning", "--task", "small", "--seeds", "3", "--out", str(out), "--json"])
    again = json.loads(capsys.readouterr().out)
    assert [row["seed"] for row in again["rows"]] == [0, 3]  # the other seed is kept
    cli.main(typed)
    shown = capsys.readouterr().out
    assert "small, 2 minutes" in shown
    assert "until the published -100.0 (isq-i), 100.0" in shown


def test_a_training_that_fails_is_told_and_one_broken_off_goes_on(
    ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(learning, "_run", lambda typed: asked.append(typed) or 130)
    (ran / "runs" / "small-2min-seed3" / "result.json").unlink()
    for seed in (3, 4):
        with pytest.raises(SelectError, match="ended with code 130"):
            learning.measure("small", [seed], None, None)
    broken = str(ran / "runs" / "small-2min-seed3")
    assert asked[0] == ["train", "--out", broken, "--resume", "--json"]
    assert asked[1][:4] == ["train", "circle", "--num-items", "6"]


@pytest.mark.parametrize(
    ("name", "seeds", "minutes", "said"),
    [
        ("circle-5", [0], 1.0, "task 'circle-5' is none of circle-50, circle-200"),
        ("circle-50", [], 1.0, "seeds: give at least one"),
        ("circle-50", [0], 0.0, "minutes=0.0: must be more than 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    name: str, seeds: list[int], minutes: float, said: str
) -> None:
    with pytest.raises(SelectError, match=said):
        learning.measure(name, seeds, minutes, None)


def test_runs_of_other_defaults_are_not_taken_for_todays(
    ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "FastSettings", FastSettings)
    with pytest.raises(SelectError, match="small-2min-seed0 was trained by other defaults"):
        learning.measure("small", [0], None, None)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("small-2min.json", "{"),
        ("small-2min.json", "[]"),
        ("a.json", '{"name": "b"}'),
        ("b-2min.json", '{"name": "b", "minutes": 2, "rows": []}'),
        ("circle-50-2min.json", '{"name": "circle-50", "minutes": 2}'),
        ("circle-50-2min.json", '{"name": "circle-50", "minutes": 2, "rows": [{"seed": 0}]}'),
        ("circle-50-2min.json", '{"name": "circle-50", "minutes": 2, "rows": [3]}'),
    ],
)
def test_a_folder_with_other_things_in_it_is_refused_before_anything_is_trained(
    tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SelectError, match=f"{name} is no result of this bench"):
        learning.measure("circle-50", [0], 1.0, tmp_path)
    with pytest.raises(SelectError, match="cannot write"):
        learning.measure("circle-50", [0], 1.0, tmp_path / name)


def test_a_command_is_run_and_its_code_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert learning._run(["evaluate", "nowhere"]) == 2
    assert "nowhere" in capfd.readouterr().err


def test_a_level_is_reached_where_the_curve_stays_above_it() -> None:
    curve = [[1.0, 100, 0.2], [2.0, 200, 0.9], [3.0, 300, 0.7], [4.0, 400, 0.8], [5.0, 500, 0.9]]
    assert learning.minutes_to(0.75, curve) == 4.0
    assert learning.minutes_to(0.1, curve) == 1.0
    assert learning.minutes_to(0.95, curve) is None
