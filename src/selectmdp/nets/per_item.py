"""A network of its own for each item (IDQN as the paper's text says): N parameter sets, N fixed.

Where a pass is allowed it has a set of its own too, the last.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from selectmdp.nets.base import Network, Params
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation


@dataclass(frozen=True)
class PerItem:
    """Item i asks its own copy of a network, and takes row i of the answer."""

    network: Network

    def init(self, key: Key[Array, ""], spec: Spec) -> Params:
        """Fresh parameters: N sets, and one for the pass."""
        return jax.vmap(lambda key: self.network.init(key, spec))(
            jax.random.split(key, spec.num_items + spec.allow_pass)
        )

    def check(self, trained: Spec, shown: Spec) -> None:
        """The items must be those of the training."""
        if trained.num_items != shown.num_items:
            raise SelectError(
                f"num_items={shown.num_items}: each of the {trained.num_items} items of the "
                "training has parameters of its own, so N cannot change; take idqn"
            )
        self.network.check(trained, shown)

    def values(
        self, params: Params, observation: Observation, picks: Action
    ) -> Float[Array, "rows C"]:
        """Row i by the parameters of item i."""

        def row(own: Params, item: Int[Array, ""]) -> Float[Array, " C"]:
            return self.network.values(own, observation, picks)[item]

        return jax.vmap(row)(params, jnp.arange(jax.tree.leaves(params)[0].shape[0]))

    def value(
        self,
        params: Params,
        observation: Observation,
        picks: Action,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Float[Array, ""]:
        """By the parameters of that item alone."""
        own = jax.tree.map(lambda leaf: leaf[item], params)
        return self.network.value(own, observation, picks, item, command)
