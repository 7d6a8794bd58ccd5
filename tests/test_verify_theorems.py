"""Theorems 1 and 2 at small sizes: they hold, and do not where their premises are broken."""

from collections.abc import Iterator
from dataclasses import replace

import jax
import numpy as np
import pytest

from selectmdp.theory import Plan, landscape, local_optimality, targets, universality
from selectmdp.theory.networks import Sizes

SMALL = (
    landscape.Setting(Sizes(0, 3, 1, 1, channels=1, hidden=1), "sums", 20),
    landscape.Setting(Sizes(2, 2, 1, 1, channels=1, hidden=1), "sums", 10, penalty=1e-3),
)
PLAN = Plan(worlds=1, starts=2, targets=("sums",), widths=(2, 16), steps=800, points=512)


def nobody(done: int, total: int) -> None:
    assert 0 < done <= total


@pytest.fixture(autouse=True, scope="module")
def small_settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_optimality, "SETTINGS", SMALL)
        yield


@pytest.mark.slow
def test_theorem_1_holds_at_every_point_that_a_training_arrives_at():
    verdict = local_optimality.check(PLAN, nobody)
    assert verdict.holds
    assert verdict.instances + verdict.details["unconverged"] == 4
    assert verdict.max_error < 1e-8
    assert max(verdict.details["largest"].values()) < 1e-9
    for point in verdict.details["points"]:
        # The dense loss bends down at least as much as the shared one: Θ is part of Ω.
        assert point["dense_curvature"] <= point["shared_curvature"] + 1e-9
        assert point["descends"] == (point["dense_curvature"] < -local_optimality.BENT)
        assert point["path"][0][2] > 1e-4 > point["path"][-1][2]


@pytest.mark.parametrize("broken", ["untie", "target"])
def test_theorem_1_does_not_hold_without_its_premises(broken):
    verdict = local_optimality.check(replace(PLAN, broken=broken, starts=1), nobody)
    assert not verdict.holds
    assert verdict.instances > 0
    # Not for want of points: θ has no slope there, ω(θ) has.
    largest = verdict.details["largest"]
    assert largest["shared_slope"] < 1e-9
    assert min(point["dense_slope"] for point in verdict.details["points"]) > 1e-3
    assert max(largest["outputs"], largest["lemma_1"], largest["tangent"]) > 1e-3
    assert verdict.details["saddles"] == 0


def test_a_saddle_is_seen_to_descend_and_a_bowl_is_not():
    bowl = _quadratic([2.0, 1.0, 3.0])
    saddle = _quadratic([2.0, -1.0, 3.0])
    here = np.zeros(3)
    downhill = np.array([0.0, 1.0, 0.0])
    assert not local_optimality.descends(bowl, here, downhill)
    assert local_optimality.descends(saddle, here, downhill)
    assert not local_optimality.descends(saddle, here, np.array([1.0, 0.0, 0.0]))


def _quadratic(bends: list[float]) -> landscape.Landscape:
    """1 + Σ bends · ω², in three dimensions."""
    return landscape.Landscape(
        projection=np.eye(3),
        dense_loss=lambda omega: 1.0 + float(np.array(bends) @ omega**2),
        apart=lambda theta, omega: 0.0,
        untied=lambda omega: omega,
        moves=np.arange(3)[None],
    )


def test_a_training_arrives_where_the_slope_ends():
    with jax.enable_x64(True):
        ground = landscape.landscape(SMALL[1], targets.EQUI_INVARIANT["sums"], 3)
        arrival = local_optimality.train(ground, local_optimality.beginning(SMALL[1], 3))
    assert arrival.slope < 1e-9
    assert arrival.path[0][0] > 1e-2


@pytest.mark.slow
def test_theorem_2_holds_and_does_not_for_a_target_that_depends_on_places():
    verdict = universality.check(PLAN, nobody)
    assert verdict.holds
    narrow, wide = (fit["error"] for fit in verdict.details["fits"])
    assert wide < 0.5 * narrow
    control = verdict.details["control"]
    assert control["floor"] == pytest.approx(0.5, abs=0.02)
    assert min(control["errors"]) > 0.45
    errors = [row["error"] for row in verdict.details["construction"]["rows"]]
    assert errors[-1] < 0.01 < errors[0]


@pytest.mark.slow
def test_theorem_2_does_not_hold_if_such_a_target_is_among_its_own():
    # Hardly trained, for no training could help it.
    verdict = universality.check(replace(PLAN, broken="target", steps=20), nobody)
    assert not verdict.holds
    assert verdict.max_error > 0.4
