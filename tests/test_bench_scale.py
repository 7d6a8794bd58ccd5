"""The benchmark of scale has its shape, and reads programs as they are written."""

import json

import probing
import pytest

from selectmdp import cli
from selectmdp.bench import scale
from selectmdp.bench.scale import Size, all_reduced
from selectmdp.spec import SelectError


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(scale, "PICKS", 2)
    monkeypatch.setattr(scale, "ACTING", (7,))
    monkeypatch.setattr(scale, "RUN", (Size(5, 2, 2, 2),))
    monkeypatch.setattr(scale, "COMPILED", (Size(50, 4, 2, 4),))


@pytest.mark.slow
def test_the_benchmark_runs_what_is_small_and_compiles_the_rest(small, capsys):
    with probing.changed("jax_disable_most_optimizations", True):
        cli.main(["bench", "scale", "--seconds", "0.001", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["devices"], told["num_select"]) == (1, 2)
    assert [row["num_items"] for row in told["acting"]] == [7]
    (ran,), (compiled,) = told["run"], told["compiled"]
    assert ran["step_ms"] > 0
    assert ran["step_cpu_ms"] > 0
    assert "step_ms" not in compiled
    assert compiled["working_megabytes"] > ran["working_megabytes"] > 0
    assert ran["updates_a_round"] == 8  # 4 epochs of 4 steps in batches of 2
    assert ran["all_reduce_bytes"] == 0  # there is nobody to tell


def test_a_table_is_shown(monkeypatch, capsys):
    row = dict.fromkeys(("median_ms", "best_ms", "cpu_ms", "peak_megabytes"), 1.25)
    monkeypatch.setattr(scale, "acting_row", lambda *case: {"num_items": 100_000, **row})
    parts = ("state_megabytes", "working_megabytes", "all_reduce_bytes", "updates_a_round")
    training = {**Size(1_000, 16)._asdict(), **dict.fromkeys(parts, 3)}
    monkeypatch.setattr(scale, "training_row", lambda *case: training)
    cli.main(["bench", "scale"])
    shown = capsys.readouterr().out
    assert "100,000" in shown
    assert "1,000 │   16 × 8 │    16 │" in shown


def test_what_devices_tell_each_other_is_counted_in_bytes():
    program = """
  %one = f32[] all-reduce(%loss), channel_id=1
  %all-reduce = (f32[1,3,64]{2,1,0}, bf16[64]{0}) all-reduce(%a, f32[64] %b), channel_id=2
  %other = f32[100]{0} add(%all-reduce, %b)
"""
    assert all_reduced(program) == 4 + 4 * 192 + 2 * 64


@pytest.mark.parametrize("seconds", [0.0, float("inf"), float("nan")])
def test_no_time_to_measure_is_refused(seconds):
    with pytest.raises(SelectError, match="must be more than 0 and finite"):
        scale.measure(seconds, lambda done, total: None)
