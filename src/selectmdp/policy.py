"""What a user keeps of a training: a policy that selects, for other N and other K than it learned.

`select` takes one state or a batch of them, as NumPy or JAX, and gives the same kind back;
`runs.load` reads a policy from a run's folder.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import iterative, sharing
from selectmdp.agent import Agent
from selectmdp.nets.base import Params
from selectmdp.observations import padded, understood
from selectmdp.references import Actor
from selectmdp.sharing import PhaseMap
from selectmdp.spec import SelectError, Spec, check_count, check_seed
from selectmdp.types import Action, Observation


class Picks(NamedTuple):
    """K picks of each state, in order; item −1 where nothing legal was left, or after a pass."""

    items: Any
    commands: Any
    extrapolates: bool
    """K is not that of the training: phases borrowed their parameters from the nearest."""
    q_values: Any = None
    """[K, N, C] on request: what each pick was taken from; −inf where it was not allowed.

    [K, N + 1, C] where a pass is allowed: the last row begins with what passing is worth.
    """


@dataclass(frozen=True, eq=False)
class Policy:
    """A trained agent. `evaluate(world, policy)` tries it on any world that it can serve."""

    agent: Agent
    params: Params
    phase_map: PhaseMap
    """Which parameter set serves which of the K phases of the training."""
    about: Mapping[str, Any]
    """Where it comes from: what the manifest of its checkpoint tells."""

    @property
    def spec(self) -> Spec:
        """The sizes it was trained with."""
        return self.agent.spec

    def select(
        self,
        observation: Any,
        num_select: int | None = None,
        *,
        q_values: bool = False,
        seed: int = 0,
    ) -> Picks:
        """Items and commands for one state, or for a batch with an axis in front of everything.

        `observation` is an `Observation`, a mapping with its names (`items` at least), or the items
        alone; `num_select` is K′ if not that of the training. Of fewer items than K all are picked
        that may be, and −1 stands for the rest. The seed matters only to `rsq`, which draws its
        items at random.
        """
        count = check_count(
            "num_select", self.spec.num_select if num_select is None else num_select
        )
        seen, batched, give = understood(observation, self.spec)
        num_items = seen.items.shape[1]
        seen = padded(seen, count)
        self._check(seen, count)
        key = jax.random.key(check_seed(seed))
        with heard(self._faults):
            picked = _select(self.agent, self.params, self._map(count), key, seen)
            action, values = jax.block_until_ready(picked)

        def given(leaf: Any) -> Any:
            return give(leaf) if batched else give(leaf)[0]

        own = _given_rows(num_items, seen, values.shape[2])
        return Picks(
            items=given(action.items),
            commands=given(action.commands),
            extrapolates=count != self.spec.num_select,
            q_values=given(values[:, :, own]) if q_values else None,
        )

    def q_values(self, observation: Any, picks: Sequence[tuple[int, int]] = ()) -> Any:
        """[N, C]: what each next pick is worth after some (item, command); −inf: not allowed.

        The earlier picks must be such as may be made one after the other.
        Where a pass is allowed there is one more row, which begins with what passing is worth.
        """
        seen, batched, give = understood(observation, self.spec)
        count = self.spec.num_select
        if batched:
            raise SelectError("q_values takes one state: give one row of the batch")
        made = _check_picks(picks, count, seen.legal.shape[1:])
        num_items = seen.items.shape[1]
        seen = padded(seen, count)
        self._check(seen, count)
        with heard(self._faults):
            told = _values(self.agent, self.params, self._map(count), seen, made, len(picks))
            values, legal = jax.block_until_ready(told)
        for number, (item, command) in enumerate(picks):
            if not legal[number]:
                raise SelectError(
                    f"picks={[*picks]}: ({item}, {command}) is not legal there, or absent: give "
                    "earlier picks that may be made one after the other"
                )
        return give(values[_given_rows(num_items, seen, len(values))])

    def actor(self, env: Any) -> Actor:
        """This policy in a world of other N, U and K perhaps; one it cannot serve is refused."""
        act, learned = self.agent.actor(env), (self.params, self._map(env.spec.num_select))
        return lambda key, state, observation: act(learned, key, state, observation)

    def telling_actor(self, env: Any) -> Callable[..., tuple[Action, Float[Array, "K rows C"]]]:
        """As `actor`, with the values that each pick was taken from; −inf: not allowed."""
        here, learned = self.agent.placed(env), (self.params, self._map(env.spec.num_select))
        return lambda key, state, observation: _told(here, *learned, key, observation)

    @property
    def _faults(self) -> list[Any]:
        """Where a world that is not in JAX keeps what its rule raised."""
        return getattr(self.agent.legal_after, "faults", [])

    def _map(self, num_select: int) -> Int[Array, " K"]:
        return sharing.as_array(sharing.stretched(self.phase_map, num_select))

    def _check(self, seen: Observation, count: int) -> None:
        num_items, features = seen.items.shape[1:]
        num_context, context_features = seen.context.shape[1:]
        commands = seen.legal.shape[-1]
        sizes = num_items, features, num_context, context_features, count, commands
        shown = Spec(*sizes, self.spec.allow_pass)
        self.agent.network.check(self.spec, shown)
        if self.spec.num_context > 0 and num_context == 0:
            raise SelectError(
                f"no context: the policy was trained with {self.spec.num_context} context things "
                "and needs to see them; give context=[U, G]"
            )


@contextmanager
def heard(faults: list[Any]) -> Iterator[None]:
    """While compiled code runs: what a function of the world raised in it is raised."""
    faults.clear()
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if faults:
            raise faults[0] from error
        raise


@partial(jax.jit, static_argnums=0)
def _select(
    agent: Agent,
    params: Params,
    phase_map: Int[Array, " K"],
    key: Key[Array, ""],
    observation: Observation,
) -> tuple[Action, Float[Array, "B K rows C"]]:
    tell = partial(_told, agent, params, phase_map)
    return jax.vmap(tell)(jax.random.split(key, observation.items.shape[0]), observation)


def _told(
    agent: Agent,
    params: Params,
    phase_map: Int[Array, " K"],
    key: Key[Array, ""],
    observation: Observation,
) -> tuple[Action, Float[Array, "K rows C"]]:
    """The picks in one state, and the values that each was taken from."""
    action, values, *_ = agent.act(key, params, phase_map, observation)
    before = jax.tree.map(lambda leaf: leaf[:-1], iterative.selections(action))
    allowed = jax.vmap(lambda selection: agent.open_pairs(observation, selection))(before)
    return action, jnp.where(allowed, values, -jnp.inf)


@partial(jax.jit, static_argnums=0)
def _values(
    agent: Agent,
    params: Params,
    phase_map: Int[Array, " K"],
    observation: Observation,
    picks: Action,
    phase: Int[Array, ""],
) -> tuple[Float[Array, "rows C"], Bool[Array, " K"]]:
    """The values after these picks, and which of them were legal when they were made."""
    seen = jax.tree.map(lambda leaf: leaf[0], observation)
    own = sharing.of_phase(params, phase_map, phase)
    allowed = agent.open_pairs(seen, iterative.Selection(picks, phase))
    before = jax.tree.map(lambda leaf: leaf[:-1], iterative.selections(picks))
    masks = jax.vmap(lambda made: iterative.legal(seen, made, agent.legal_after))(before)
    legal = masks[jnp.arange(picks.items.shape[0]), picks.items, picks.commands]
    return jnp.where(allowed, agent.network.values(own, seen, picks), -jnp.inf), legal


def _given_rows(num_items: int, padded: Observation, rows: int) -> Int[np.ndarray, " own"]:
    """Those of the items that were given, and the pass."""
    return np.array([*range(num_items), *range(padded.items.shape[1], rows)])


def _check_picks(
    picks: Sequence[tuple[int, int]], num_select: int, pairs: tuple[int, ...]
) -> Action:
    try:
        made = [(operator.index(item), operator.index(command)) for item, command in picks]
    except (TypeError, ValueError):
        raise SelectError(f"picks={picks!r}: give pairs of an item and a command") from None
    if len(made) >= num_select:
        raise SelectError(f"picks={made}: of K={num_select} all are made; there is no next pick")
    if len({item for item, _ in made}) < len(made):
        raise SelectError(f"picks={made}: an item can be picked once")
    for item, command in made:
        if not (0 <= item < pairs[0] and 0 <= command < pairs[1]):
            raise SelectError(
                f"picks={made}: ({item}, {command}) is none of the pairs of {pairs[0]} items and "
                f"{pairs[1]} commands"
            )
    rows = np.asarray(made + [(-1, 0)] * (num_select - len(made)), np.int32)
    return Action(jnp.asarray(rows[:, 0]), jnp.asarray(rows[:, 1]))
