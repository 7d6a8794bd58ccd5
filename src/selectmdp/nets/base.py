"""What a Q-network of the IS-MDP is (paper §3): for one state and one phase, pure, on one parameter set.

Callers batch with `jax.vmap` over states and over phases. Parameters are plain dicts of arrays; the
sets of several phases are stacked on a leading axis (`sharing`).
"""

import math
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from selectmdp.spec import Spec
from selectmdp.types import Action, Observation

Params = Any

SLOPE = 0.1
"""Of the leaky ReLU (open question of the paper, settled by its published code)."""


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
    ) -> Float[Array, "N C"]:
        """The value of every pair, of illegal ones too."""
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


def leaky(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Leaky ReLU as a maximum: one pass, and its slope at 0 is the small one."""
    return jnp.maximum(x, SLOPE * x)


def weight(key: Key[Array, ""], rows: int, columns: int, fan_in: int) -> Float[Array, "in out"]:
    """Uniform with variance 1 / fan_in, the numbers that flow into one output."""
    bound = math.sqrt(3.0 / max(fan_in, 1))
    return jax.random.uniform(key, (rows, columns), jnp.float32, -bound, bound)


def count(params: Params) -> int:
    """How many numbers there are to learn."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))
