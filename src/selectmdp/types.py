"""What everything here speaks: observation, action and transition of a Select-MDP (paper §2.1).

Shapes are those of one example; a batch has further axes in front, put there by `jax.vmap`.
"""

from __future__ import annotations  # a worker with an environment does not wait for JAX

from typing import TYPE_CHECKING, NamedTuple

from selectmdp.spec import Spec

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int


class Observation(NamedTuple):
    """What is seen before a step; means are over what is present, the rest is padding."""

    items: Float[Array, "N F"]
    context: Float[Array, "U G"]
    present: Bool[Array, " N"]
    context_present: Bool[Array, " U"]
    legal: Bool[Array, "N C"]
    """Which (item, command) pairs may be chosen; an item may be present and not legal."""


class Action(NamedTuple):
    """The picks of a step in the order chosen; item −1 where they ended before the K-th.

    They end where nothing legal is left, or with a pass where `Spec.allow_pass` allows one.
    """

    items: Int[Array, " K"]
    commands: Int[Array, " K"]


class Transition(NamedTuple):
    """One S-MDP step; `iterative.expand` makes its K phases of it when learning."""

    observation: Observation
    action: Action
    reward: Float[Array, ""]
    discount: Float[Array, ""]
    """0 at a true terminal, γ otherwise."""
    truncated: Bool[Array, ""]
    """A time limit ended the episode here: not a terminal, returns stop and bootstrap."""
    next_observation: Observation
    """Before the reset, where the episode ended."""


def expected_shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """The shape of each part of an observation."""
    return {
        "items": (spec.num_items, spec.item_features),
        "context": (spec.num_context, spec.context_features),
        "present": (spec.num_items,),
        "context_present": (spec.num_context,),
        "legal": (spec.num_items, spec.num_commands),
    }
