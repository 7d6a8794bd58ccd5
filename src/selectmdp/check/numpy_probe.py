"""A NumPy world being checked: it is played by random legal picks."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from selectmdp.check.gym_env import same
from selectmdp.interop.edge import made_picks, outcome, put
from selectmdp.interop.spaces import SelectSpace
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation, expected_shapes

Seen = dict[str, npt.NDArray[Any]]


class Step(NamedTuple):
    """One step of an episode; the observation is from before the picks."""

    observation: Seen
    action: tuple[Any, ...]
    following: Seen
    reward: float
    terminated: bool
    truncated: bool


class Player:
    """One copy of a world, played by random legal picks."""

    def __init__(self, env: Any, seed: int, picks_seed: int) -> None:
        self.env, self.space = env, SelectSpace(env.spec, seed=picks_seed)
        self._chance = np.random.SeedSequence(seed)
        self.observation = self._reset(seed)

    def step(self) -> Step:
        """One step; a new episode begins where one ends."""
        now, action = self.observation, self.picks()
        seen, reward, terminated, truncated = outcome(self.env.step(action))
        self.age += 1
        limit = getattr(self.env, "time_limit", None)
        truncated = truncated or (limit is not None and self.age >= limit and not terminated)
        step = Step(now, tuple(action), copied(self.env.spec, seen), reward, terminated, truncated)
        ended = terminated or truncated
        self.observation = self._reset() if ended else step.following
        return step

    def picks(self) -> Action:
        """K legal picks; fewer where nothing legal is left."""
        self.space.legal = self.observation["legal"] & self.observation["present"][:, None]
        after = getattr(self.env, "legal_after", None)
        if after is not None:
            seen = Observation(**self.observation)  # type: ignore[arg-type]
            self.space.legal_after = lambda *picks: np.asarray(after(seen, *picks))
        picks = self.space.sample()
        return made_picks(picks["items"], picks["commands"])

    def _reset(self, seed: int | None = None) -> Seen:
        self.age = 0
        fresh = int(self._chance.spawn(1)[0].generate_state(1)[0]) if seed is None else seed
        return copied(self.env.spec, self.env.reset(fresh))


class NumpyProbe:
    """A world, and what the checks share about it."""

    def __init__(self, make: Any, env: Any, seed: int, steps: int) -> None:
        self.make, self.env, self.seed, self.steps = make, env, seed, steps

    @cached_property
    def trail(self) -> tuple[Step, ...]:
        return self.played(self.env, self.seed)

    def played(self, env: Any, seed: int) -> tuple[Step, ...]:
        """`steps` steps: the world's chance from `seed`, the picks' always from the probe's."""
        player = Player(env, seed, self.seed)
        return tuple(player.step() for _ in range(self.steps))


def copied(spec: Spec, seen: Any) -> Seen:
    """An observation in arrays of its own."""
    place: Seen = {
        name: np.zeros(shape, np.float32 if name in ("items", "context") else bool)
        for name, shape in expected_shapes(spec).items()
    }
    put(seen, place)
    return place


def equal(left: tuple[Step, ...], right: tuple[Step, ...]) -> bool:
    """The same through and through."""
    return all(same(tuple(a), tuple(b)) for a, b in zip(left, right, strict=True))
