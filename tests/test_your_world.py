"""docs/your-world.md: each of its three files checks, plays, trains and resumes as it stands."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny

import selectmdp as sm
from selectmdp import cli
from selectmdp.factories import found
from selectmdp.spec import SelectError
from selectmdp.trainer import Trainer

haste = tiny.haste

PAGE = Path(__file__).parent.parent / "docs" / "your-world.md"
FILES = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
WAYS = {"machines": "machines:Machines", "plant": "plant:make", "fleet": "fleet:Fleet"}
SMALL = {"num_envs": 4, "rollout": 4, "minibatch": 4, "channels": 8, "chunk": 16}
SET = [part for name, value in SMALL.items() for part in ("--set", f"{name}={value}")]
BRIEF = ["--steps", "64", "--evaluations", "1", "--episodes", "2", *SET]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints, as JSON."""
    cli.main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_the_page_has_three_ways_of_under_forty_lines() -> None:
    assert list(FILES) == list(WAYS)
    assert max(1 + text.count("\n") for text in FILES.values()) < 40  # with the file's name
    assert "jax" not in FILES["machines"]
    assert "gym" not in FILES["machines"]


@pytest.mark.parametrize("task", WAYS.values())
def test_an_example_checks_plays_trains_and_goes_on(
    task: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    report = said(capsys, "check", task)
    assert report["passed"] is True
    told = said(capsys, "evaluate", task, "--episodes", "3")
    assert (told["task"], told["steps"], told["num_items"]) == (task, 50, 8)
    in_python = sm.evaluate(found(task), episodes=3)
    assert list(in_python.episode_rewards) == told["episode_rewards"]

    trained = said(capsys, "train", task, "--out", "run", *BRIEF)
    assert (trained["task"], trained["steps"], trained["evaluation_steps"]) == (task, 64, 50)
    again = said(capsys, "evaluate", "run", "--world", task, "--episodes", "2")
    assert again["episode_rewards"] == trained["episode_rewards"]

    end = here / "run" / "checkpoints" / "step-000000000064"
    before = (end / "training.safetensors").read_bytes()
    for file in end.iterdir():
        file.unlink()
    end.rmdir()
    monkeypatch.setattr(Trainer, "_finish", lambda self, running: None)  # judged already
    sm.train(task, out="run", resume=True)
    assert (end / "training.safetensors").read_bytes() == before


def test_every_command_of_the_page_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = re.findall(r"^    selectmdp (\w+) ", PAGE.read_text("utf-8"), re.MULTILINE)
    assert commands == ["check", "evaluate", "train", "evaluate", "train"]
    asked = []
    monkeypatch.setattr("selectmdp.training.train", lambda task, **how: asked.append((task, how)))
    with pytest.raises(AttributeError):  # nothing came of it
        cli.main(["train", "machines:Machines", "--minutes", "2", "--out", "runs/m"])
    assert asked[0][0] == "machines:Machines"
    assert (asked[0][1]["minutes"], asked[0][1]["timeout"]) == (2.0, 60.0)


def test_options_reach_the_factory_that_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, "evaluate", "machines:Machines", "--num-items", "5", "--episodes", "2")
    assert told["num_items"] == 5
    assert said(capsys, "check", "fleet:Fleet", "--num-items", "3")["passed"] is True
    with pytest.raises(SystemExit):
        cli.main(["evaluate", "plant:make", "--num-items", "5"])
    assert "num_items=5: plant:make has no such option; it takes none" in capsys.readouterr().err


# No file starts code


def test_a_run_on_code_of_ones_own_asks_for_its_name_again(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    sm.train("fleet:Fleet", out="run", preset="fast", steps=16, evaluations=1, episodes=2,
             settings=SMALL)  # fmt: skip
    program = "import sys; from selectmdp.cli import main; main()"
    (here / "fleet.py").write_text("open('started', 'w').close()\n")  # what must not be run
    for arguments in (["train", "--out", "run", "--resume"], ["evaluate", "run"], ["watch", "run"]):
        with pytest.raises(SystemExit):
            cli.main(arguments)
        told = capsys.readouterr().err
        again = "selectmdp train fleet:Fleet --out run --resume"
        assert (again if arguments[0] == "train" else "--world fleet:Fleet") in told
    cli.main(["card", "run"])
    done = subprocess.run([sys.executable, "-c", program, "evaluate", "run"], capture_output=True)
    assert done.returncode == 2
    assert not (here / "started").exists()
    with pytest.raises(SelectError, match="task=plant:make where the run has fleet:Fleet"):
        sm.train("plant:make", out="run", resume=True)


def test_a_sweep_names_no_code(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "sweep.toml").write_text('task = "fleet:Fleet"\nsteps = 16\n')
    with pytest.raises(SystemExit):
        cli.main(["sweep", "sweep.toml"])
    assert "no file may name code to be run" in capsys.readouterr().err
