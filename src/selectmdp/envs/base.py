"""The protocol of a Select-MDP in JAX: pure functions over a state, so that vmap and scan apply.

What only some environments know they may offer beside it; `offers` asks. Everything works without:

- `time_limit: int`: steps of an episode; its end is a truncation, never a terminal;
- `command_names: tuple[str, ...]`: what the C commands are called;
- `unit: str`, `dynamics: str`: what a reward counts, and under which rules it was earned;
- `partial_reward(key, state, action) -> [K]`: the reward had only the first 1 … K picks been made,
  under the same random draws as `step` with the same key;
- `legal_after(observation, chosen, command) -> [N, C]`: which pairs stay legal after some picks,
  whatever their order;
- `learning_reward(reward) -> reward`: the scale in which learners learn it; reports are unscaled;
- `sort_key(observation) -> [N]`: by what sorting DQN sorts, the largest first;
- `draw(state, action | None) -> Scene`: a picture of a state, with the picks about to be made;
- `permute(state, order) -> state`: the same world with its items in another order;
- `greedy(key, state) -> Action`: a heuristic to compare a policy with.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation

State = Any

DIRECTIONS: Mapping[str, tuple[int, int]] = {
    "stay": (0, 0),
    "up": (0, 1),
    "down": (0, -1),
    "left": (-1, 0),
    "right": (1, 0),
}


class SelectEnv(Protocol):
    """A Select-MDP: `step` consumes its key and changes nothing."""

    @property
    def spec(self) -> Spec: ...

    def reset(self, key: Key[Array, ""]) -> State: ...

    def step(
        self, key: Key[Array, ""], state: State, action: Action
    ) -> tuple[State, Float[Array, ""], Float[Array, ""]]: ...

    def observe(self, state: State) -> Observation: ...


def offers(env: object, name: str) -> Any:
    """What the environment offers under this name, or None."""
    return getattr(env, name, None)


def everything_legal(
    items: Float[Array, "N F"], context: Float[Array, "U G"], num_commands: int
) -> Observation:
    """An observation in which every item is present and every pair is legal."""
    num_items, num_context = items.shape[0], context.shape[0]
    return Observation(
        items=items,
        context=context,
        present=jnp.ones(num_items, bool),
        context_present=jnp.ones(num_context, bool),
        legal=jnp.ones((num_items, num_commands), bool),
    )


def picks_of(action: Action | None) -> list[tuple[int, int]]:
    """The picks of one action on the host, as (item, command); none for None."""
    if action is None:
        return []
    pairs = zip(np.asarray(action.items), np.asarray(action.commands), strict=True)
    return [(int(item), int(command)) for item, command in pairs if item >= 0]


def check_commands(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Move commands as a tuple of distinct known names."""
    if not isinstance(commands, tuple | list) or not commands:
        raise SelectError(f"commands={commands!r}: give a tuple of one or more of {_names()}")
    for name in commands:
        if name not in tuple(DIRECTIONS):  # compared, not hashed: it may be anything
            raise SelectError(f"commands={tuple(commands)!r}: {name!r} is none of {_names()}")
    if len(set(commands)) != len(commands):
        raise SelectError(f"commands={tuple(commands)!r}: a name occurs twice; give each once")
    return tuple(commands)


def directions(commands: tuple[str, ...]) -> Int[Array, "C 2"]:
    """The (x, y) step of each command."""
    return jnp.asarray([DIRECTIONS[name] for name in commands], jnp.int32)


def _names() -> str:
    return ", ".join(DIRECTIONS)
