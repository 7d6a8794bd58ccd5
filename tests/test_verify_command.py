"""`selectmdp verify` as a person and as a program use it; the checks themselves are stand-ins."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from selectmdp import cli
from selectmdp.theory import Plan, Verdict, page
from selectmdp.theory import verify as run_all
from selectmdp.theory.plan import BREAKS, SIZES

NAMES = [
    "equivalence",
    "equi_invariance",
    "theorem_1",
    "theorem_2",
    "parameter_counts",
    "decomposition",
    "unified_sharing",
]
POINT = {
    "dense_curvature": -0.1,
    "descends": True,
    "path": [(0, 1.0, 0.5), (7, 1e-12, 0.0)],
    "profile": [(-0.1, -0.01), (0.0, 0.0), (0.1, -0.01)],
    "random_profile": [(-0.1, 0.2), (0.0, 0.0), (0.1, 0.2)],
}
DETAILS: dict[str, dict[str, Any]] = {
    "theorem_1": {"points": [POINT], "saddles": 1, "descent_found": True},
    "theorem_2": {
        "fits": [
            {"target": "sums", "width": 2, "error": 0.3},
            {"target": "sums", "width": 8, "error": 0.1},
        ],
        "control": {"floor": 0.5, "widths": [2, 8], "errors": [0.6, 0.6]},
        "construction": {"rows": [{"width": 4, "error": 0.1, "bound": 0.2}]},
    },
}

LINUX = pytest.mark.skipif(not Path("/proc/self").exists(), reason="nobody can write into /proc")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Stand-ins: all hold, but theorem 1 with --break untie. The plans they were given."""
    given: list[Plan] = []

    def stand_in(name: str) -> Any:
        def check(plan: Plan, progress: Any) -> Verdict:
            given.append(plan)
            progress(1, 2)
            holds = not (name == "theorem_1" and plan.broken == "untie")
            details = {"controls": {"a <control>": 0.5}, **DETAILS.get(name, {})}
            return Verdict(f"statement <{name}>", "all", holds, 3, 1e-12, 1e-8, details)

        return check

    module = sys.modules["selectmdp.theory.verify"]
    monkeypatch.setattr(module, "CHECKS", {n: module.Check(stand_in(n), 1) for n in NAMES})
    return given


def test_the_real_checks_have_these_names():
    module = sys.modules["selectmdp.theory.verify"]
    assert list(module.CHECKS) == NAMES


def test_json_has_a_verdict_for_each_statement(checks, capsys):
    cli.main(["verify", "--json", "--seed", "5", "--size", "small"])
    told = json.loads(capsys.readouterr().out)
    assert set(NAMES) <= set(told)
    for name in NAMES:
        assert told[name]["holds"] is True
        assert told[name]["instances"] == 3
        assert told[name]["max_error"] == 1e-12
    assert told["theorem_1"]["descent_found"] is True
    assert (checks[0].seed, checks[0].worlds) == (5, SIZES["small"]["worlds"])


def test_what_does_not_hold_is_said_and_ends_with_code_1(checks, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["verify", "--break", "untie"])
    assert ended.value.code == 1
    shown = re.sub(r"[\s│]+", " ", capsys.readouterr().out)
    assert shown.count("does not hold") == 1
    assert shown.count("holds ") == 6
    assert "1 of 1 stationary points are saddles" in shown
    assert {plan.broken for plan in checks} == {"untie"}


def test_every_break_is_an_option():
    shown = re.sub(r"[\s│]+", " ", _help())
    for name in BREAKS:
        assert f"{name}:" in shown


def _help() -> str:
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        cli.main(["verify", "--help"])
    return out.getvalue()


def test_the_page_stands_alone_and_escapes_all(checks, tmp_path, capsys):
    del checks
    cli.main(["verify", "-o", str(tmp_path / "verify.html"), "--pictures", str(tmp_path)])
    capsys.readouterr()
    text = (tmp_path / "verify.html").read_text(encoding="utf-8")
    assert "statement &lt;theorem_1&gt;" in text
    assert "a &lt;control&gt;" in text
    assert "<control>" not in text
    assert text.count("data:image/png;base64,") == 2
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
    assert 'name="viewport"' in text
    assert "@media print" in text
    parser = _Balanced()
    parser.feed(text)
    assert parser.open == []
    for name in ("theorem-1.png", "theorem-2.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


class _Balanced(HTMLParser):
    """Keeps the elements that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_of_a_broken_run_says_what_is_broken():
    verdict = Verdict("s", "c", False, 1, 1.0, 1e-8, {})
    text = page.page({"equivalence": verdict}, Plan(broken="discount"))
    assert "the discount between phases is 0" in text
    assert "does not hold" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "{0}"], "is a folder: name a file in it"),
        (["-o", "{0}/nowhere/verify.html"], "there is no folder"),
        (["--pictures", "{0}/nowhere"], "there is no folder"),
        pytest.param(["-o", "/proc/verify.html"], "cannot write /proc", marks=LINUX),
        pytest.param(["--pictures", "/proc"], "cannot write /proc", marks=LINUX),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_any_work(
    options, message, checks, tmp_path: Path, capsys
):
    with pytest.raises(SystemExit) as ended:
        cli.main(["verify", *(option.format(tmp_path) for option in options)])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert checks == []


def test_progress_runs_from_0_to_all(checks):
    del checks
    heard: list[tuple[int, int]] = []
    run_all(Plan(), lambda done, total: heard.append((done, total)))
    assert heard == sorted(heard)
    assert heard[0][0] > 0
    assert heard[-1][0] < heard[-1][1]


def test_ctrl_c_ends_it_with_the_code_that_shells_know(monkeypatch, capsys):
    module = sys.modules["selectmdp.theory.verify"]

    def interrupted(plan: Plan, progress: Any) -> Verdict:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "CHECKS", {"equivalence": module.Check(interrupted, 1)})
    with pytest.raises(SystemExit) as ended:
        cli.main(["verify"])
    assert ended.value.code == 130
    assert "stopped" in capsys.readouterr().err
