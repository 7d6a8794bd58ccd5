"""Policies to compare with: `random`, and `greedy` where a world offers a heuristic.

A policy here is a function of (key, state, observation) to an action, for one example.
"""

from collections.abc import Callable
from typing import Any

from jaxtyping import Array, Key

from selectmdp.iterative import random_action
from selectmdp.spec import SelectError
from selectmdp.types import Action, Observation

Actor = Callable[[Key[Array, ""], Any, Observation], Action]
NAMES = ("random", "greedy")


def reference(name: str, env: Any) -> Actor:
    """The reference policy of this name for this world."""
    if name == "random":
        return lambda key, state, observation: random_action(key, env, observation)
    if name == "greedy":
        if not hasattr(env, "greedy"):
            raise SelectError(f"{type(env).__name__} offers no greedy(key, state): take 'random'")
        return lambda key, state, observation: env.greedy(key, state)
    raise SelectError(f"policy {name!r} is none of {', '.join(NAMES)}")
