"""Replay of S-MDP steps (paper §5, appendix): each observation is stored once, masks as bits.

Rows of one environment follow each other in a ring: the observation after row i is that of row
i + 1. Where an episode ends, what was seen last has a row of its own, which is no step and is never
sampled. A step in which nothing could be picked is none to learn from: its reward goes to the step
before it, discounted, as if that one had taken longer. A pass is a choice, and so a step like any.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt8

from selectmdp import draws
from selectmdp.iterative import taken
from selectmdp.types import Action, Observation, Transition

TRIES = 8
"""Draws of a row before settling for the step that precedes a row which is none."""


class Rows(NamedTuple):
    """One environment's ring of R rows."""

    items: Float[Array, "R N F"]
    context: Float[Array, "R U G"]
    masks: UInt8[Array, "R bytes"]
    action: Action
    reward: Float[Array, " R"]
    discount: Float[Array, " R"]
    step: Bool[Array, " R"]
    """False: what was seen when an episode ended."""
    head: Int[Array, ""]
    """Where the next row goes."""
    filled: Int[Array, ""]


def init(capacity: int, transition: Transition) -> Rows:
    """An empty ring for transitions like this one."""

    def rows(like: Array) -> Array:
        return jnp.zeros((capacity, *like.shape), like.dtype)

    observation = transition.observation
    return Rows(
        items=rows(observation.items),
        context=rows(observation.context),
        masks=rows(_packed(observation)),
        action=jax.tree.map(rows, transition.action),
        reward=jnp.zeros(capacity),
        discount=jnp.zeros(capacity),
        step=jnp.zeros(capacity, bool),
        head=jnp.zeros((), jnp.int32),
        filled=jnp.zeros((), jnp.int32),
    )


def add(rows: Rows, transition: Transition, allow_pass: bool = False) -> Rows:
    """The ring with one more step; the oldest rows make room."""
    idle = ~taken(transition.action.items, allow_pass).any()
    rows = _amended(rows, transition, idle)
    rows = _written(rows, transition.observation, transition, ~idle)
    ended = transition.truncated | (transition.discount == 0)
    return _written(rows, transition.next_observation, None, ended & _goes_on(rows))


def cut(rows: Rows, observation: Observation) -> Rows:
    """The ring after an episode that was broken off when this was seen."""
    return _written(rows, observation, None, _goes_on(rows))


def sample(
    key: Key[Array, ""], rings: Rows, ring: Int[Array, ""], pairs: tuple[int, int]
) -> Transition:
    """One stored step of one of several rings [E, …], all with equal probability.

    `pairs` is (N, C), the shape of the legal pairs.
    """
    capacity = rings.reward.shape[1]
    # Rows by age: the newest is followed by nothing yet, so it is not among them.
    # An oldest row that is no step has lost the step before it.
    oldest = (rings.head[ring] - rings.filled[ring]) % capacity
    older = rings.filled[ring] - 1 - ~rings.step[ring, oldest]
    ages = 1 + jnp.floor(draws.uniform(key, (TRIES,)) * older).astype(jnp.int32)
    places = (rings.head[ring] - 1 - ages) % capacity
    steps = rings.step[ring, places]
    place = places[jnp.argmax(steps)]  # the first that is a step
    place = jnp.where(steps.any(), place, (place - 1) % capacity)
    following = (place + 1) % capacity
    return Transition(
        observation=_seen(rings, ring, place, pairs),
        action=jax.tree.map(lambda leaf: leaf[ring, place], rings.action),
        reward=rings.reward[ring, place],
        discount=rings.discount[ring, place],
        truncated=~rings.step[ring, following],
        next_observation=_seen(rings, ring, following, pairs),
    )


def _goes_on(rows: Rows) -> Bool[Array, ""]:
    """Whether the newest row is a step: one of an episode that has not ended."""
    return (rows.filled > 0) & rows.step[(rows.head - 1) % rows.reward.shape[0]]


def _amended(rows: Rows, transition: Transition, idle: Bool[Array, ""]) -> Rows:
    """An idle step's reward and discount, onto the step before it in the same episode."""
    last = (rows.head - 1) % rows.reward.shape[0]
    applies = idle & _goes_on(rows)
    more = jnp.where(applies, rows.discount[last] * transition.reward, 0.0)
    factor = jnp.where(applies, transition.discount, 1.0)
    return rows._replace(
        reward=rows.reward.at[last].add(more), discount=rows.discount.at[last].multiply(factor)
    )


def _written(
    rows: Rows, observation: Observation, step: Transition | None, applies: Bool[Array, ""]
) -> Rows:
    """One row at the head, a step or none, if it applies; otherwise that row stays as it is."""

    def put(ring: Array, value: Array) -> Array:
        return ring.at[rows.head].set(jnp.where(applies, value, ring[rows.head]))

    if step is not None:
        rows = rows._replace(
            action=jax.tree.map(put, rows.action, step.action),
            reward=put(rows.reward, step.reward),
            discount=put(rows.discount, step.discount),
        )
    capacity = rows.reward.shape[0]
    return rows._replace(
        items=put(rows.items, observation.items),
        context=put(rows.context, observation.context),
        masks=put(rows.masks, _packed(observation)),
        step=put(rows.step, jnp.asarray(step is not None)),
        head=jnp.where(applies, (rows.head + 1) % capacity, rows.head),
        filled=jnp.where(applies, jnp.minimum(rows.filled + 1, capacity), rows.filled),
    )


def _packed(observation: Observation) -> UInt8[Array, " bytes"]:
    parts = observation.present, observation.context_present, observation.legal.ravel()
    return jnp.packbits(jnp.concatenate(parts))


def _seen(
    rings: Rows, ring: Int[Array, ""], place: Int[Array, ""], pairs: tuple[int, int]
) -> Observation:
    num_items, num_context = rings.items.shape[2], rings.context.shape[2]
    bits = jnp.unpackbits(rings.masks[ring, place]).astype(bool)
    legal = bits[num_items + num_context :][: pairs[0] * pairs[1]]
    return Observation(
        items=rings.items[ring, place],
        context=rings.context[ring, place],
        present=bits[:num_items],
        context_present=bits[num_items : num_items + num_context],
        legal=legal.reshape(pairs),
    )
