"""A Gymnasium environment being checked: it is played by random legal picks."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from selectmdp.check.report import NotChecked
from selectmdp.interop.gymnasium import legal_pairs
from selectmdp.spec import Spec

Picks = dict[str, npt.NDArray[Any]]


class Step(NamedTuple):
    """One step of an episode; the observation is from before the picks."""

    observation: dict[str, Any]
    space_legal: npt.NDArray[np.bool_]
    """What the action space held to be legal."""
    picks: Picks
    next_observation: dict[str, Any]
    reward: Any
    terminated: Any
    truncated: Any


class GymProbe:
    """One environment, and what the checks share about it."""

    def __init__(self, env: Any, seed: int, steps: int) -> None:
        self.env = env
        self.seed = seed
        self.steps = steps

    @property
    def spec(self) -> Spec:
        sizes: Spec = self.env.action_space.sizes
        return sizes

    @cached_property
    def trail(self) -> tuple[Step, ...]:
        return self.fresh_trail(self.seed)

    def fresh_trail(self, seed: int) -> tuple[Step, ...]:
        """`steps` steps: the world's chance from `seed`, the picks' always from the probe's."""
        return tuple(step for step, _ in zip(self.play(seed), range(self.steps), strict=False))

    def play(self, seed: int) -> Iterator[Step]:
        """Steps without end; a new episode begins where one ends."""
        observation, _ = self.env.reset(seed=seed)
        self.env.action_space.seed(self.seed)
        while True:
            picks = self.random_picks(observation)
            legal = np.array(self.env.action_space.legal)
            following, reward, terminated, truncated, _ = self.env.step(picks)
            yield Step(observation, legal, picks, following, reward, terminated, truncated)
            observation = following
            if terminated or truncated:
                observation, _ = self.env.reset()

    def random_picks(self, observation: dict[str, Any]) -> Picks:
        """K legal picks, as the observation has it; −1 where nothing legal is left."""
        picks: Picks = self.env.action_space.sample(mask=open_pairs(observation))
        return picks

    def stand_where(self, wanted: Any, otherwise: str) -> tuple[dict[str, Any], Picks]:
        """Play until `wanted(observation, picks)` and stop before the step."""
        observation, _ = self.env.reset(seed=self.seed)
        self.env.action_space.seed(self.seed)
        for _ in range(self.steps):
            picks = self.random_picks(observation)
            if wanted(observation, picks):
                return observation, picks
            observation, _, terminated, truncated, _ = self.env.step(picks)
            if terminated or truncated:
                observation, _ = self.env.reset()
        raise NotChecked(f"{otherwise} in {self.steps} steps")


def open_pairs(observation: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """The pairs that may be picked first, as the observation has it."""
    return legal_pairs(observation["legal"], observation["present"])
