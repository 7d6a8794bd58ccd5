"""The command as a person and as a program use it."""

import inspect
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tiny

from selectmdp import cli, pace, training
from selectmdp.cli import play
from selectmdp.cli.options import TaskOptions
from selectmdp.signals import Stopped

haste = tiny.haste

TINY = [f"--{name.replace('_', '-')}={value}" for name, value in tiny.WORLD.items()]
TINY += [
    "--preset",
    "paper",
    "--algorithm",
    "isq-p",
    "--steps",
    "400",
    "--evaluations",
    "4",
    "--episodes",
    "8",
]
TINY += ["--set", *(f"{name}={value}" for name, value in tiny.SETTINGS.items())]


def last_line(capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON object that a command ends with."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that ends with exit code 2 says: one line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert shown.err.startswith("selectmdp: ")
    return shown.err


# Help


def test_help_names_the_commands_and_does_not_import_jax():
    program = (
        "import sys; from selectmdp import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in cli.COMMANDS:
        assert name in done.stdout


def test_the_help_of_train_explains_each_option(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "--help"])
    assert ended.value.code == 0
    shown = re.sub(r"[\s│]+", " ", capsys.readouterr().out)
    own = [name for name in inspect.signature(cli.COMMANDS["train"]).parameters if name != "world"]
    for name in [*own[1:], *TaskOptions.__dataclass_fields__]:
        told = re.search(rf" --{name.replace('_', '-')} (.*?)(\(default|\(repeatable)", shown)
        assert told is not None, name
        assert len(re.findall(r"[a-z]{2,}", told[1])) > 2, told[0]
    for said in (
        "circle, predator-prey, league; module:factory of a world of your own",
        "go on with the run in --out",
        "name=value",
    ):
        assert said in shown


# Evaluate


def test_evaluate_ends_with_one_json_object_on_the_last_line(capsys):
    cli.main(["evaluate", "circle", "--policy", "greedy", "--num-items", "8", "--num-select", "2",
              "--time-limit", "50", "--episodes", "4", "--json"])  # fmt: skip
    result = last_line(capsys)
    assert result["episodes"] == 4
    assert result["unit"] == "area"
    assert result["dynamics"] == "figures"
    assert result["mean_reward"] > 0
    assert result["ci95"] > 0
    assert result["extrapolates"] is None


def test_the_random_policy_earns_what_the_published_figures_imply(capsys):
    cli.main(["evaluate", "circle", "--policy", "random", "--dynamics", "figures", "--num-items",
              "50", "--num-select", "6", "--episodes", "20", "--json"])  # fmt: skip
    assert abs(last_line(capsys)["mean_reward"] - 0.094) < 0.01


def test_evaluate_prints_a_table_for_people(capsys):
    cli.main(["evaluate", "predator-prey", "--time-limit", "30", "--episodes", "3"])
    shown = capsys.readouterr().out
    assert "predator-prey" in shown
    assert "±" in shown
    assert "captors-2" in shown


def test_evaluate_takes_a_gymnasium_id(capsys):
    cli.main(["evaluate", "selectmdp/PredatorPrey-v0", "--num-items", "5", "--time-limit", "9",
              "--episodes", "3", "--json"])  # fmt: skip
    result = last_line(capsys)
    assert (result["task"], result["policy"]) == ("selectmdp/PredatorPrey-v0", "random")
    assert (result["steps"], result["num_items"]) == (9, 5)


# Train


@pytest.fixture(scope="module")
def run() -> Path:
    return tiny.finished()


def test_train_ends_with_one_json_object_on_the_last_line(run, tmp_path, capsys):
    out = tmp_path / "a [bold] run"
    cli.main(["train", "circle", *TINY, "--out", str(out), "--json"])
    result = last_line(capsys)
    same = json.loads((run / "result.json").read_text())
    for told in (result, same):
        del told["seconds"], told["folder"], told["megabytes"]
    assert result == same
    assert "exists and is not empty" in refused(["train", "circle", "--out", str(out)], capsys)

    cli.main(["train", "--out", str(out), "--resume"])
    shown = capsys.readouterr().out
    assert "random" in shown
    assert "greedy" in shown
    assert f"curve: {out}/curve.png" in shown
    assert f"next: selectmdp evaluate '{out}' --num-items 12" in shown
    said = refused(["train", "--out", str(out), "--resume", "--set", "channels=9"], capsys)
    assert "channels=9 where the run has 8" in said


def test_settings_may_be_given_at_once_or_one_by_one(monkeypatch, capsys):
    seen = []

    def train(*arguments: Any, **how: Any) -> Any:
        seen.append(how["settings"])
        raise KeyboardInterrupt

    monkeypatch.setattr("selectmdp.training.train", train)
    for typed in (
        ["--set", "channels=8", "chunk=50"],
        ["--set", "channels=8", "--set", "chunk=50"],
    ):
        with pytest.raises(SystemExit):
            cli.main(["train", "circle", *typed])
    assert seen == [{"channels": 8, "chunk": 50}] * 2


def test_a_trained_policy_is_evaluated_with_other_sizes(run, capsys):
    sizes = ["--num-items", "9", "--num-select", "3", "--episodes", "2"]
    cli.main(["evaluate", str(run), *sizes, "--json"])
    result = last_line(capsys)
    assert (result["task"], result["policy"]) == ("circle", "run")
    assert (result["num_items"], result["num_select"], result["steps"]) == (9, 3, 20)
    assert result["extrapolates"] is True
    assert result["mean_reward"] > 0
    cli.main(["evaluate", str(run), *sizes])
    assert "K=3 where K=2 was trained: phases borrow" in capsys.readouterr().out
    cli.main(["evaluate", str(run / "checkpoints" / "best"), "--policy", "random", "--json"])
    told = last_line(capsys)
    assert (told["policy"], told["extrapolates"], told["num_items"]) == ("random", False, 6)


def test_ctrl_c_saves_and_says_how_to_go_on(run, tmp_path, capsys):
    program = (
        "import sys, time\n"
        "from selectmdp import cli\n"
        "from selectmdp.trainer import Trainer\n"
        "show = Trainer._show\n"
        "def until_stopped(self, running, report):\n"
        "    show(self, running, report)\n"
        "    while int(running.step) == 150 and not self.caught: time.sleep(0.01)\n"
        "Trainer._show = until_stopped\n"
        "cli.main(sys.argv[1:])\n"
    )
    out = tmp_path / "run"
    command = [sys.executable, "-c", program, "train", "circle", *TINY, "--out", str(out), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        try:
            end = time.monotonic() + 300
            while not (out / "checkpoints" / "step-000000000100").exists():
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < end
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=300)
        finally:
            process.kill()
    assert (process.returncode, stdout) == (130, "")
    said, told = stderr.splitlines()[-2:]
    assert re.fullmatch(r"selectmdp: stopped at step 1[05]0 of 400; all is saved. Go on with", said)
    name, *arguments = shlex.split(told)
    assert name == "selectmdp"
    cli.main([*arguments, "--json"])
    whole = json.loads((run / "result.json").read_text())
    assert last_line(capsys)["episode_rewards"] == whole["episode_rewards"]
    assert tiny.state(out) == tiny.state(run)


# Presets and parameters


def test_presets_tell_every_setting_with_its_default(capsys):
    cli.main(["presets", "--json"])
    told = last_line(capsys)["paper"]
    assert told["settings"]["learning_rate"] == {"default": 0.001, "about": "of Adam"}
    assert told["settings"]["hidden"]["default"] == []
    cli.main(["presets"])
    shown = capsys.readouterr().out
    for name, setting in told["settings"].items():
        assert name in shown
        assert len(setting["about"]) > 4


def test_parameters_grow_as_the_paper_says(capsys):
    sizes = ["--num-items", "20", "80", "--num-select", "2", "4"]
    cli.main(["parameters", *sizes, "--json"])
    told = last_line(capsys)
    counts = {(row["algorithm"], row["N"], row["K"]): row["parameters"] for row in told["rows"]}
    assert len(counts) == 4 * 2 * 2
    one_set = counts["isq-u", 20, 2]
    assert {counts["isq-u", items, picks] for items in (20, 80) for picks in (2, 4)} == {one_set}
    for name in ("isq-i", "isq-p"):
        assert [counts[name, 80, picks] for picks in (2, 4)] == [2 * one_set, 4 * one_set]
    assert counts["vanilla", 80, 2] > 8 * counts["vanilla", 20, 2]
    cli.main(["parameters", *sizes])
    assert f"{one_set:,}" in capsys.readouterr().out


# What goes wrong


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["evaluate", "chess"],
            "'chess' is none of circle, predator-prey, league, no module:factory",
        ),
        (["evaluate", "circle", "--policy", "best"], "policy 'best' is none of random, greedy"),
        (["evaluate", "circle", "--num-items", "3", "--num-select", "4"], "num_select=4 is more"),
        (["evaluate", "circle", "--dynamics", "rumour"], "dynamics='rumour'"),
        (["evaluate", "circle", "--captors", "2"], "circle has no such option"),
        (["evaluate", "circle", "--commands", "stay", "jump"], "'jump' is none of stay, up"),
        (["evaluate", "circle", "--episodes", "0"], "episodes=0: must be at least 1"),
        (["evaluate", "circle", "--seed", "4294967296"], "must be less than 2**32"),
        (["bench", "envs", "--seconds", "0"], "seconds=0.0: must be more than 0"),
        (["check", "nowhere"], "nowhere"),
        (["check", "selectmdp.envs:Square"], "Square"),
        (["train"], "which task? One of circle, predator-prey, league"),
        (["train", "chess"], "'chess' is none of circle, predator-prey, league, no id that Gym"),
        (["train", "CartPole-v1"], "the action space is Discrete"),
        (["train", "circle", "--algorithm", "best"], "algorithm 'best' is none of isq-i, isq-u"),
        (["train", "circle", "--preset", "quick"], "preset 'quick' is none of fast, paper"),
        (["train", "circle", "--steps", "-5"], "steps=-5: must not be negative"),
        (["train", "circle", "--set", "pace=1"], "--set pace=1: give name=value, the names are"),
        (["train", "circle", "--set", "chunk=7"], "chunk=7: must be a multiple of num_envs"),
        (["train", "circle", "--num-items", "3"], "num_select=6 is more than num_items=3"),
        (["train", "circle", "--out", "/dev/null"], "/dev/null is a file: choose another --out"),
        (
            ["train", "circle", "--out", "/dev/null/x"],
            "/dev/null/x cannot be made (Not a dir",
        ),
        (["train", "--resume"], "there is no run to resume"),
        (["train", "--resume", "--out", "/"], "/ holds no run: there is no config.json in it"),
        (["train", "--resume", "--out", "/", "--set", "chunk=5"], "/ holds no run"),
        (["parameters", "chess"], "task 'chess' is none of circle, predator-prey, league"),
        (["parameters", "--num-items", "0"], "num_items=0: must be at least 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_ends_with_its_message_and_exit_code_2(arguments, said, capsys):
    assert said in refused(arguments, capsys)


def test_a_word_where_a_number_belongs_ends_with_exit_code_2_too(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "circle", "--steps", "many"])
    assert ended.value.code == 2
    assert "many" in capsys.readouterr().err


def test_a_damaged_run_ends_with_its_message(tmp_path, capsys):
    (tmp_path / "config.json").write_text("{}")
    assert "no checkpoint in" in refused(["evaluate", str(tmp_path)], capsys)
    said = refused(["train", "--resume", "--out", str(tmp_path)], capsys)
    assert "config.json cannot be read" in said


def test_a_stopped_training_ends_with_how_to_go_on_and_the_code_of_its_signal(monkeypatch, capsys):
    def stopped(*arguments: Any, **options: Any) -> Any:
        raise Stopped("saved; go on with …", signal.SIGTERM)

    monkeypatch.setattr("selectmdp.training.train", stopped)
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "circle"])
    assert ended.value.code == 143
    assert capsys.readouterr().err == "selectmdp: saved; go on with …\n"


def test_ctrl_c_ends_with_a_word_and_exit_code_130(monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("selectmdp.worlds.evaluated", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main(["evaluate", "circle"])
    assert ended.value.code == 130
    assert "stopped" in capsys.readouterr().err


# Check and demo


def test_check_of_a_good_world_passes(capsys):
    cli.main(["check", "worlds:Shelf", "--json"])
    assert last_line(capsys)["passed"] is True


@pytest.mark.slow
def test_demo_leaves_a_film_of_each_world_and_of_the_trained_policy(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(play, "DEMO_WORLD", tiny.WORLD)
    monkeypatch.setattr(pace, "steps_in", lambda config, world: 400)
    how = {name: tiny.RUN[name] for name in ("algorithm", "preset", "evaluations", "settings")}
    monkeypatch.setattr(play, "DEMO", {**tiny.WORLD, **how})
    out = tmp_path / "films"
    cli.main(["demo", "--out", str(out), "--minutes", "1", "--episodes", "8"])
    for name in ("circle-greedy", "predator-prey-greedy", "circle-trained"):
        assert (out / f"{name}.gif").read_bytes()[:4] == b"GIF8"
    assert (out / "circle" / "curve.png").is_file()
    shown = capsys.readouterr().out
    assert "greedy" in shown
    assert f"next: selectmdp evaluate {out}/circle --num-items 12" in shown
    cli.main(["demo", "--out", str(out), "--episodes", "8"])  # what was one minute stays one


def test_what_is_not_said_trains_by_the_fast_preset():
    assert training.DEFAULTS["preset"] == "fast"
    assert play.DEMO == {"num_items": 50, "num_select": 6, "evaluations": 10}
    assert play.DEMO_MINUTES == 2.5
