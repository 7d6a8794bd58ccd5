"""Dense networks on the flattened state (paper §5.2): vanilla DQN, and sorting DQN on sorted items.

They do not ignore the order of items, so N, U and K are fixed, and there are O(N²) parameters for
each phase. A chosen item is zero among the items and stands, with its command, among the picks.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from selectmdp.iterative import picked
from selectmdp.nets.base import Params, leaky, over_pass, weight
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation

SortKey = Callable[[Observation], Float[Array, " N"]]


@dataclass(frozen=True)
class Dense:
    """Hidden layers on all numbers of a state, and N · C outputs; the pass is one more."""

    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers; none given: two of 6 × the flattened input, as published."""
    order: Callable[[Observation], Int[Array, " N"]] | None = None
    """How the items are put before they are flattened: sorting DQN gives one."""

    def init(self, key: Key[Array, ""], spec: Spec) -> Params:
        """Fresh parameters: a list of affine layers."""
        inputs = (
            spec.num_items * spec.item_features
            + spec.num_select * (spec.item_features + spec.num_commands)
            + spec.num_context * spec.context_features
        )
        hidden = self.hidden or (6 * inputs, 6 * inputs)
        sizes = (inputs, *hidden, spec.num_items * spec.num_commands + spec.allow_pass)
        keys = jax.random.split(key, len(sizes) - 1)
        return [
            {"weight": weight(layer_key, rows, columns, rows), "bias": jnp.zeros(columns)}
            for layer_key, rows, columns in zip(keys, sizes[:-1], sizes[1:], strict=True)
        ]

    def check(self, trained: Spec, shown: Spec) -> None:
        """All sizes must be as in training."""
        if trained != shown:
            raise SelectError(
                f"{shown}: a dense network serves only the sizes it was trained for, {trained}; "
                "train an isq algorithm to change N or K"
            )

    def values(
        self, params: Params, observation: Observation, picks: Action
    ) -> Float[Array, "rows C"]:
        """All pairs at once, in the items' own order."""
        num_items, num_commands = observation.legal.shape
        order = jnp.arange(num_items) if self.order is None else self.order(observation)
        left = observation.present & ~picked(picks, num_items)
        items = jnp.where(left[:, None], observation.items, 0.0)[order]
        commands = jax.nn.one_hot(picks.commands, num_commands)
        rows = jnp.concatenate([observation.items[picks.items], commands], axis=1)
        rows = jnp.where((picks.items >= 0)[:, None], rows, 0.0)
        context = jnp.where(observation.context_present[:, None], observation.context, 0.0)
        x = jnp.concatenate([items.ravel(), rows.ravel(), context.ravel()])
        for layer in params[:-1]:
            x = leaky(x @ layer["weight"] + layer["bias"])
        x = x @ params[-1]["weight"] + params[-1]["bias"]
        place = jnp.argsort(order)  # where each item went
        pairs, passing = jnp.split(x, [num_items * num_commands])
        values = pairs.reshape(num_items, num_commands)[place]
        return over_pass(values, passing) if passing.size else values

    def value(
        self,
        params: Params,
        observation: Observation,
        picks: Action,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Float[Array, ""]:
        """One of all pairs."""
        return self.values(params, observation, picks)[item, command]


def largest_first(key: SortKey) -> Callable[[Observation], Int[Array, " N"]]:
    """Items by a number of their own, the largest first; what is absent comes last."""

    def order(observation: Observation) -> Int[Array, " N"]:
        return jnp.argsort(jnp.where(observation.present, -key(observation), jnp.inf))

    return order


def by_features(observation: Observation) -> Int[Array, " N"]:
    """Items by their features in order, the largest first; what is absent comes last."""
    columns = [-column for column in observation.items.T[::-1]]
    return jnp.lexsort([*columns, ~observation.present])
