"""A tiny deterministic world for tests: illegal pairs, absent items, a budget, an empty start."""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from selectmdp.iterative import command_of_item, picked
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation


class ShelfState(NamedTuple):
    on_shelf: Bool[Array, " N"]
    refills: Int[Array, ""]


@dataclass(frozen=True)
class Shelf:
    """Items 0 … N−1 of worth 1 … N. Command 0 takes one; command 1 sells at ten times the worth.

    Only one may be sold in a step (`legal_after`). What was picked has left the shelf (it is not
    present). A step that finds the shelf empty fills it again, for −1; after `max_refills` of them
    the episode terminates.
    """

    num_items: int = 4
    num_select: int = 3
    sell_only: int = 0
    """The first so many items cannot be taken, only sold."""
    starts_empty: bool = False
    max_refills: int = 2
    time_limit: int = 100
    spec: Spec = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "spec", Spec(self.num_items, 1, 0, 1, self.num_select, 2))

    def reset(self, key):
        full = jnp.full(self.num_items, not self.starts_empty)
        return ShelfState(full, jnp.zeros((), jnp.int32))

    def step(self, key, state, action: Action):
        gone = picked(action, self.num_items) & state.on_shelf
        sold = gone & (command_of_item(action, self.num_items) == 1)
        worth = jnp.arange(1, self.num_items + 1) * jnp.where(sold, 10, 1)
        empty = ~state.on_shelf.any()
        reward = jnp.where(empty, -1.0, jnp.where(gone, worth, 0).sum()).astype(jnp.float32)
        refills = state.refills + empty
        state = ShelfState((state.on_shelf & ~gone) | empty, refills)
        return state, reward, jnp.where(refills >= self.max_refills, 0.0, 1.0)

    def observe(self, state):
        takable = jnp.arange(self.num_items) >= self.sell_only
        return Observation(
            items=jnp.arange(1.0, self.num_items + 1)[:, None],
            context=jnp.zeros((0, 1)),
            present=state.on_shelf,
            context_present=jnp.ones(0, bool),
            legal=jnp.stack([takable, jnp.ones(self.num_items, bool)], axis=1),
        )

    def legal_after(self, observation, chosen, command):
        unsold = ~(chosen & (command == 1)).any()
        each = jnp.stack([jnp.ones((), bool), unsold])
        return jnp.broadcast_to(each, observation.legal.shape)
