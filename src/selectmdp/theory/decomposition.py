"""Lemma 2 (paper, appendix B.2): F(x, i, i₋) = H(Σ ξ(x), i, Σ ξ(i₋)), with ξ written down.

Twice. For the exact Q* of worlds whose items have levels, ξ is one-hot and the sums count: Q* must
be one number wherever the counts and the item are the same. For scalar items ξ(t) = (t, t², …, tⁿ)
as in the proof that the paper cites: Newton's identities and the roots of a polynomial bring the
set back from its sums, and H is F of what came back. For items of two numbers such powers, number
by number, do not tell who belongs to whom: that is the control.
"""

import jax
import numpy as np
from jaxtyping import Float

from selectmdp.theory import targets
from selectmdp.theory.iterated import IteratedSolution
from selectmdp.theory.networks import Sizes
from selectmdp.theory.plan import Plan, Progress, Verdict

ALLOWED_EXACT = 1e-8
ALLOWED = 1e-6
"""Of scalar sets: where two items nearly meet, roots are known to half of the digits."""
SMALL_SETS = ((1, 2), (2, 3), (3, 4))
"""Selected and unselected items."""
SCALAR = {name: kind for name, kind in targets.EQUI_INVARIANT.items() if kind.features == 1}
APART = 4.0
"""A scalar and its command are one scalar t + 4c: no two of them meet."""
SETS = 100
"""Random states of each size."""


def check(plan: Plan, progress: Progress) -> Verdict:
    """Both decompositions, and their controls."""
    counted = [counts_deviation(each.iterated) for each in plan.solved]
    progress(1, 3)
    recovered = [power_deviation(name, sizes, plan.seed) for name in SCALAR for sizes in SMALL_SETS]
    progress(2, 3)
    asymmetric = [
        counts_deviation(plan.solve(index, symmetric=False).iterated)
        for index in range(len(plan.shapes))
    ]
    controls = {
        "asymmetric world": min(asymmetric),
        "powers of each number of a pair": vector_deviation(plan.seed),
    }
    progress(3, 3)
    exact = max(counted) <= ALLOWED_EXACT
    return Verdict(
        statement="F = H(Σξ(x), i, Σξ(i₋)) (lemma 2)",
        checked="exact Q* by counts; functions of scalar sets by sums of powers",
        holds=exact and max(recovered) <= ALLOWED < min(controls.values()),
        instances=len(counted) + len(recovered),
        max_error=max(*counted, *recovered),
        allowed=ALLOWED,
        details={
            "counts_max_error": max(counted),
            "powers_max_error": max(recovered),
            "controls": controls,
        },
    )


def counts_deviation(solution: IteratedSolution) -> float:
    """The largest spread of Q* among pairs with the same counts, level and command."""
    looks = solution.world.items.argmax(axis=2)
    levels, commands = solution.world.spec.item_features, solution.world.spec.num_commands
    seen = np.eye(levels, dtype=int)[looks]
    worst = 0.0
    for q, prefixes in zip(solution.q, solution.prefixes, strict=True):
        keys, values = [], []
        for place, picks in enumerate(prefixes):
            left = [item for item in range(looks.shape[1]) if item not in dict(picks)]
            chosen = np.zeros((len(looks), commands, levels), int)
            for item, command in picks:
                chosen[:, command] += seen[:, item]
            others = seen[:, left].sum(axis=1)
            for item in left:
                parts = (chosen.reshape(len(looks), -1), looks[:, [item]], others - seen[:, item])
                keys.append(np.concatenate(parts, axis=1))
                values.append(q[:, place, item])
        worst = max(worst, _spread(np.concatenate(keys), np.concatenate(values)))
    return worst


def power_deviation(name: str, small: tuple[int, int], seed: int) -> float:
    """How far H of the sums is from F, for random scalar sets."""
    sizes = Sizes(*small, features=1, commands=2, channels=1)
    with jax.enable_x64(True):
        target = jax.jit(jax.vmap(SCALAR[name].make(np.random.default_rng(seed), sizes)))
        x, i = (np.asarray(part) for part in targets.states(jax.random.key(seed), sizes, SETS))
        values = np.asarray(target(x, i))
        back = [recombined(x[row], i[row], item) for row, item in np.ndindex(values.shape[:2])]
        again = np.asarray(target(*(np.stack(part) for part in zip(*back, strict=True))))
    return float(np.abs(again[:, 0].reshape(values.shape) - values).max())


def recombined(
    x: Float[np.ndarray, "k 3"], i: Float[np.ndarray, "M 1"], item: int
) -> tuple[Float[np.ndarray, "k 3"], Float[np.ndarray, "M 1"]]:
    """A state made of an item, which stands first, and of two sums of powers alone."""
    codes = from_powers(powers(x[:, 0] + APART * x[:, 2], len(x)))
    commands = np.round(codes / APART)
    chosen = np.stack([codes - APART * commands, 1.0 - commands, commands], axis=1)
    others = np.delete(i[:, 0], item)
    back = from_powers(powers(others, len(others)))
    return chosen, np.concatenate([i[item], back])[:, None]


def powers(numbers: Float[np.ndarray, " n"], count: int) -> Float[np.ndarray, " count"]:
    """Σ ξ(t) with ξ(t) = (t, t², …)."""
    return np.array([(numbers**power).sum() for power in range(1, count + 1)])


def from_powers(sums: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """η: the numbers, ascending, whose sums of powers these are (Newton's identities, roots)."""
    elementary = [1.0]
    for k in range(1, len(sums) + 1):
        terms = [(-1) ** (j - 1) * elementary[k - j] * sums[j - 1] for j in range(1, k + 1)]
        elementary.append(sum(terms) / k)
    signs = (-1.0) ** np.arange(len(elementary))
    return np.sort(np.roots(signs * np.array(elementary)).real)


def vector_deviation(seed: int) -> float:
    """What a function of pairs of numbers loses if it sees sums of powers of each number alone.

    Two sets of two pairs, with the second numbers exchanged, have the same sums; F = Σ ab tells
    them apart. Any H of the sums is wrong by half of the difference in one of them.
    """
    (a, c), (b, d) = np.random.default_rng(seed).uniform(0.2, 1.0, (2, 2)) * [[1, -1], [1, -1]]
    one, other = np.array([[a, b], [c, d]]), np.array([[a, d], [c, b]])
    sums, others = (np.array([powers(column, 2) for column in each.T]) for each in (one, other))
    difference = abs(one.prod(axis=1).sum() - other.prod(axis=1).sum()) / 2.0
    return float(difference) if np.allclose(sums, others) else 0.0


def _spread(keys: np.ndarray, values: Float[np.ndarray, "rows C"]) -> float:
    """The largest difference among rows with the same key."""
    _, group = np.unique(keys, axis=0, return_inverse=True)
    most = np.full((group.max() + 1, values.shape[1]), -np.inf)
    least = -most
    np.maximum.at(most, group.ravel(), values)
    np.minimum.at(least, group.ravel(), values)
    return float((most - least).max())
