"""The benchmark of a policy in use has its shape, and its processes do what they say."""

import json
from pathlib import Path

import pytest

from selectmdp import cli
from selectmdp.bench import policy
from selectmdp.spec import SelectError


@pytest.mark.slow
def test_the_benchmark_starts_every_way_and_gives_json(monkeypatch, capsys):
    monkeypatch.setattr(policy, "ITEMS", (7,))
    monkeypatch.setattr(policy, "STARTS", 1)
    cli.main(["bench", "policy", "--seconds", "0.001", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [row["way"] for row in told["cold"]] == [
        "selectmdp",
        "selectmdp, compiled before",
        "onnxruntime",
    ]
    for row in told["cold"]:
        parts = [row[f"{part}_seconds"] for part in ("import", "load", "select")]
        assert 0 < sum(parts) < row["seconds"]
        assert row["cpu_seconds"] > 0
    assert [(row["way"], row["num_items"]) for row in told["warm"]] == [
        ("selectmdp", 7),
        ("onnxruntime", 7),
    ]
    for row in told["warm"]:
        assert 0 < row["best_ms"] <= row["median_ms"]


def test_a_table_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(policy, "_save", lambda path: None)
    monkeypatch.setattr(policy, "find_spec", lambda name: None)
    monkeypatch.setattr(policy.runs, "load", lambda path: Idle())
    names = ("seconds", "import_seconds", "load_seconds", "select_seconds", "cpu_seconds")
    monkeypatch.setattr(policy, "_cold", lambda *case: dict.fromkeys(names, 1.25))
    cli.main(["bench", "policy", "--seconds", "0.0001"])
    shown = capsys.readouterr().out
    assert "compiled before" in shown
    assert "1.25" in shown
    assert "1000" in shown
    assert "onnxruntime" not in shown


class Idle:
    def select(self, items):
        return len(items)


def test_a_process_that_fails_is_told():
    with pytest.raises(SelectError, match="no_such_module"):
        policy._cold("import no_such_module", Path("nowhere"), None)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_no_time_to_measure_is_refused(seconds):
    with pytest.raises(SelectError, match="must be more than 0 and finite"):
        policy.measure(seconds, lambda done, total: None)
