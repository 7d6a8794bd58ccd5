"""The intuition behind U-sharing (paper §3.2): what must be picked is worth the same all along.

On exact Q*: as long as all picks so far belong to a best set, each other pair of that set is worth
what it was worth before the first pick, for the order of picks changes nothing. After any other
pick that is no longer so, and the largest difference there is reported beside it.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from selectmdp.theory.equivalence import best_joint
from selectmdp.theory.joint import Picks
from selectmdp.theory.plan import FOOTNOTE, Plan, Progress, Solved, Verdict

ALLOWED = 1e-8


class Drift(NamedTuple):
    """How far pairs of best sets move from their value in phase 0."""

    on_the_way: float
    """While all picks belong to a best set with the pair."""
    elsewhere: float
    """After other picks."""


def check(plan: Plan, progress: Progress) -> Verdict:
    """Values of pairs of best sets in all phases, in every world and state."""
    drifts = [drift(each) for each in plan.solved]
    footnotes = [
        drift(plan.solve(index, between=FOOTNOTE)).on_the_way
        for index, (_, picks, *_) in enumerate(plan.shapes)
        if picks > 1
    ]
    progress(1, 1)
    worst = max(each.on_the_way for each in drifts)
    return Verdict(
        statement="an item of the best set has one value in all phases (U-sharing)",
        checked="exact Q* of every pair of every best set, after all picks within the set",
        holds=worst <= ALLOWED < min(footnotes),
        instances=len(drifts),
        max_error=worst,
        allowed=ALLOWED,
        details={
            "after_other_picks": max(each.elsewhere for each in drifts),
            "controls": {"discount 0 between phases": min(footnotes)},
        },
    )


def drift(solved: Solved) -> Drift:
    """The largest differences of Q in a phase from Q in phase 0, for pairs of best sets."""
    world, iterated = solved.world, solved.iterated
    held = world.received.reshape(len(world.joint), -1).astype(float)
    best = best_joint(solved.joint).astype(float)
    begin = iterated.q[0].reshape(world.num_states, 1, -1)
    in_some_set = (best @ held > 0)[:, None]
    on_the_way, elsewhere = 0.0, 0.0
    for q, prefixes in zip(iterated.q, iterated.prefixes, strict=True):
        now = q.reshape(*q.shape[:2], -1)
        within = _within(solved, prefixes)
        # A best set that holds the picks so far and this pair.
        member = np.einsum("sa,pa,am->spm", best, within.astype(float), held, optimize=True) > 0
        legal = np.isfinite(now)
        moved = np.abs(np.where(legal, now, 0.0) - begin)
        on_the_way = max(on_the_way, np.where(member & legal, moved, 0.0).max())
        elsewhere = max(elsewhere, np.where(in_some_set & ~member & legal, moved, 0.0).max())
    return Drift(float(on_the_way), float(elsewhere))


def _within(solved: Solved, prefixes: tuple[Picks, ...]) -> Bool[np.ndarray, "P A"]:
    """Which joint actions hold all picks of which prefix."""
    joint = [set(picks) for picks in solved.world.joint]
    return np.array([[set(picks) <= each for each in joint] for picks in prefixes])
