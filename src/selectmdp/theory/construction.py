"""Theorem 2's proof as weights (paper, appendix B.2): four shared layers that compute H(Σξ, i, Σξ).

For a target of that form with known ξ and H (`targets.Sums`, sums of sines along directions):

1. φ: each ξ's hidden units, piecewise linear with so many knots, and the item itself, passed on;
2. φ: their sums, from the means: k times the selected mean; N − k times the unselected mean less
   the item's own share, so that only the others count;
3. φ: H's hidden units;
4. ψ: H.

An activation stands after layers 1 to 3, so a number v is passed on as two units ρ(v) and ρ(−v):
for the leaky ReLU ρ(v) − ρ(−v) = (1 + slope) · v, exactly and for every v. And a piecewise linear
function is a constant plus a sum of ρ(t − knot), exactly between the first and the last knot. So
the only error is that of interpolating sines, at most h²/8 for knots h apart, and `bound` adds up
what it becomes.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from selectmdp.nets.base import SLOPE
from selectmdp.theory.networks import Sizes, Theta
from selectmdp.theory.targets import Ridges, Sums


class Bent(NamedTuple):
    """Ridges as piecewise linear functions: `hidden` units and what they add up to."""

    directions: Float[np.ndarray, "D units"]
    shifts: Float[np.ndarray, " units"]
    sums: Float[np.ndarray, "units R"]
    constants: Float[np.ndarray, " R"]
    errors: Float[np.ndarray, " R"]
    """The most by which each misses its sine: h²/8."""


def construct(target: Sums, sizes: Sizes, knots: int) -> Theta:
    """The parameters θ of the proof; layers are as wide as they must be."""
    of_selected, of_unselected, whole = _bent_parts(target, sizes, knots)
    features, chosen = sizes.features, len(of_selected.constants)
    numbers = whole.directions.shape[0]  # that H is a function of
    both = _both_signs(features)
    first = {
        "unselected": _affine(
            own=np.concatenate([both, of_unselected.directions], axis=1),
            bias=np.concatenate([np.zeros(2 * features), of_unselected.shifts]),
            seen=2 * features + sizes.commands,
        ),
        "selected": _affine(
            own=of_selected.directions,
            bias=of_selected.shifts,
            seen=2 * features + sizes.commands,
        ),
    }
    # What layer 2 takes from a row of layer 1: the item, and minus its share of the sums.
    own = np.zeros((2 * features + len(of_unselected.shifts), numbers))
    own[: 2 * features, chosen : chosen + features] = both.T / (1.0 + SLOPE)
    own[2 * features :, chosen + features :] = -of_unselected.sums
    means = np.zeros((len(own) + len(of_selected.shifts), numbers))
    means[2 * features : len(own), chosen + features :] = sizes.unselected * of_unselected.sums
    means[len(own) :, :chosen] = sizes.selected * of_selected.sums
    bias = np.zeros(numbers)
    bias[:chosen] = sizes.selected * of_selected.constants
    bias[chosen + features :] = (sizes.unselected - 1) * of_unselected.constants
    pairs = _both_signs(numbers)
    second = {
        "unselected": _affine(own @ pairs, bias @ pairs, means=means @ pairs),
        "selected": _nothing(len(of_selected.shifts), len(means)),
    }
    third = {
        "unselected": _affine(
            own=pairs.T / (1.0 + SLOPE) @ whole.directions, bias=whole.shifts, seen=2 * numbers
        ),
        "selected": _nothing(0, 2 * numbers),
    }
    weights = target.weights.T
    psi = _affine(whole.sums @ weights, whole.constants @ weights, seen=len(whole.shifts))
    return {"phi": [first, second, third], "psi": psi}


def bound(target: Sums, sizes: Sizes, knots: int) -> float:
    """The most by which the construction can miss the target, on states within [−1, 1]."""
    of_selected, of_unselected, whole = _bent_parts(target, sizes, knots)
    passed = np.concatenate(
        [
            sizes.selected * of_selected.errors,
            np.zeros(sizes.features),
            (sizes.unselected - 1) * of_unselected.errors,
        ]
    )
    # A sine changes no faster than its argument.
    each = np.abs(target.whole.directions) @ passed + whole.errors
    return float((np.abs(target.weights) @ each).max())


def width(theta: Theta) -> int:
    """Units of a row in the widest layer."""
    return max(len(layer["unselected"]["bias"]) for layer in theta["phi"])


def _bent_parts(target: Sums, sizes: Sizes, knots: int) -> tuple[Bent, Bent, Bent]:
    """ξ_x, ξ_i and H's sines; each with knots over all that its argument can be."""
    item = np.ones(sizes.features)
    sums = [
        np.full(len(target.of_selected.shifts), float(sizes.selected)),
        item,
        np.full(len(target.of_unselected.shifts), sizes.unselected - 1.0),
    ]
    with_command = np.concatenate([item, np.ones(sizes.commands)])
    return (
        _bent(target.of_selected, with_command, knots),
        _bent(target.of_unselected, item, knots),
        _bent(target.whole, np.concatenate(sums), knots),
    )


def _bent(ridges: Ridges, largest: Float[np.ndarray, " D"], knots: int) -> Bent:
    """Sines of a · u + b interpolated in `knots` + 1 points, for |u| ≤ `largest`."""
    reach = np.abs(ridges.directions) @ largest
    places = np.linspace(ridges.shifts - reach, ridges.shifts + reach, knots + 1)
    sums, constants = [], []
    for column in places.T:
        ramps = column[:, None] - column[None, :-1]
        basis = np.concatenate([np.ones((knots + 1, 1)), _leaky(ramps)], axis=1)
        constant, *slopes = np.linalg.solve(basis, np.sin(column))
        sums.append(slopes)
        constants.append(constant)
    count = len(constants)
    spread = np.zeros((count * knots, count))
    for ridge, slopes in enumerate(sums):
        spread[ridge * knots : (ridge + 1) * knots, ridge] = slopes
    return Bent(
        directions=np.repeat(ridges.directions.T, knots, axis=1),
        shifts=(ridges.shifts - places[:-1]).T.ravel(),
        sums=spread,
        constants=np.array(constants),
        errors=(2.0 * reach / knots) ** 2 / 8.0,
    )


def _both_signs(count: int) -> Float[np.ndarray, "n 2n"]:
    """v ↦ (v, −v)."""
    return np.concatenate([np.eye(count), -np.eye(count)], axis=1)


def _affine(
    own: Float[np.ndarray, "F H"],
    bias: Float[np.ndarray, " H"],
    *,
    means: Float[np.ndarray, "S H"] | None = None,
    seen: int = 0,
) -> dict[str, Any]:
    """One set of one layer; without `means` it sees that many numbers in vain."""
    means = np.zeros((seen, own.shape[1])) if means is None else means
    return {"own": own, "means": means, "bias": bias}


def _nothing(own: int, seen: int) -> dict[str, Any]:
    """After layer 1 the selected rows are of no more use."""
    return _affine(np.zeros((own, 0)), np.zeros(0), seen=seen)


def _leaky(v: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return np.where(v > 0, v, SLOPE * v)
