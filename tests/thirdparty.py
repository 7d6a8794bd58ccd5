"""What the tests of other people's worlds share."""

from pathlib import Path
from typing import Any

import numpy as np

from selectmdp.interop.edge import made_picks
from selectmdp.interop.spaces import SelectSpace
from selectmdp.types import Action

ROOT = Path(__file__).parent.parent


def picks(*pairs: tuple[int, int]) -> Action:
    """An action of (item, command) pairs."""
    items, commands = np.array(pairs, int).reshape(-1, 2).T
    return Action(items, commands)  # type: ignore[arg-type]


def mean_reward(world: Any, policy: str, episodes: int) -> float:
    """Of a step, under `random` or `greedy`."""
    space, rewards = SelectSpace(world.spec, seed=0), []
    for episode in range(episodes):
        seen = world.reset(episode)
        ended = False
        while not ended:
            space.legal = seen["legal"]
            chosen = space.sample()
            action = made_picks(chosen["items"], chosen["commands"])
            if policy == "greedy":
                action = picks(*zip(*world.greedy(), strict=True))
            seen, reward, terminated, truncated = world.step(action)
            rewards.append(reward)
            ended = terminated or truncated
    return float(np.mean(rewards))
