"""A world of three rungs that can be reckoned by hand, and a player whose values are literal."""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from selectmdp.envs.base import everything_legal, picks_of
from selectmdp.iterative import command_of_item, picked
from selectmdp.report.replay import Player
from selectmdp.scene import Arrow, Box, Disc, Label, Scene
from selectmdp.spec import Spec
from selectmdp.types import Action

VALUES = [[[1.0, 0.5], [2.0, 1.0], [0.25, 3.0]], [[1.5, 0.5], [-2.0, -1.0], [-np.inf] * 2]]
"""[K, N, C]: in the first phase the best are 1, 2 and 3; in the second 1.5, −1 and none."""


@dataclass(frozen=True)
class Ladder:
    """Rung i under command c earns (i + 1)(c + 1) and lifts by c; height `last` is the end."""

    last: int = 2
    time_limit: int | None = None
    worth: float = 1.0
    spec: Spec = field(default=Spec(3, 1, 0, 1, 2, 2), init=False)

    unit = "points"

    def reset(self, key: Any) -> Any:
        return jnp.zeros((), jnp.int32)

    def step(self, key: Any, state: Any, action: Action) -> Any:
        each = jnp.arange(1, 4) * (command_of_item(action, 3) + 1)
        reward = self.worth * jnp.where(picked(action, 3), each, 0).sum()
        state = state + command_of_item(action, 3).sum()
        return state, reward, jnp.where(state >= self.last, 0.0, 1.0)

    def observe(self, state: Any) -> Any:
        return everything_legal(jnp.ones((3, 1)), jnp.zeros((0, 1)), 2)

    def draw(self, state: Any, action: Action | None = None) -> Scene:
        """Rungs side by side at y = 0, a pick with a label above it; a tile of each kind above."""
        rungs = [Disc(2 * i, 0, 0.5, "#ffcc00", "#333333", 0.5, item=i) for i in range(3)]
        marks = [Label(2 * i, 1, str(c), "#000000") for i, c in picks_of(action)]
        tiles = [
            Box(0, 3, 1, 2, "#2060a0", "#000000", 0.5, dashed=True, line=4),
            Box(2, 3, 1.5, 1.5, "#a02060", diamond=True),
            Disc(4, 3, 0.7, None, "#008040", dashed=True, width=6),
            Arrow(-0.5, 1.4, 4.5, 1.6, "#600060", width=5, head=30),
        ]
        return Scene((-1, -1, 5, 4), (*rungs, *marks, *tiles), f"height {int(state)}", "#fffaf0")


def literal() -> Player:
    """Takes rung 2 with command 1, then rung 0 with command 0."""
    action = Action(jnp.asarray([2, 0]), jnp.asarray([1, 0]))
    return Player("literal", lambda *seen: (action, jnp.asarray(VALUES)))


def lazy() -> Player:
    """Takes rung 1, then nothing, and gets nowhere."""
    action = Action(jnp.asarray([1, -1]), jnp.asarray([0, 0]))
    return Player("lazy", lambda *seen: (action, None))
