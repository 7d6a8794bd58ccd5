"""Tiny worlds with rules for picks: one goalkeeper, a budget, nothing to pick at all, a pass.

They are solved exactly, so that a learner can be judged; each rule changes what is best.
"""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from selectmdp import theory
from selectmdp.theory import Picks
from selectmdp.types import Observation

GAMMA = 0.5
FIELD, GOAL = (1.0, 2.0, 0.5), (4.0, 3.5, 0.0)
COST, WORTH = (3.0, 2.0, 1.0), (5.0, 3.0, 2.5)


def legal_after(observation: Observation, chosen: Any, command: Any) -> Any:
    """In state 0 command 1 (keep the goal) once; in state 1 picks cost at most 3 together."""
    cost = 3.0 * observation.items[:, 3]
    keeper = (chosen & (command == 1)).any()
    team = jnp.broadcast_to(jnp.stack([jnp.ones((), bool), ~keeper]), observation.legal.shape)
    spent = jnp.where(chosen, cost, 0.0).sum()
    affordable = jnp.broadcast_to((spent + cost <= 3.001)[:, None], observation.legal.shape)
    return jnp.where(observation.items[0, 0] > 0.5, affordable, team)


def ruled_world() -> theory.TinyWorld:
    """A team, then a purchase, then perhaps a day on which nothing can be picked.

    Team (state 0): of three players two play, at most one in goal. The best are item 0 in goal and
    item 1 in the field, 4 + 2 = 6, though item 1 in goal adds more as long as nobody is there.
    Purchase (state 1): item 0 costs the whole budget and earns 5; items 1 and 2 earn 5.5 together.
    But item 0 leads to a day off (state 2), on which nothing is present and 16 are earned, before
    the next team; the others lead to it at once. So with γ = ½ the states are worth
    V₀ = 6 + V₁/2, V₁ = 5 + V₂/2 and V₂ = 16 + V₀/2, which is V₀ = 100/7.
    """

    def rule(state: int, picks: Picks) -> tuple[float, int]:
        if state == 0:
            return sum((FIELD, GOAL)[command][item] for item, command in picks), 1
        if state == 1:
            return sum(WORTH[item] for item, _ in picks), 2 if (0, 0) in picks else 0
        return 16.0, 0

    items = np.zeros((3, 3, 5))
    items[0, :, 1], items[0, :, 2] = np.array(FIELD) / 4, np.array(GOAL) / 4
    items[1, :, 0], items[1, :, 3], items[1, :, 4] = 1.0, np.array(COST) / 3, np.array(WORTH) / 5
    present = np.array([[True] * 3, [True] * 3, [False] * 3])
    legal = np.ones((3, 3, 2), bool)
    legal[1, :, 1] = False
    given = {"num_commands": 2, "present": present, "legal": legal, "time_limit": 7}
    return theory.tabulate(rule, items, 2, legal_after=legal_after, **given)


def passing_world() -> theory.TinyWorld:
    """Up to two of three: in state 0 one item earns 1 and the others cost, in state 1 all cost.

    Who rests in state 1 is in state 0 next; who does not stays. With γ = ½ it is best to pick one
    item and pass, then to pass at once: V₀ = 1 + V₁/2 and V₁ = V₀/2, that is 4/3 and 2/3.
    """
    worth = ((1.0, -1.0, -0.5), (-1.0, -1.0, -2.0))

    def rule(state: int, picks: Picks) -> tuple[float, int]:
        rests = state == 1 and not picks
        return sum(worth[state][item] for item, _ in picks), 0 if rests else 1

    items = np.array([[[each, state] for each in worth[state]] for state in (0, 1)])
    return theory.tabulate(rule, items, 2, allow_pass=True, time_limit=7)


def prefixes(world: theory.TinyWorld) -> Iterator[tuple[int, Picks]]:
    """Every state with every way to have begun its picks, before one that is still to come."""
    for state in range(world.num_states):
        reached: list[Picks] = [()]
        while reached:
            picks = reached.pop()
            left = np.argwhere(world.open_after(picks)[state]).tolist()
            if len(picks) < world.num_select and (left or world.allow_pass):
                yield state, picks
                reached += [(*picks, (item, command)) for item, command in left]
