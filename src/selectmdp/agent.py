"""What acts and what is learned about, for one state: an algorithm's network on a world's picks.

Learners, policies and evaluation all go through it, so that a pick is made in one way only.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import algorithms, draws, iterative, sharing, td
from selectmdp.envs.base import offers
from selectmdp.iterative import LegalAfter, Selection
from selectmdp.nets.base import Network, Params
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation, Transition


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

    def open_pairs(self, observation: Observation, selection: Selection) -> Bool[Array, "N C"]:
        """Which pairs this agent may choose next."""
        mask = iterative.legal(observation, selection, self.legal_after)
        return mask if self.commands is None else mask & jnp.asarray(self.commands)[None]

    def act(
        self,
        key: Key[Array, ""],
        params: Params,
        phase_map: Int[Array, " K"],
        observation: Observation,
        epsilon: Float[Array, ""] | float = 0.0,
    ) -> tuple[Action, Float[Array, "K N C"]]:
        """K picks, each ε-greedy with ε drawn anew, and the values they were taken from."""

        def phase(selection: Selection, numbers: Float[Array, " 3"]) -> tuple[Selection, Any]:
            mask = self.open_pairs(observation, selection)
            possible = mask.any()
            if self.algorithm.random_item:
                drawn, _ = iterative.random_pair(numbers[0], mask.any(axis=1, keepdims=True))
                mask = mask & (jnp.arange(mask.shape[0]) == drawn)[:, None]
            own = sharing.of_phase(params, phase_map, selection.phase)
            values = self.network.values(own, observation, selection.picks)
            explores = numbers[1] < epsilon
            best = iterative.best_pair(values, mask)
            other = iterative.random_pair(numbers[2], mask)
            item, command = (jnp.where(explores, *pair) for pair in zip(other, best, strict=True))
            item = jnp.where(possible, item, -1).astype(jnp.int32)
            command = jnp.where(possible, command, 0).astype(jnp.int32)
            return iterative.choose(selection, item, command), (Action(item, command), values)

        num_select = phase_map.shape[0]
        numbers = draws.uniform(key, (num_select, 3))
        _, (action, values) = jax.lax.scan(phase, iterative.empty(num_select), numbers)
        return action, values

    def actor(self, env: Any) -> Callable[..., Action]:
        """((parameters, phase map), key, state, observation) → the greedy picks in a world.

        The world may have other sizes than the agent's; one that it cannot serve is refused.
        """
        self.network.check(self.spec, env.spec)
        here = replace(self, legal_after=offers(env, "legal_after"))

        def act(
            learned: tuple[Params, Int[Array, " K"]],
            key: Key[Array, ""],
            state: Any,
            observation: Observation,
        ) -> Action:
            del state
            return here.act(key, *learned, observation)[0]

        return act

    def picked_values(
        self,
        params: Params,
        phase_map: Int[Array, " K"],
        observation: Observation,
        action: Action,
    ) -> Float[Array, "K B"]:
        """The value of each pick that was made, in a batch [B] of steps: all phases at once."""
        before = jax.vmap(lambda a: _rows(iterative.selections(a), slice(0, -1)).picks)(action)

        def one(params: Params, observation: Observation, picks: Action, pick: Action) -> Array:
            return self.network.value(params, observation, picks, pick.items, pick.commands)

        return self._over_phases(one, params, phase_map, 1, observation, before, action)

    def following(
        self, params: Params, phase_map: Int[Array, " K"], transition: Transition
    ) -> td.Following:
        """Values and legal pairs after each pick of a batch [B] of steps: [B, K, N, C].

        Slot k < K − 1 is the same observation after k + 1 picks, slot K − 1 the next one after none.
        """
        num_select = transition.action.items.shape[1]

        def slots(transition: Transition) -> tuple[Observation, Selection]:
            after = _rows(iterative.selections(transition.action), slice(1, -1))
            nothing = iterative.empty(num_select)
            seen = jax.tree.map(
                lambda now, then: jnp.stack([now] * (num_select - 1) + [then]),
                transition.observation,
                transition.next_observation,
            )
            join = jax.tree.map(lambda rows, row: jnp.concatenate([rows, row[None]]), after, nothing)
            return seen, join

        seen, selections = jax.vmap(slots)(transition)
        legal = jax.vmap(jax.vmap(self.open_pairs))(seen, selections)
        next_phase = jnp.roll(phase_map, -1)
        values = self._over_phases(
            self.network.values, params, next_phase, 0, seen, selections.picks
        )
        return td.Following(jnp.moveaxis(values, 0, 1), legal)

    def _over_phases(
        self, function: Any, params: Params, phase_map: Array, fixed: int, *batched: Any
    ) -> Any:
        """`function` of each phase's own set, over arguments [B, K, …]: [K, B, …].

        The first `fixed` of the arguments are the same in all phases: [B, …].
        """
        over_batch = jax.vmap(function, in_axes=(None, *[0] * len(batched)))
        axes = [None] * fixed + [1] * (len(batched) - fixed)
        own = sharing.of_phases(params, phase_map)
        if jax.tree.leaves(own)[0].shape[0] == 1:  # one set: the phases are a longer batch
            single = jax.tree.map(lambda leaf: leaf[0], own)
            return jax.vmap(over_batch, in_axes=(None, *axes))(single, *batched)
        return jax.vmap(over_batch, in_axes=(0, *axes))(own, *batched)


def make(
    name: str,
    env: Any,
    *,
    channels: int = 48,
    layers: int = 2,
    hidden: tuple[int, ...] = (),
) -> Agent:
    """The agent of an algorithm on a world."""
    row = algorithms.algorithm(name)
    network = algorithms.network(name, env, channels=channels, layers=layers, hidden=hidden)
    commands = None
    if row.commands is not None:
        commands = tuple(command in row.commands for command in env.command_names)
    return Agent(name, env.spec, network, offers(env, "legal_after"), commands)


def _rows(tree: Any, rows: slice) -> Any:
    return jax.tree.map(lambda leaf: leaf[rows], tree)
