"""Gymnasium environments as worlds to train in: the learner compiled, the environment on the host.

The environment must speak our spaces: `SelectSpace` actions, and observations as a dict with
`items`, `context`, `present`, `context_present` and `legal`. Copies of it run side by side in one
vector environment; where an episode ends the next begins in the same step.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from selectmdp import iterative
from selectmdp.evaluation import ParametricActor
from selectmdp.interop.host_loop import Copies, HostEvaluator, OnHost
from selectmdp.learners.base import Learner
from selectmdp.types import Action, Observation

STEPS = 1000
"""Steps of an evaluated episode where an environment has no time limit."""


class HostWorld:
    """A Gymnasium environment as a world to train in: a registered id, or a function making one."""

    def __init__(self, task: str | Callable[..., gymnasium.Env[Any, Any]], options: Any) -> None:
        self.name = task if isinstance(task, str) else getattr(task, "__qualname__", repr(task))
        self._task, self._options = task, options
        self._open: list[Copies] = []
        with self.opened():
            self.env = Offered(self._copies(1))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """No environment is left open when training ends."""
        try:
            yield
        finally:
            while self._open:
                self._open.pop().vector.close()

    def engine(self, learner: Learner, seed: int) -> OnHost:
        return OnHost(partial(self._copies, learner.num_envs), self.env, learner, seed)

    def judge(self, act: ParametricActor) -> HostEvaluator:
        return HostEvaluator(self._copies, self.env, act)

    def references(self) -> dict[str, Any]:
        """Random alone: a host environment has no heuristic to offer."""

        def random(_: Any, key: Any, state: Any, observation: Observation) -> Action:
            del state
            return iterative.random_action(key, self.env, observation)

        return {"random": self.judge(random)}

    def _copies(self, num_envs: int) -> Copies:
        self._open.append(Copies(self._vector(num_envs)))
        return self._open[-1]

    def _vector(self, num_envs: int) -> VectorEnv[Any, Any, Any]:
        make: Callable[[], gymnasium.Env[Any, Any]]
        if isinstance(self._task, str):
            if gymnasium.spec(self._task).vector_entry_point is not None:
                return gymnasium.make_vec(self._task, num_envs, **self._options)
            make = partial(gymnasium.make, self._task, **self._options)
        else:
            make = partial(self._task, **self._options)
        return SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)


class Offered:
    """What a host environment offers, under the names that JAX worlds use."""

    def __init__(self, copies: Copies) -> None:
        vector = copies.vector
        inside = vector.envs[0].unwrapped if isinstance(vector, SyncVectorEnv) else vector
        base = getattr(inside, "env", inside)  # ours hold a JAX world inside
        limits = getattr(base, "time_limit", None), getattr(vector.spec, "max_episode_steps", None)
        self.spec = copies.spec
        self.time_limit = next((limit for limit in limits if limit), STEPS)
        self.unit = getattr(base, "unit", "reward")
        for name in ("command_names", "legal_after", "sort_key", "learning_reward", "dynamics"):
            setattr(self, name, getattr(base, name, None))


def is_registered(task: str) -> bool:
    """Whether Gymnasium knows an environment of this id."""
    try:
        gymnasium.spec(task)
    except gymnasium.error.Error:
        return False
    return True
