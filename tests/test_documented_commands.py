"""Every command in the pages is one that can be typed: its names, options and values are parsed."""

import functools
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tyro

from selectmdp import cli
from selectmdp.experiments import sweeps

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINE = re.compile(r"^    (?:[A-Z_]+=\S+ )*selectmdp (.+)$", re.MULTILINE)
INLINE = re.compile(r"`selectmdp (\w+ [^`]*)`")


def commands(page: str) -> list[list[str]]:
    """What is typed after `selectmdp`, in blocks and in sentences; those with a … are not whole."""
    text = page.replace("\\\n", " ")
    lines = [line.partition("&&")[0] for line in LINE.findall(text)]
    lines += [" ".join(each.split()) for each in INLINE.findall(text)]
    return [shlex.split(line, comments=True) for line in lines if "…" not in line]


def parsed(typed: list[str]) -> list[Any]:
    """The command that would be run, which is not."""
    called: list[Any] = []

    def instead(name: str, function: Any) -> Any:
        @functools.wraps(function)
        def record(*given: Any, **named: Any) -> None:
            called.append((name, given, named))

        return record

    stood_in = {name: instead(name, each) for name, each in cli.COMMANDS.items()}
    tyro.extras.subcommand_cli_from_dict(stood_in, args=typed)
    return called


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_of_a_page_can_be_typed(path: Path) -> None:
    for typed in commands(path.read_text(encoding="utf-8")):
        try:
            (called,) = parsed(typed)
        except SystemExit:
            pytest.fail(f"{path.name}: selectmdp {shlex.join(typed)}")
        assert called[0] == typed[0]


def test_the_search_above_finds_commands_and_what_is_wrong_with_them() -> None:
    found = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert ["train", "--out", "runs/c", "--resume"] in found
    assert len(found) > 15
    with pytest.raises(SystemExit):
        parsed(["train", "circle", "--num-itens", "3"])


def test_the_files_of_the_page_about_sweeps_are_swept_and_searched() -> None:
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    swept, searched = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(sweeps.configs_from(tomllib.loads(swept))) == 48
    assert "That is 48 runs" in page
    told = tomllib.loads(searched)
    assert set(told["search"]) == {"settings.learning_rate", "settings.minibatch"}
    assert len(sweeps.configs_from(told)) == 2
