"""An S-MDP and its IS-MDP have one optimum (paper §2.1), and the footnote's discount breaks it.

The two are solved apart: over joint actions by `solve`, over single picks by `solve_iterated`. They
must agree on the value of every state, and on which sets of picks are best: all of them where
several are, for in worlds that treat items alike ties are the rule.
"""

import numpy as np
from jaxtyping import Bool

from selectmdp.theory.iterated import IteratedSolution
from selectmdp.theory.joint import Picks
from selectmdp.theory.plan import FOOTNOTE, Plan, Progress, Solved, Verdict
from selectmdp.theory.solve import Solution

ALLOWED = 1e-8
TIE = 1e-7
"""Values no further apart are equal; both optima are known to about 1e-10."""


def check(plan: Plan, progress: Progress) -> Verdict:
    """Values and best sets of both forms, in every world and state."""
    solved = plan.solved
    errors = [value_error(each) for each in solved]
    other = [other_picks(each) for each in solved]
    ties = sum(int((best_joint(each.joint).sum(axis=1) > 1).sum()) for each in solved)
    footnotes = []
    for index, each in enumerate(solved):
        if each.world.num_select > 1:  # a single pick has nothing between phases
            footnotes.append(plan.solve(index, between=FOOTNOTE))
        progress(index + 1, len(solved))
    missed = [value_error(each) for each in footnotes]
    return Verdict(
        statement="S-MDP and IS-MDP are equivalent (§2.1)",
        checked="value and best sets of picks in every state, each form solved by itself",
        holds=max(errors) <= ALLOWED and sum(other) == 0 and min(missed) > ALLOWED,
        instances=len(solved),
        max_error=max(errors),
        allowed=ALLOWED,
        details={
            "states": sum(each.world.num_states for each in solved),
            "states_with_ties": ties,
            "states_with_other_picks": sum(other),
            "controls": {"discount 0 between phases": min(missed)},
            "footnote": {
                "instances": len(footnotes),
                "states": sum(each.world.num_states for each in footnotes),
                "states_with_other_picks": sum(other_picks(each) for each in footnotes),
                "smallest_error": min(missed),
            },
        },
    )


def value_error(solved: Solved) -> float:
    """The largest difference of a state's value."""
    return float(np.abs(solved.joint.values - solved.iterated.values).max())


def other_picks(solved: Solved) -> int:
    """In how many states the best sets of one form are not those of the other."""
    joint = best_joint(solved.joint)
    return sum(
        greedy_sets(solved.iterated, state)
        != {picks for picks, best in zip(solved.world.joint, joint[state], strict=True) if best}
        for state in range(solved.world.num_states)
    )


def best_joint(solution: Solution) -> Bool[np.ndarray, "S A"]:
    """Every best joint action of every state."""
    return solution.action_values >= solution.values[:, None] - TIE


def greedy_sets(solution: IteratedSolution, state: int) -> set[Picks]:
    """All sets that greedy picks can end in: where several pairs are best, each is followed."""
    open_prefixes: set[Picks] = {()}
    for _ in range(solution.world.num_select):
        longer: set[Picks] = set()
        for picks in open_prefixes:
            q = solution.phase_q(state, picks)
            best = np.argwhere(q >= q.max() - TIE).tolist()
            longer |= {(*picks, (item, command)) for item, command in best}
        open_prefixes = longer
    return {tuple(sorted(picks)) for picks in open_prefixes}
