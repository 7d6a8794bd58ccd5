"""Heuristics to compare a policy with, pick after pick: strong, and honest about what they see."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from selectmdp.envs.circle_rules import overlaps
from selectmdp.iterative import best_pair
from selectmdp.types import Action


class _Picked(NamedTuple):
    """Circles left, the picks so far and what each should earn."""

    free: Bool[Array, " N"]
    picks: Float[Array, "K 3"]
    earns: Float[Array, " K"]


def greedy_discs(
    discs: Float[Array, "N C 3"],
    context: Float[Array, "U 3"],
    num_select: int,
    present: Bool[Array, " N"] | None = None,
) -> Action:
    """The circle and command that should add most to the step's reward, K times.

    `discs` are the circles as they should be after each command. A clash takes from the picks made
    before what they would have earned; so the largest circle that overlaps nothing is picked, and
    where there is none the one that costs least. Unless told which are, all are present.
    """
    num_items = discs.shape[0]
    area = jnp.pi * jnp.square(discs[..., 2])
    bad = overlaps(discs, context).any(axis=2)

    def phase(carry: _Picked, index: Int[Array, ""]) -> tuple[_Picked, Action]:
        touched = overlaps(discs, carry.picks)  # [N, C, K]; picks to come are nowhere
        gain = jnp.where(bad, -area, jnp.where(touched.any(axis=2), 0.0, area))
        gain -= jnp.where(touched, carry.earns[None, None], 0.0).sum(axis=2)
        item, command = best_pair(gain, carry.free[:, None])
        alone = ~bad[item, command] & ~touched[item, command].any()
        here = jnp.arange(num_select) == index
        earns = jnp.where(touched[item, command], 0.0, carry.earns)
        following = _Picked(
            free=carry.free & (jnp.arange(num_items) != item),
            picks=jnp.where(here[:, None], discs[item, command][None], carry.picks),
            earns=jnp.where(here, jnp.where(alone, area[item, command], 0.0), earns),
        )
        return following, Action(item.astype(jnp.int32), command.astype(jnp.int32))

    nowhere = jnp.tile(jnp.asarray([[1e3, 1e3, 0.0]]), (num_select, 1))
    free = jnp.ones(num_items, bool) if present is None else present
    start = _Picked(free, nowhere, jnp.zeros(num_select))
    _, action = jax.lax.scan(phase, start, jnp.arange(num_select))
    return action


def greedy_hunt(
    ends: Int[Array, "N C 2"],
    preys: Int[Array, "U 2"],
    captors: int,
    num_select: int,
    present: Bool[Array, " N"],
) -> Action:
    """The predator that can stand beside a prey soonest, K times, in groups of `captors`.

    `ends` are the cells that each command leads to. A begun group is filled before another begins,
    and a full one gains nothing.
    """
    if preys.shape[0] == 0:  # nothing to hunt: somewhere there is one
        preys = jnp.zeros((1, 2), jnp.int32)
    gap = jnp.abs(ends[:, :, None] - preys[None, None])  # [N, C, U, 2]
    ring = jnp.maximum(gap.max(axis=3) - 1, 0)  # 0: beside the prey
    cost = ring + 0.01 * gap.sum(axis=3)

    def phase(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Action]:
        free, group = carry
        begun = (group > 0) & (group < captors)
        rank = jnp.where(begun, 0.0, jnp.where(group == 0, 100.0, 1000.0))
        value = cost + rank[None, None]
        value = jnp.where(free[:, None, None], value, jnp.inf)
        item, command, prey = jnp.unravel_index(jnp.argmin(value), value.shape)
        picked = Action(item.astype(jnp.int32), command.astype(jnp.int32))
        return (free.at[item].set(False), group.at[prey].add(1)), picked

    start = (present, jnp.zeros(preys.shape[0], jnp.int32))
    _, action = jax.lax.scan(phase, start, None, length=num_select)
    return action
