"""The command as a person and as a program use it, in a process of its own."""

import json
import subprocess
import sys

import pytest

from selectmdp import cli


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "selectmdp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


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


def test_evaluate_ends_with_one_json_object_on_the_last_line():
    done = run("evaluate", "circle", "--policy", "greedy", "--num-items", "8", "--num-select", "2",
               "--time-limit", "50", "--episodes", "4", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["episodes"] == 4
    assert result["unit"] == "area"
    assert result["dynamics"] == "figures"
    assert result["mean_reward"] > 0
    assert result["ci95"] > 0


def test_the_random_policy_earns_what_the_published_figures_imply():
    done = run("evaluate", "circle", "--policy", "random", "--dynamics", "figures", "--num-items",
               "50", "--num-select", "6", "--episodes", "20", "--json")  # fmt: skip
    result = json.loads(done.stdout.splitlines()[-1])
    assert abs(result["mean_reward"] - 0.094) < 0.01


def test_evaluate_prints_a_table_for_people(capsys):
    cli.main(["evaluate", "predator-prey", "--time-limit", "30", "--episodes", "3"])
    shown = capsys.readouterr().out
    assert "predator-prey" in shown
    assert "±" in shown
    assert "captors-2" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "chess"], "task 'chess' is none of circle, predator-prey"),
        (["evaluate", "circle", "--policy", "best"], "policy 'best' is none of random, greedy"),
        (["evaluate", "circle", "--num-items", "3", "--num-select", "4"], "num_select=4 is more"),
        (["evaluate", "circle", "--dynamics", "rumour"], "dynamics='rumour'"),
        (["evaluate", "circle", "--captors", "2"], "circle has no such option"),
        (["evaluate", "circle", "--commands", "stay", "jump"], "'jump' is none of stay, up"),
        (["evaluate", "circle", "--episodes", "0"], "episodes=0: must be at least 1"),
        (
            ["evaluate", "circle", "--seed", "4294967296"],
            "seed=4294967296: must be less than 2**32",
        ),
        (["bench", "envs", "--seconds", "0"], "seconds=0.0: must be more than 0"),
        (["check", "nowhere"], "nowhere"),
        (["check", "selectmdp.envs:Square"], "Square"),
    ],
)
def test_a_mistake_ends_with_its_message_and_exit_code_2(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_check_of_a_good_world_passes(capsys):
    cli.main(["check", "selectmdp.envs:PredatorPrey", "--json"])
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["passed"] is True


def test_demo_leaves_a_film_of_each_world(tmp_path, capsys):
    cli.main(["demo", "--out", str(tmp_path / "films"), "--episodes", "2"])
    for name in ("circle", "predator-prey"):
        assert (tmp_path / "films" / f"{name}.gif").read_bytes()[:4] == b"GIF8"
    assert "greedy" in capsys.readouterr().out


def test_ctrl_c_ends_with_a_word_and_exit_code_130(monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("selectmdp.evaluation.evaluate", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main(["evaluate", "circle"])
    assert ended.value.code == 130
    assert "stopped" in capsys.readouterr().err
