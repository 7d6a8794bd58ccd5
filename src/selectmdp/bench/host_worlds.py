"""Two NumPy worlds to be stepped on the host, a cheap one and a simulator; no JAX in here."""

from typing import Any

import numpy as np
import numpy.typing as npt

from selectmdp.bench.twins import CircleTwin
from selectmdp.spec import Spec
from selectmdp.types import Action

COMMANDS = ("stay", "up", "down", "left", "right")
LONG = 10_000
"""Steps of an episode, so that resets hardly count."""


class Shelves:
    """About the least that a world can do: shelves empty, and those that are picked are filled."""

    time_limit = LONG

    def __init__(self, num_items: int = 50) -> None:
        self.spec = Spec(num_items, 2, 0, 0, num_select=6, num_commands=2)

    def reset(self, seed: int) -> npt.NDArray[np.float64]:
        self._shown = np.random.default_rng(seed).uniform(0.0, 0.3, (self.spec.num_items, 2))
        return self._shown

    def step(self, action: Action) -> tuple[Any, float, bool]:
        level, demand = self._shown.T
        level[action.items] = 1.0
        sold = np.minimum(level, demand)
        level -= sold
        return self._shown, float(sold.sum()), False


class Circles:
    """The paper's circle selection by its plain NumPy twin: a simulator that takes its time."""

    time_limit = LONG

    def __init__(self, num_items: int = 50) -> None:
        self.spec = Spec(num_items, 3, 0, 0, num_select=6, num_commands=len(COMMANDS))
        self._twin = CircleTwin(
            num_items=num_items, num_context=0, num_select=6, commands=COMMANDS, dynamics="figures"
        )

    def reset(self, seed: int) -> npt.NDArray[np.float64]:
        self._rng = np.random.default_rng(seed)
        self._state = self._twin.reset(self._rng)
        return self._state[0]

    def step(self, action: Action) -> tuple[Any, float, bool]:
        picks = list(zip(action.items.tolist(), action.commands.tolist(), strict=True))
        *state, reward = self._twin.step(*self._state, picks, self._twin.draw(self._rng))
        self._state = state[0], state[1]
        return self._state[0], float(reward), False
