"""Targets of the IS-MDP (paper eq. 2), for one example: discount 1 between phases, γ after.

A target looks at the value of what follows a pick: the same observation with one more pick, or,
after the step's last pick, the next observation with none. How one number is made of the values of
the pairs that follow is a `Rule`. Where a pass is allowed it is one more row of them.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from selectmdp.iterative import is_last

Value = Callable[
    [Float[Array, "rows C"], Bool[Array, "rows C"], Int[Array, ""]],
    Float[Array, ""],
]


class Rule(NamedTuple):
    """How a pick learns from what follows it."""

    value: Value
    """(values, which are legal, the item picked) → the worth of what follows."""
    looks_ahead: bool = True
    """False: the last pick learns the reward alone (myopic)."""
    chains: bool = True
    """False: every pick learns from the step's reward and the next step, not from the next pick."""


class Following(NamedTuple):
    """Values and legal pairs after each pick: in slot K − 1 those of the next observation."""

    values: Float[Array, "K rows C"]
    legal: Bool[Array, "K rows C"]


def targets(
    rule: Rule,
    items: Int[Array, " K"],
    reward: Float[Array, ""],
    discount: Float[Array, ""],
    following: Following,
    allow_pass: bool = False,
) -> Float[Array, " K"]:
    """What each of the K picks of a step is to learn; `discount` carries γ.

    NaN where it is not known: nothing can be picked in what follows, and no step of it was seen.
    """
    num_select = items.shape[0]
    ends = is_last(items, allow_pass) if rule.chains else jnp.ones(num_select, bool)
    next_step = jnp.where(ends, num_select - 1, jnp.arange(num_select))
    values = jax.vmap(rule.value)(following.values[next_step], following.legal[next_step], items)
    ahead = discount * values if rule.looks_ahead else jnp.zeros(num_select)
    target = jnp.where(ends, reward + ahead, values)
    if rule.looks_ahead and rule.chains:
        known = following.legal[-1].any() | (discount == 0.0)
        target = jnp.where(ends & ~known, jnp.nan, target)
    return jax.lax.stop_gradient(target)


def one_step(
    rule: Rule,
    items: Int[Array, " K"],
    reward: Float[Array, ""],
    discount: Float[Array, ""],
    values: Float[Array, "rows C"],
    legal: Bool[Array, "rows C"],
) -> Float[Array, " K"]:
    """What `targets` gives where nothing chains: the next observation's values alone are needed."""
    ahead = jax.vmap(rule.value, in_axes=(None, None, 0))(values, legal, items)
    return jax.lax.stop_gradient(reward + discount * ahead)


def best(
    values: Float[Array, "rows C"], legal: Bool[Array, "rows C"], item: Int[Array, ""]
) -> Float[Array, ""]:
    """The largest value of a legal pair; 0 where nothing is legal."""
    del item
    return jnp.where(legal.any(), jnp.max(jnp.where(legal, values, -jnp.inf)), 0.0)


def best_of_a_random_item(
    values: Float[Array, "rows C"], legal: Bool[Array, "rows C"], item: Int[Array, ""]
) -> Float[Array, ""]:
    """The mean over items, each with its best legal command (RSQ)."""
    del item
    possible = legal.any(axis=1)
    each = jnp.where(possible, jnp.max(jnp.where(legal, values, -jnp.inf), axis=1), 0.0)
    return each.sum() / jnp.maximum(possible.sum(), 1)


def best_of_the_same_item(
    values: Float[Array, "rows C"], legal: Bool[Array, "rows C"], item: Int[Array, ""]
) -> Float[Array, ""]:
    """The best legal command of the item that was picked (IDQN); 0 if it has none any more."""
    return best(values[item], legal[item], item)
