"""Worlds of one's own that are made already: each copy is a world of its own, heuristic and all."""

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest

import selectmdp as sm
from selectmdp.interop.adapter import Adapted
from selectmdp.types import Action


class Lamps(gymnasium.Env[Any, Any]):
    """Four lamps, each as bright as was drawn; one that is lit pays that much and is drawn anew."""

    observation_space = gymnasium.spaces.Box(0, 1, (4,), np.float64)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.bright = self.np_random.uniform(size=4)
        return self.bright.copy(), {}

    def step(self, action: Any) -> Any:
        paid = float(self.bright[action])
        self.bright[action] = self.np_random.uniform()
        return self.bright.copy(), paid, False, False, {}


def lamps(greedy: Any = lambda theirs: ([int(theirs.argmax())], [0])) -> Adapted:
    def act(picks: Action) -> int:
        return int(picks.items[0])

    spec = sm.Spec(4, 1, 0, 0, num_select=1, num_commands=1)
    how = {"greedy": greedy, "time_limit": 20}
    return sm.from_gymnasium(Lamps(), spec, lambda theirs: theirs[:, None], act, **how)


def test_a_made_world_and_what_makes_it_are_judged_alike_by_their_heuristic() -> None:
    by_factory = sm.evaluate(lamps, "greedy", episodes=4, workers=0)
    assert sm.evaluate(lamps(), "greedy", episodes=4) == by_factory
    assert by_factory.mean_reward > sm.evaluate(lamps, episodes=4, workers=0).mean_reward


def test_a_copy_asks_its_heuristic_about_itself() -> None:
    first = lamps()
    other = copy.deepcopy(first)
    first.reset(0)
    other.reset(1)
    assert first.greedy is not None
    assert other.greedy is not None
    assert first.greedy() == ([int(first.env.bright.argmax())], [0])
    assert other.greedy() == ([int(other.env.bright.argmax())], [0])
    assert first.greedy() != other.greedy()


def test_a_world_without_a_heuristic_offers_none() -> None:
    assert lamps(greedy=None).greedy is None
    with pytest.raises(sm.SelectError, match=r"Adapted offers no greedy\(\): take 'random'"):
        sm.evaluate(lamps(greedy=None), "greedy")
