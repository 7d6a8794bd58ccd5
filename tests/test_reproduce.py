"""`reproduce all --budget smoke`, killed in the middle, goes on: nothing is lost or made twice.

What it leaves is a page.
"""

import csv
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from selectmdp.experiments.figures import FIGURES

pytestmark = pytest.mark.slow


def started(out: Path) -> "subprocess.Popen[bytes]":
    typed = ["reproduce", "all", "--budget", "smoke", "--out", str(out), "--json"]
    return subprocess.Popen([sys.executable, "-m", "selectmdp", *typed], stdout=subprocess.PIPE)


def finals(out: Path) -> dict[str, dict[str, str]]:
    """Every finished run by name; one that stands there twice is a fault."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(out.glob("*-finals.csv")):
        with path.open() as file:
            for row in csv.DictReader(file):
                assert row["run"] not in found
                found[row["run"]] = row
    return found


def test_every_figure_at_its_smallest_and_a_kill_in_the_middle(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with started(out) as first:
        try:
            while len(finals(out)) < 5:
                assert first.poll() is None
                time.sleep(1)
        finally:
            first.kill()
    before = finals(out)
    second = started(out)
    told, _ = second.communicate()
    assert second.returncode == 0, told
    after = finals(out)
    assert {name: after[name] for name in before} == before  # their seconds too: not run again
    wanted = {name: len(figure.configs("smoke", "fast")) for name, figure in FIGURES.items()}
    assert wanted == {"4a": 9, "4b": 8, "4c": 8, "5a": 7, "5b": 7, "5c": 7}
    assert len(after) == sum(wanted.values()) + 4  # two N, the paper's network with two settings
    with (out / "generalization.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 6 * 4  # two N, three networks; four plays each
    with (out / "cost.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 11
    typed = ["report", str(out), "-o", str(tmp_path / "r.html"), "--figures", str(tmp_path / "png")]
    shown = subprocess.run(
        [sys.executable, "-m", "selectmdp", *typed, "--json"], check=True, capture_output=True
    )
    report = json.loads(shown.stdout)
    assert {problem.partition(": ")[2] for problem in report["problems"]} == {
        "every algorithm has 1 of 4 seeds",
        "every network has 1 of 4 seeds",
        "no runs",  # of the paper's own preset, which `all` does not make
    }
    assert len(report["figures"]) == 9
    judged = {each["name"] for each in report["claims"] if each["verdict"] != "not judged"}
    assert judged == {"cost-picks", "cost-items", "day"}  # the rest is about seeds
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
