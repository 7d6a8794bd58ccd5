"""A sweep on a real Ray cluster of this machine, with a worker and then the driver killed."""

from pathlib import Path

import pytest

from benchmarks.faults import sweeps
from benchmarks.faults.lab import Lab

pytest.importorskip("ray", reason='pip install "selectmdp[ray]"')
pytestmark = pytest.mark.slow


def test_a_killed_worker_and_a_killed_driver_lose_and_repeat_nothing(tmp_path: Path) -> None:
    tally = sweeps.sweep_killed(Lab(tmp_path / "lab"), trials=1, seed=0, done=lambda: None)
    assert tally.notes == []
    assert (tally.trials, tally.lost) == (1, 0)
