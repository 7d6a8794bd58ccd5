"""The IS-MDP solved for itself (paper §2.1): value iteration over a state and the picks so far.

`solve` reads the values of single picks off those of joint actions. Here nothing is read off: a
phase is a state of its own, a pick leads to the next phase, the last one to the world's next
state. So the two can be compared, and the discount between phases be set to something else.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from selectmdp.spec import SelectError
from selectmdp.theory.joint import Picks
from selectmdp.theory.solve import check_gamma
from selectmdp.theory.tiny import TinyWorld


@dataclass(frozen=True, eq=False)
class IteratedSolution:
    """The optimum of an IS-MDP; picks are told apart by their order, as in the paper."""

    world: TinyWorld
    gamma: float
    between: float
    """The discount from a phase to the next one of the same step."""
    values: Float[np.ndarray, " S"]
    """Of every state before its first pick."""
    prefixes: tuple[tuple[Picks, ...], ...]
    """Of each phase the picks that may lie behind it, in every order."""
    q: tuple[Float[np.ndarray, "S P N C"], ...]
    """Of each phase the value of every pair after every prefix; −∞ where it is not legal."""

    def phase_q(self, state: int, picks: Picks = ()) -> Float[np.ndarray, "N C"]:
        """Optimal value of each (item, command) after these picks, as `Solution.phase_q`."""
        if len(picks) >= len(self.q) or picks not in self.places[len(picks)]:
            raise SelectError(f"picks={picks} lie behind no phase of this world")
        return self.q[len(picks)][state, self.places[len(picks)][picks]]

    @cached_property
    def places(self) -> tuple[dict[Picks, int], ...]:
        """Of each phase where a prefix stands."""
        return tuple(
            {picks: index for index, picks in enumerate(prefixes)} for prefixes in self.prefixes
        )


class Phase(NamedTuple):
    """What a pick leads to, for every state, prefix and pair (item · C + command)."""

    legal: Bool[np.ndarray, "S P M"]
    ends: Bool[np.ndarray, "S P M"]
    """Whether the pick completes a joint action."""
    joint: Int[np.ndarray, "P M"]
    """The joint action it then completes."""
    follows: Int[np.ndarray, "P M"]
    """Otherwise the place of prefix and pick among the next phase's prefixes."""


def solve_iterated(
    world: TinyWorld, gamma: float, between: float = 1.0, tolerance: float = 1e-12
) -> IteratedSolution:
    """Value iteration; the values are within `tolerance` (relative, if they are above 1)."""
    check_gamma(gamma)
    if world.allow_pass or world.legal_after is not None:
        raise SelectError(f"{world}: only worlds without pass and legal_after; take solve")
    if not 0.0 <= between <= 1.0:
        raise SelectError(f"between={between}: must be within [0, 1]")
    prefixes, phases = _phases(world)
    values, change = np.zeros(world.num_states), np.inf
    q: list[np.ndarray] = []
    while gamma * change > (1.0 - gamma) * tolerance * max(1.0, np.abs(values).max()):
        ahead = world.rewards + gamma * (world.transitions @ values)
        q, begun = _backed_up(phases, ahead, between)
        now = np.where(phases[0].legal[:, 0].any(axis=1), begun, _without_a_pick(world, ahead))
        values, change = now, np.abs(now - values).max()
    shape = (world.spec.num_items, world.spec.num_commands)
    return IteratedSolution(
        world=world,
        gamma=gamma,
        between=between,
        values=values,
        prefixes=prefixes,
        q=tuple(each.reshape(*each.shape[:2], *shape) for each in q),
    )


def _backed_up(
    phases: list[Phase], ahead: Float[np.ndarray, "S A"], between: float
) -> tuple[list[Float[np.ndarray, "S P M"]], Float[np.ndarray, " S"]]:
    """All phases' values, the last first, and what a state is then worth before its first pick."""
    q: list[np.ndarray] = []
    best = np.zeros((len(ahead), 1))  # no pick follows the last phase
    for phase in reversed(phases):
        value = np.where(phase.ends, ahead[:, phase.joint], between * best[:, phase.follows])
        q.insert(0, np.where(phase.legal, value, -np.inf))
        best = np.where(phase.legal.any(axis=2), q[0].max(axis=2), 0.0)
    return q, best[:, 0]


def _phases(world: TinyWorld) -> tuple[tuple[tuple[Picks, ...], ...], list[Phase]]:
    """The prefixes of each phase, and where each pick leads."""
    spec, places = world.spec, {picks: index for index, picks in enumerate(world.joint)}
    pairs = list(product(range(spec.num_items), range(spec.num_commands)))
    open_pairs = world.open_pairs.reshape(world.num_states, -1)
    prefixes: list[tuple[Picks, ...]] = [((),)]
    reached = np.ones((world.num_states, 1), bool)
    phases = []
    for _ in range(spec.num_select):
        behind, after = prefixes[-1], list[Picks]()
        free = np.zeros((len(behind), len(pairs)), bool)
        joint, follows = np.zeros(free.shape, int), np.zeros(free.shape, int)
        for place, picks in enumerate(behind):
            for index, pair in enumerate(pairs):
                if pair[0] not in [item for item, _ in picks]:
                    free[place, index] = True
                    joint[place, index] = places.get(tuple(sorted((*picks, pair))), -1)
                    follows[place, index] = len(after)
                    after.append((*picks, pair))
        legal = reached[:, :, None] & open_pairs[:, None] & free[None]
        ends = legal & (joint >= 0)[None] & world.allowed[:, joint]
        phases.append(Phase(legal, ends, joint, follows))
        prefixes.append(tuple(after))
        reached = (legal & ~ends)[:, free]  # in the order in which `after` was filled
    phases[-1] = phases[-1]._replace(follows=np.zeros_like(phases[-1].follows))
    return tuple(prefixes[:-1]), phases


def _without_a_pick(world: TinyWorld, ahead: Float[np.ndarray, "S A"]) -> Float[np.ndarray, " S"]:
    """What a state is worth in which nothing can be picked."""
    return ahead[:, world.joint.index(())] if () in world.joint else np.zeros(len(ahead))
