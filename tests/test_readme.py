"""The README's Python does what it says."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import tiny

from selectmdp import training

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_three_examples():
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("block", BLOCKS, ids=["train", "evaluate", "gymnasium"])
def test_an_example_runs_and_prints_what_its_comments_say(block, capsys, monkeypatch, tmp_path):
    train = training.train

    def train_tiny(task: str, **how: Any) -> Any:
        return train(task, **{**how, **tiny.WORLD, **tiny.RUN})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training, "train", train_tiny)
    names: dict[str, Any] = {}
    with tiny.in_haste() if "sm.train" in block else nullcontext():
        exec(compile(block, "README.md", "exec"), names)
    said = [float(number) for number in re.findall(r"# about ([0-9.]+)", block)]
    shown = [float(line) for line in capsys.readouterr().out.split()]
    assert shown == pytest.approx(said, abs=0.01)
    if "picks" in names:
        assert names["picks"].items.shape == names["picks"].commands.shape == (2,)
        assert names["more"].extrapolates is True
        assert sorted(names["more"].items.tolist()) == [0, 1, 2]


@pytest.mark.parametrize(
    "picture", re.findall(r"\]\((docs/[^)]+)\)", README.read_text(encoding="utf-8"))
)
def test_its_pictures_exist(picture):
    assert (README.parent / picture).is_file()
