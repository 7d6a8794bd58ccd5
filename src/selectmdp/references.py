"""Policies to compare with: `random`, and `greedy` where a world offers a heuristic.

A policy here is a function of (key, state, observation) to an action, for one example.
"""

from collections.abc import Callable
from typing import Any

from jaxtyping import Array, Key

from selectmdp.envs.base import offers
from selectmdp.iterative import random_action
from selectmdp.spec import SelectError
from selectmdp.types import Action, Observation

Actor = Callable[[Key[Array, ""], Any, Observation], Action]


def reference(name: str, env: Any) -> Actor:
    """The reference policy of this name for this world."""
    if name not in REFERENCES:
        raise SelectError(f"policy {name!r} is none of {', '.join(REFERENCES)}")
    return REFERENCES[name](env)


def _random(env: Any) -> Actor:
    return lambda key, state, observation: random_action(key, env, observation)


def _greedy(env: Any) -> Actor:
    greedy = offers(env, "greedy")
    if greedy is None:
        raise SelectError(f"{type(env).__name__} offers no greedy(key, state): take 'random'")
    return lambda key, state, observation: greedy(key, state)


REFERENCES: dict[str, Callable[[Any], Actor]] = {"random": _random, "greedy": _greedy}
