"""Copies of a host environment, stepped together: what Gymnasium gives, as our observations."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv

from selectmdp.interop.spaces import SelectSpace
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation, expected_shapes

Rewards = npt.NDArray[np.float64]


class HostStep(NamedTuple):
    """What one step of E copies gave."""

    reward: Rewards
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    last: Observation
    """What each step led to, before any reset."""
    observation: Observation
    """What is seen now, after the resets."""


class Copies:
    """E copies of an environment, stepped together."""

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        self.vector = vector
        space = vector.single_action_space
        if not isinstance(space, SelectSpace):
            raise SelectError(
                f"the action space is {type(space).__name__}: an environment to train in needs "
                "SelectSpace actions (selectmdp.interop.spaces)"
            )
        mode = vector.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise SelectError(f"the vector environment resets by {mode}: it must be SAME_STEP")
        self.spec: Spec = space.sizes
        self.num_envs = vector.num_envs

    def blank(self) -> Observation:
        """An observation of the right shapes."""
        shapes = expected_shapes(self.spec).items()
        return Observation(
            **{name: jnp.zeros((self.num_envs, *shape), _kind(name)) for name, shape in shapes}
        )

    def reset(self, seed: int) -> Observation:
        """New episodes everywhere, always the same for a seed."""
        seen, _ = self.vector.reset(seed=seed)
        return observed(seen, self.spec)

    def step(self, action: Action) -> HostStep:
        """One step of each."""
        picks = {
            "items": np.asarray(action.items, np.int64),
            "commands": np.asarray(action.commands, np.int64),
        }
        seen, reward, terminated, truncated, info = self.vector.step(picks)
        now = observed(seen, self.spec)
        ended = np.flatnonzero(terminated | truncated)
        last = now
        if len(ended):
            last = jax.tree.map(np.copy, now)
            for row in ended:
                final = observed(
                    {name: part[None] for name, part in info["final_obs"][row].items()}, self.spec
                )
                for whole, one in zip(last, final, strict=True):
                    whole[row] = one[0]
        return HostStep(np.asarray(reward, np.float64), terminated, truncated, last, now)


def observed(seen: Mapping[str, Any], spec: Spec) -> Observation:
    """A batch of observations as Gymnasium gives it: a dict of arrays, masks as 0 and 1."""
    parts: dict[str, Any] = {}
    for name, shape in expected_shapes(spec).items():
        if not isinstance(seen, Mapping) or name not in seen:
            raise SelectError(
                f"the environment's observation has no {name!r}: it must be a dict with "
                f"{', '.join(Observation._fields)}"
            )
        parts[name] = np.asarray(seen[name]).astype(_kind(name))
        if parts[name].shape[1:] != shape:
            raise SelectError(
                f"the environment's observation has {name} of shape {parts[name].shape[1:]}: "
                f"by its action space, {spec}, it must be {shape}"
            )
    return Observation(**parts)


def _kind(name: str) -> Any:
    return np.float32 if name in ("items", "context") else np.bool_
