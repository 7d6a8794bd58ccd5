"""The README's Python does what it says."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_two_examples():
    assert len(BLOCKS) == 2


@pytest.mark.parametrize("block", BLOCKS, ids=["evaluate", "gymnasium"])
def test_an_example_runs_and_prints_what_its_comments_say(block, capsys):
    exec(compile(block, "README.md", "exec"), {})
    said = [float(number) for number in re.findall(r"# about ([0-9.]+)", block)]
    shown = [float(line) for line in capsys.readouterr().out.split()]
    assert shown == pytest.approx(said, abs=0.01)


@pytest.mark.parametrize(
    "picture", re.findall(r"\]\((docs/[^)]+)\)", README.read_text(encoding="utf-8"))
)
def test_its_pictures_exist(picture):
    assert (README.parent / picture).is_file()
