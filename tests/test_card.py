"""A model card tells what the files of a run tell, and nothing in them can mark it up."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from worlds import Shelf

import selectmdp as sm
from selectmdp import agent, checkpoint, cli, runs
from selectmdp.algorithms import algorithm
from selectmdp.card import _text, model_card
from selectmdp.config import TrainConfig
from selectmdp.evaluation import summary
from selectmdp.policy import Policy
from selectmdp.results import TrainResult
from selectmdp.sharing import first_map
from selectmdp.spec import SelectError


def saved(
    folder: Path, name: str, env: Any, task: str = "circle", settings: Any = None, **options: Any
) -> Path:
    """A checkpoint of a training that was never made; a card needs no parameters."""
    config = TrainConfig(task, options, name, "paper", settings or {}, 1000, 5)
    phases = first_map(algorithm(name).sharing, env.spec.num_select)
    checkpoint.save(folder, {}, runs.policy_meta(config, env, 1000, phases, 72.4))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A checkpoint with a result beside it: 0.3 and 0.5 in two episodes, random 0.1 in both."""
    folder = saved(tmp_path / "run", "isq-i", ENV, settings={"channels": 8}, num_items=6)
    world = {"unit": "area", "dynamics": "figures"}
    judged, random = (
        summary(np.asarray(rewards), 20, 7, world) for rewards in ([0.3, 0.5], [0.1, 0.1])
    )
    policy = Policy(agent.make("isq-i", ENV), {}, (0, 1), checkpoint.manifest(folder))
    result = TrainResult(policy, judged, {"random": random}, folder, 72.4, 500.0)
    (folder / "result.json").write_text(json.dumps(result.to_json()))
    return folder


ENV = sm.Circle(num_items=6, num_select=2)


def test_the_card_of_a_run_tells_task_training_and_evaluation(run: Path) -> None:
    card = model_card(run)
    assert card.startswith("# isq-i on circle, K = 2\n\n## Task\n\nIn every step, pick 2 (K) of N ")
    assert "commands: stay, up, down, left, right. An item is described by 3 numbers" in card
    assert "Trained with N = 6." in card
    assert "| steps | 1,000 of 1,000 | environment steps |" in card
    assert "| time | 72 s |" in card
    assert "| seed | 5 |" in card
    assert "| parameter sets | 2 |" in card
    assert "| channels | 8 | a setting that is not the preset\\'s |" in card
    assert f"selectmdp {sm.__version__}, jax " in card
    # Student's t for two episodes: 12.706 · 0.1414 / √2
    assert "| isq-i | 0.400 ± 1.271 | area |\n| random | 0.100 ± 0.000 | area |" in card
    assert "over 2 episodes of 20 steps, the same for all (seed 7, figures dynamics)" in card
    assert [line for line in card.splitlines() if line.startswith("## ")] == [
        "## Task",
        "## Training",
        "## Evaluation",
        "## Limits",
        "## Use",
    ]


def test_without_a_result_of_its_own_it_says_how_to_evaluate(run: Path) -> None:
    unknown = "None is stored with this policy: `selectmdp evaluate RUN` makes one."
    assert unknown not in model_card(run)
    told = json.loads((run / "result.json").read_text())
    # The result is of another step than the checkpoint.
    (run / "result.json").write_text(json.dumps({**told, "steps": 750}))
    assert unknown in model_card(run)
    (run / "result.json").unlink()
    assert unknown in model_card(run)


@pytest.mark.parametrize(
    ("name", "told", "untold"),
    [
        ("isq-u", ["runs with any N", "order of items", "another K", "As ONNX"], ["random"]),
        (
            "vanilla",
            ["N = 50 only", "cannot be exported as ONNX: vanilla has weights"],
            ["any N", "another K", "order of"],
        ),
        ("rsq", ["Items are drawn at random", "exported as ONNX: rsq draws"], []),
        ("myopic", ["does not look further", "As ONNX"], []),
        ("idqn", ["does not know the picks already made"], []),
        ("eq", ["An item does not see the other items"], []),
        ("isq-i-1", ["only ever gives: stay."], []),
    ],
)
def test_limits_are_those_of_the_algorithm(
    tmp_path: Path, name: str, told: list[str], untold: list[str]
) -> None:
    card = model_card(saved(tmp_path / "run", name, sm.Circle()))
    limits = card[card.index("## Limits") :]
    assert [sentence for sentence in told if sentence not in limits] == []
    assert [sentence for sentence in untold if sentence in limits] == []


def test_context_and_rules_in_code_are_told(tmp_path: Path) -> None:
    hunt = model_card(saved(tmp_path / "hunt", "isq-u", sm.PredatorPrey(), "predator-prey"))
    assert "4 things (U) of 2 numbers each are seen" in hunt
    assert 'policy.select({"items": items, "context": context})' in hunt
    shelf = model_card(saved(tmp_path / "shelf", "isq-u", Shelf(), "Shelf"))
    assert "Which pairs stay legal after a pick is code of its world." in shelf
    assert "It cannot be exported as ONNX: its world offers legal_after" in shelf


def test_the_code_on_the_card_gives_the_world_where_load_needs_it(tmp_path: Path) -> None:
    def code(name: str, env: Any, task: str) -> str:
        card = model_card(saved(tmp_path / f"{name}-{task}", name, env, task))
        return next(line for line in card.splitlines() if line.startswith("policy = "))

    told = "  # the world it trained in, for its legal_after"
    assert code("isq-u", Shelf(), "Shelf") == f'policy = selectmdp.load("RUN", env=world){told}'
    assert code("isq-u", sm.League(), "league") == 'policy = selectmdp.load("RUN")'
    assert code("isq-u", sm.Circle(), "my:Circle") == 'policy = selectmdp.load("RUN")'
    assert code("sorting", sm.Circle(), "my:Circle").endswith("for its sort_key")


def test_what_stands_in_the_files_cannot_mark_up(tmp_path: Path) -> None:
    task = "a|b\n# <img src=x> [link](http://evil.example) `code` **bold** \x1b[31m ![i](j)"
    card = model_card(saved(tmp_path / "run", "isq-u", sm.Circle(), task, note="| --- |\n- x"))
    page = MarkdownIt("commonmark").enable("table").render(card)
    assert "<img" not in page
    assert "<a " not in page
    assert "<strong>" not in page
    assert page.count("<h1>") == 1
    assert page.count("<table>") == 2
    assert "\x1b" not in card
    assert "a|b # &lt;img src=x&gt; [link](http://evil.example) `code` **bold** [31m" in page


@given(st.text())
def test_any_text_means_itself(text: str) -> None:
    page = MarkdownIt("commonmark").render(f"so {_text(text)}.")
    shown = "".join(each for each in " ".join(text.split()) if each.isprintable())
    for mark, code in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        shown = shown.replace(mark, code)
    assert " ".join(page.split()) == " ".join(f"<p>so {shown}.</p>".split())


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"references": {"random": 3}}'])
def test_a_result_that_cannot_be_read_is_refused(run: Path, content: str) -> None:
    (run / "result.json").write_text(content)
    with pytest.raises(SelectError, match=r"result\.json cannot be read .*: move it away"):
        model_card(run)


def test_the_command_prints_the_card_or_writes_it(run: Path, tmp_path: Path, capsys: Any) -> None:
    cli.main(["card", str(run)])
    assert capsys.readouterr().out == model_card(run)
    cli.main(["card", str(run), "-o", str(tmp_path / "MODEL_CARD.md")])
    assert capsys.readouterr().out == ""
    assert (tmp_path / "MODEL_CARD.md").read_text(encoding="utf-8") == model_card(run)


def test_where_there_is_no_run_it_says_so(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["card", str(tmp_path)])
    assert ended.value.code == 2
    assert "holds no run" in capsys.readouterr().err
