"""What acts and what is learned about, for one state: an algorithm's network on a world's picks.

Learners, policies and evaluation all go through it, so that a pick is made in one way only.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from selectmdp import algorithms, draws, iterative, sharing, td
from selectmdp.envs.base import offers
from selectmdp.iterative import LegalAfter, Selection
from selectmdp.nets.base import (
    IncrementalNetwork,
    Network,
    Params,
    StackedNetwork,
    StepNetwork,
)
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation, Transition

ROWS_TOGETHER = 200
"""Items × parameter sets from which steps go one by one: their numbers stay in cache."""
UNROLLED = 16
"""Up to so many phases are compiled one by one where sets differ: each with the picks it has."""


class Acted(NamedTuple):
    """K picks, and what they were taken from; a pass, where allowed, is one more row of values."""

    action: Action
    values: Float[Array, "K rows C"]
    worth: Float[Array, " K"]
    """What each phase promised before its pick, by the algorithm's rule; IDQN's has no such."""
    greedy: Bool[Array, " K"]
    """False: the pick explored."""


@dataclass(frozen=True)
class Agent:
    """An algorithm on a world: sizes, network, rules; parameters are passed in."""

    name: str
    spec: Spec
    network: Network
    legal_after: LegalAfter | None = None
    commands: tuple[bool, ...] | None = None
    """Which of the C commands are ever given; None: all."""

    @property
    def algorithm(self) -> algorithms.Algorithm:
        return algorithms.ALGORITHMS[self.name]

    def init(self, key: Key[Array, ""]) -> Params:
        """Stacked parameter sets; progressive sharing starts with K equal ones."""
        kind, num_select = self.algorithm.sharing, self.spec.num_select
        rows = sharing.num_sets(kind, num_select)
        keys = jax.random.split(key, rows)
        params = jax.vmap(lambda key: self.network.init(key, self.spec))(keys)
        if kind == "progressive":
            params = sharing.split(params, sharing.first_map(kind, num_select))
        return params

    def open_pairs(self, observation: Observation, selection: Selection) -> Bool[Array, "rows C"]:
        """Which pairs this agent may choose next, and whether to pass where that is allowed."""
        mask = iterative.legal(observation, selection, self.legal_after)
        if self.commands is not None:
            mask = mask & jnp.asarray(self.commands)[None]
        return iterative.with_pass(mask, selection) if self.spec.allow_pass else mask

    def chose(self, action: Action) -> Bool[Array, "B K"]:
        """Which phases of a batch of steps chose something that can be learned from."""
        return jax.vmap(partial(iterative.taken, allow_pass=self.spec.allow_pass))(action.items)

    def act(
        self,
        key: Key[Array, ""],
        params: Params,
        phase_map: Int[Array, " K"],
        observation: Observation,
        epsilon: Float[Array, ""] | None = None,
    ) -> Acted:
        """K picks, each ε-greedy with ε drawn anew; without ε none explores."""
        any_picks = self.network if isinstance(self.network, IncrementalNetwork) else None
        single, by_picks = _first(params), None if _many(params) else any_picks

        def phase(
            carry: tuple[Selection, Any], numbers: Float[Array, " 3"], made: int | None = None
        ) -> tuple[Any, Acted]:
            selection, begun = carry
            mask = self.open_pairs(observation, selection)
            if by_picks is not None:
                values = by_picks.read(single, begun, observation)
            else:
                own = sharing.of_phase(params, phase_map, selection.phase)
                picks = jax.tree.map(lambda leaf: leaf[:made], selection.picks)
                values = self.network.values(own, observation, picks)
            worth = self.algorithm.rule.value(values, mask, jnp.zeros((), jnp.int32))
            if self.algorithm.random_item:
                drawn, _ = iterative.random_pair(numbers[0], mask.any(axis=1, keepdims=True))
                mask = mask & (jnp.arange(mask.shape[0]) == drawn)[:, None]
            pick, explores = iterative.best_pair(values, mask), jnp.zeros((), bool)
            if epsilon is not None:
                explores = numbers[1] < epsilon
                other = iterative.random_pair(numbers[2], mask)
                pick = jax.tree.map(partial(jnp.where, explores), other, pick)
            made_pick = iterative.as_pick(*pick, mask, observation.present.shape[0])
            if by_picks is not None:
                begun = by_picks.extend(single, begun, observation, *made_pick)
            acted = Acted(made_pick, values, worth, ~explores)
            return (iterative.choose(selection, *made_pick), begun), acted

        num_select = phase_map.shape[0]
        numbers = draws.uniform(key, (num_select, 3))
        begun = None if by_picks is None else by_picks.begin(single, observation)
        carry = iterative.empty(num_select), begun
        if any_picks is not by_picks and num_select <= UNROLLED:  # many sets
            each = []
            for made in range(num_select):
                carry, acted = phase(carry, numbers[made], made)
                each.append(acted)
            return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        return jax.lax.scan(phase, carry, numbers)[1]

    def placed(self, env: Any) -> "Agent":
        """The same in a world of other sizes perhaps; one that it cannot serve is refused."""
        self.network.check(self.spec, env.spec)
        given = _given_commands(self.algorithm, env)
        return replace(self, legal_after=offers(env, "legal_after"), commands=given)

    def actor(self, env: Any) -> Callable[..., Action]:
        """((parameters, phase map), key, state, observation) → the greedy picks in a world."""
        here = self.placed(env)

        def act(
            learned: tuple[Params, Int[Array, " K"]],
            key: Key[Array, ""],
            state: Any,
            observation: Observation,
        ) -> Action:
            del state
            return here.act(key, *learned, observation).action

        return act

    def picked_values(
        self,
        params: Params,
        phase_map: Int[Array, " K"],
        observation: Observation,
        action: Action,
    ) -> Float[Array, "K B"]:
        """The value of each pick that was made, in a batch [B] of steps: all phases at once."""
        picks, pick = _before(action).picks, jax.tree.map(lambda leaf: leaf.T, action)
        own = self._of_phases(params, phase_map)
        if isinstance(self.network, StackedNetwork):
            num_select = action.items.shape[1]
            seen = jax.tree.map(lambda leaf: jnp.stack([leaf] * num_select), observation)
            return self.network.stacked_value(own, seen, picks, pick)
        # Phases inside states: what a network makes of the observation alone is made once.
        sets, one = (0, own) if _many(own) else (None, _first(own))
        if isinstance(self.network, StepNetwork):
            shared = self._shared(self.network, own, observation)
            of_phase = jax.vmap(self.network.value_by, in_axes=(sets, sets, None, 0, 0, 0))
            of_state = jax.vmap(of_phase, in_axes=(None, 0, 0, 1, 1, 1), out_axes=1)
            return of_state(one, shared, observation, picks, *pick)
        phases = jax.vmap(self.network.value, in_axes=(sets, None, 0, 0, 0))
        states = jax.vmap(phases, in_axes=(None, 0, 1, 1, 1), out_axes=1)
        return states(one, observation, picks, *pick)

    def following(
        self, params: Params, phase_map: Int[Array, " K"], transition: Transition
    ) -> td.Following:
        """Values and legal pairs after each pick of a batch [B] of steps: [B, K, rows, C].

        Slot k < K − 1 is the same observation after k + 1 picks, slot K − 1 the next after none.
        """
        num_select = transition.action.items.shape[1]
        # Phase 0 of the next observation, phases 1 … K − 1 of this one: each has its own set.
        seen = jax.tree.map(
            lambda now, then: jnp.stack([then] + [now] * (num_select - 1)),
            transition.observation,
            transition.next_observation,
        )
        selections = _before(transition.action)
        legal = jax.vmap(jax.vmap(self.open_pairs))(seen, selections)
        own = self._of_phases(params, phase_map)
        if isinstance(self.network, StackedNetwork):
            values = self.network.stacked_values(own, seen, selections.picks)
        else:
            values = _over_phases(self.network.values, own, seen, selections.picks)
        return td.Following(_as_slots(values), _as_slots(legal))

    def first_worth(
        self, params: Params, phase_map: Int[Array, " K"], observation: Observation
    ) -> Float[Array, ""]:
        """What an observation promises before its first pick; NaN where there can be none."""
        values, legal = self.first_values(params, phase_map, observation)
        worth = self.algorithm.rule.value(values, legal, jnp.zeros((), jnp.int32))
        return jnp.where(legal.any(), worth, jnp.nan)

    def first_values(
        self, params: Params, phase_map: Int[Array, " K"], observation: Observation
    ) -> tuple[Float[Array, "rows C"], Bool[Array, "rows C"]]:
        """Values and legal pairs of an observation before its first pick."""
        selection = iterative.empty(phase_map.shape[0])
        own = sharing.of_phase(params, phase_map, selection.phase)
        if isinstance(self.network, IncrementalNetwork):
            values = self.network.read(own, self.network.begin(own, observation), observation)
        else:
            values = self.network.values(own, observation, selection.picks)
        return values, self.open_pairs(observation, selection)

    def states_at_once(self) -> int | None:
        """How many steps of a batch are best learned from together; None: all."""
        if isinstance(self.network, StackedNetwork):
            return self.network.states_at_once(self.spec.num_items, self.spec.num_select)
        return None

    def _shared(self, network: StepNetwork, own: Params, observation: Observation) -> Array:
        """What the picks of each step of a batch share: by every set, or by a single one."""
        one = partial(network.shared, own)
        sets, rows = jax.tree.leaves(own)[0].shape[0], observation.present.shape[1]
        shared = jax.vmap(one) if sets * rows < ROWS_TOGETHER else partial(jax.lax.map, one)
        made = shared(observation)
        return made if _many(own) else made[:, 0]

    def _of_phases(self, params: Params, phase_map: Int[Array, " K"]) -> Params:
        """A set for each phase, or one for all; those of independent sharing stand in order."""
        rows = jax.tree.leaves(params)[0].shape[0]
        if self.algorithm.sharing == "independent" and rows == phase_map.shape[0]:
            return params
        return sharing.of_phases(params, phase_map)


def make(
    name: str,
    env: Any,
    *,
    shape: algorithms.Shape = algorithms.Shape(),  # noqa: B008 - it does not change
) -> Agent:
    """The agent of an algorithm on a world."""
    row = algorithms.algorithm(name)
    network = algorithms.network(name, env, shape)
    commands = _given_commands(row, env)
    return Agent(name, env.spec, network, offers(env, "legal_after"), commands)


def _given_commands(row: algorithms.Algorithm, env: Any) -> tuple[bool, ...] | None:
    """Which of a world's commands an algorithm ever gives, by their names; None: all."""
    if row.commands is None:
        return None
    return tuple(command in row.commands for command in algorithms.command_names(row, env))


def _before(action: Action) -> Selection:
    """The selections before each phase of a batch of steps: [K, B, …]."""
    stacked = jax.vmap(iterative.selections, out_axes=1)(action)
    return jax.tree.map(lambda leaf: leaf[:-1], stacked)


def _over_phases(function: Any, params: Params, *batched: Any) -> Any:
    """`function` of each phase's own set, over arguments [K, B, …]."""
    over_batch = jax.vmap(function, in_axes=(None, *[0] * len(batched)))
    if _many(params):
        return jax.vmap(over_batch)(params, *batched)
    # One set: the phases are a longer batch.
    return jax.vmap(over_batch, in_axes=(None, *[0] * len(batched)))(_first(params), *batched)


def _many(params: Params) -> bool:
    """Whether there is more than one parameter set."""
    return bool(jax.tree.leaves(params)[0].shape[0] > 1)


def _first(params: Params) -> Params:
    return jax.tree.map(lambda leaf: leaf[0], params)


def _as_slots(phases: Shaped[Array, "K B rows C"]) -> Shaped[Array, "B K rows C"]:
    """What follows pick k is phase k + 1, and phase 0 follows the last."""
    return jnp.moveaxis(jnp.roll(phases, -1, axis=0), 0, 1)
