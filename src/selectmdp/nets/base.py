"""What a Q-network of the IS-MDP is (paper §3): pure, for one state, phase and parameter set.

Callers batch with `jax.vmap` over states and over phases. Parameters are plain dicts of arrays; the
sets of several phases are stacked on a leading axis (`sharing`).

Where the spec allows a pass, parameters have a part for it and the values one more row, [N + 1, C],
whose first number is what the pass is worth; the others mean nothing. Item −1 is that row.
"""

import math
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from selectmdp import draws
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation

Params = Any

SLOPE = 0.1
"""Of the leaky ReLU (open question of the paper, settled by its published code)."""
SMALL = 1e-5
"""Keeps a row of equal numbers from being divided by 0."""


class Network(Protocol):
    """Q-values of the next pick, given the picks so far (item −1: not made)."""

    def init(self, key: Key[Array, ""], spec: Spec) -> Params:
        """Fresh parameters: one set."""
        ...

    def check(self, trained: Spec, shown: Spec) -> None:
        """Raise `SelectError` where parameters for `trained` cannot serve `shown`."""
        ...

    def values(
        self, params: Params, observation: Observation, picks: Action
    ) -> Float[Array, "rows C"]:
        """The value of every pair, of illegal ones too, and of the pass where it is allowed."""
        ...

    def value(
        self,
        params: Params,
        observation: Observation,
        picks: Action,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Float[Array, ""]:
        """The value of one pair: `values[item, command]`, cheaper where a network can."""
        ...


@runtime_checkable
class StackedNetwork(Network, Protocol):
    """One that evaluates the K phases of B states together, faster than `jax.vmap` would.

    Observations and picks are [K, B, …], and of phase k at most the first k picks are made.
    Parameters are one set for each phase, or a single one for all.
    """

    def states_at_once(self, num_items: int, num_select: int) -> int:
        """How many states, with all phases, to evaluate together."""
        ...

    def stacked_values(
        self, params: Params, observation: Observation, picks: Action
    ) -> Float[Array, "K B rows C"]:
        """`values` of each."""
        ...

    def stacked_value(
        self, params: Params, observation: Observation, picks: Action, pick: Action
    ) -> Float[Array, "K B"]:
        """`value` of one pick [K, B] each."""
        ...


@runtime_checkable
class IncrementalNetwork(Network, Protocol):
    """One whose values after a pick cost less than anew, where one parameter set serves all phases.

    `read` of a begun state extended by the picks is `values` of those picks.
    """

    def begin(self, params: Params, observation: Observation) -> Any:
        """A state with no picks."""
        ...

    def extend(
        self,
        params: Params,
        begun: Any,
        observation: Observation,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Any:
        """The state after one more pick; item −1 picks nothing."""
        ...

    def read(self, params: Params, begun: Any, observation: Observation) -> Float[Array, "rows C"]:
        """The value of every pair, and of the pass where it is allowed."""
        ...


@runtime_checkable
class StepNetwork(Network, Protocol):
    """One of whose `value` a part is the same for all picks of a step: learning makes it once.

    `value_by` of what is `shared` is `value`.
    """

    def shared(self, params: Params, observation: Observation) -> Array:
        """What does not depend on the picks, by each of R parameter sets."""
        ...

    def value_by(
        self,
        params: Params,
        shared: Array,
        observation: Observation,
        picks: Action,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Float[Array, ""]:
        """`value` by one set and its part of what is shared."""
        ...


def check_rows(trained: Spec, shown: Spec) -> None:
    """For networks that any N, U and K suit: what describes a row must be as in training."""
    names = ["item_features", "num_commands", "allow_pass"]
    names += ["context_features"] if trained.num_context else []
    for name in names:
        if getattr(trained, name) != getattr(shown, name):
            raise SelectError(
                f"{name}={getattr(shown, name)}: the policy was trained with "
                f"{getattr(trained, name)}; N, U and K may differ, this may not"
            )
    if shown.num_context > 0 and trained.num_context == 0:
        raise SelectError(
            f"num_context={shown.num_context}: the policy was trained without context and could "
            "not see it; leave it out, or train with some"
        )


def leaky(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Leaky ReLU; its slope at 0 is the small one."""
    return jnp.where(x > 0, x, SLOPE * x)


def apply(affine: Params, rows: Float[Array, "*stack F"]) -> Float[Array, "*stack H"]:
    """An affine layer."""
    product = rows @ affine["weight"]
    return product + affine["bias"].reshape((1,) * (product.ndim - 1) + (-1,))


def normalised(rows: Float[Array, "M H"]) -> Float[Array, "M H"]:
    """Each row with mean 0 and variance 1."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(axis=1, keepdims=True) + SMALL)


def over_pass(
    values: Float[Array, "*stack N C"], worth: Float[Array, "*stack 1"]
) -> Float[Array, "*stack N+1 C"]:
    """The values of pairs, and under them a row that begins with that of the pass."""
    row = jnp.zeros_like(values[..., :1, :]).at[..., 0].set(worth)
    return jnp.concatenate([values, row], axis=-2)


def pick_rows(observation: Observation, picks: Action) -> Float[Array, "K X"]:
    """What describes each pick: its item's features and its command; of item −1 anything."""
    commands = jax.nn.one_hot(picks.commands, observation.legal.shape[1])
    return jnp.concatenate([observation.items[picks.items], commands], axis=1)


def weight(key: Key[Array, ""], rows: int, columns: int, fan_in: int) -> Float[Array, "in out"]:
    """Uniform with variance 1 / fan_in, the numbers that flow into one output."""
    bound = math.sqrt(3.0 / max(fan_in, 1))
    return bound * (2.0 * draws.uniform(key, (rows, columns)) - 1.0)


def count(params: Params) -> int:
    """How many numbers there are to learn."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))
