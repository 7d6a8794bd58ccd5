"""docs/tutorial.md: its parts make a file that checks, plays, learns and is watched as it says."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

import selectmdp as sm
from selectmdp import cli
from selectmdp.evaluation import interval95
from selectmdp.factories import found

haste = tiny.haste

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
SEASON, USE = "\n".join(BLOCKS[:-1]), BLOCKS[-1]
COMMANDS = [shlex.split(line) for line in re.findall(r"^    selectmdp (.+)$", TEXT, re.MULTILINE)]
SMALL = {"num_envs": 4, "rollout": 4, "minibatch": 4, "channels": 8, "chunk": 16}
BRIEF = [part for name, value in SMALL.items() for part in ("--set", f"{name}={value}")]
TRAIN = ["train", "season:Season", "--steps", "60000", "--episodes", "100", "--out", "runs/season"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    for name, text in (("season", SEASON), ("use", USE)):
        assert text.startswith(f"# {name}.py\n")
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints, as JSON."""
    cli.main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def kept(name: str) -> Any:
    """A result that the page quotes."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_bytes())


def test_the_world_is_under_120_lines() -> None:
    assert SEASON.count("\n") < 120


def test_the_page_has_these_commands() -> None:
    assert [command[:2] for command in COMMANDS] == [
        ["check", "season:Season"],
        ["evaluate", "season:Season"],
        ["evaluate", "season:Season"],
        ["train", "season:Season"],
        ["watch", "runs/season"],
        ["evaluate", "league"],
        ["train", "league"],
        ["watch", "runs/league"],
    ]
    assert COMMANDS[3] == TRAIN


def test_the_world_checks_and_earns_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    check, blind, best = COMMANDS[:3]
    assert said(capsys, *check)["passed"] is True
    random, greedy = (said(capsys, *command)["mean_reward"] for command in (blind, best))
    told = re.search(r"earn ([\d.]+) points a match, the best five ([\d.]+)\.", TEXT)
    assert told is not None
    assert (random, greedy) == pytest.approx([float(number) for number in told.groups()], abs=0.01)


@pytest.mark.slow
def test_it_trains_is_used_and_watched(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    brief = ["--steps", "64", "--evaluations", "1", *BRIEF]
    trained = said(capsys, *[part for part in TRAIN if part not in ("--steps", "60000")], *brief)
    assert (trained["steps"], trained["evaluation_steps"]) == (64, 20)

    exec(compile(USE, "use.py", "exec"), {})
    score, *lineup = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+\.\d points of a season, \d+\.\d by greedy", score)
    positions = sorted(line.split()[1] for line in lineup)
    assert positions == ["back", "back", "front", "front", "goal"]

    told = said(capsys, *COMMANDS[4])
    assert list(told["players"]) == ["isq-u", "random", "greedy"]
    assert (here / "season.html").stat().st_size > 50_000


@pytest.mark.slow
def test_the_manager_beats_always_the_best_five(here: Path) -> None:
    result = sm.train("season:Season", steps=60_000, episodes=200, out="runs/season")
    season = found("season:Season")
    best = sm.evaluate(season, "greedy", episodes=200)
    gaps = np.subtract(result.evaluation.episode_rewards, best.episode_rewards)
    assert 20 * (gaps.mean() - interval95(gaps)) > 1  # 6.2 in the run that the page quotes


def test_the_numbers_of_the_season_are_those_of_its_run() -> None:
    run = kept("season")
    rows = {**run["references"], "trained": run}
    names = {"random": "random", "greedy": "always the best five", "trained": "the manager"}
    for name, told in names.items():
        mean, ci95 = rows[name]["mean_reward"], rows[name]["ci95"]
        assert f"| {told} | {mean:.2f} ± {ci95:.2f} | {20 * mean:.1f} |" in TEXT
    assert run["mean_reward"] - run["ci95"] > run["references"]["greedy"]["mean_reward"]


def test_the_numbers_of_the_league_are_those_of_its_run() -> None:
    run, known = kept("league"), kept("league")["references"]
    told = (run, known["greedy"], known["random"])
    ours, best, blind = (38 * each["mean_reward"] for each in told)
    said = " ".join(TEXT.split())
    assert f"earn {best:.1f} points a season, random line-ups {blind:.1f}." in said
    gaps = 38 * np.subtract(run["episode_rewards"], known["greedy"]["episode_rewards"])
    earned = f"earns {ours:.1f}: over 300 seasons on the same seeds "
    assert earned + f"{gaps.mean():.1f} ± {interval95(gaps):.1f} more" in said
    assert gaps.mean() > interval95(gaps)
    assert f"(`{run['command']}`, " in said
