"""The benchmark of host environments has its shape; how fast they are is no test's matter."""

import json

import numpy as np
import pytest

from selectmdp import check, cli, evaluate
from selectmdp.bench import host, host_worlds
from selectmdp.spec import SelectError


def test_the_benchmark_measures_every_world_and_gives_json(monkeypatch, capsys):
    monkeypatch.setattr(host, "WORLDS", {"shelves": ("Shelves", 4), "circles": ("Circles", 3)})
    monkeypatch.setattr(host, "cores", lambda: 2)
    monkeypatch.setattr(host, "_training", lambda factory, seconds: {"step_us": 5.0})
    cli.main(["bench", "host", "--seconds", "0.01", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["cores"], [row["copies"] for row in told["rows"]]) == (2, [4, 4, 4, 3, 3, 3])
    cases = [(row["world"], row["workers"]) for row in told["rows"]]
    assert cases == [(world, workers) for world in host.WORLDS for workers in (0, 1, 2)]
    for row in told["rows"]:
        assert row["bare_us"] > 0
        assert row["overhead_us"] == pytest.approx(row["loop_us"] - row["bare_us"])
        assert row["ratio"] == pytest.approx(row["loop_us"] / row["bare_us"])


def test_a_table_is_shown(monkeypatch, capsys):
    row = {"bare_us": 2.0, "loop_us": 5.5, "overhead_us": 3.5, "ratio": 2.75}
    monkeypatch.setattr(host, "_beside", lambda *case: row)
    monkeypatch.setattr(host, "_training", lambda factory, seconds: {"step_us": 123.0})
    cli.main(["bench", "host"])
    shown = capsys.readouterr().out
    assert "2.75×" in shown
    assert "shelves N=50: 123 µs a step of the fast preset" in shown


def test_the_worlds_are_sound_and_circles_are_the_papers():
    for world in (host_worlds.Shelves, host_worlds.Circles):
        assert check.check_select_env(lambda world=world: world(8), steps=5).passed
    told = evaluate(host_worlds.Circles, episodes=8, steps=60, workers=0)
    assert told.mean_reward == pytest.approx(0.1, abs=0.05)  # random picks: about 0.098
    assert np.isfinite(told.ci95)


@pytest.mark.parametrize("seconds", [0.0, float("nan")])
def test_no_time_to_measure_is_refused(seconds):
    with pytest.raises(SelectError, match=f"seconds={seconds}"):
        host.measure(seconds, lambda done, total: None)
