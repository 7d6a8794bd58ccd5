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

from selectmdp.evaluation import ParametricActor
from selectmdp.interop.copies import Copies
from selectmdp.interop.host_loop import HostEvaluator, OnHost
from selectmdp.learners.base import Learner
from selectmdp.spec import SelectError, Spec


class HostWorld:
    """A Gymnasium environment as a world to train in: a registered id, or a function making one."""

    def __init__(self, task: str | Callable[..., gymnasium.Env[Any, Any]], options: Any) -> None:
        self.name = task if isinstance(task, str) else getattr(task, "__qualname__", repr(task))
        self._task, self._options = task, options
        self._open: list[VectorEnv[Any, Any, Any]] = []
        with self.opened():
            self.env = HostEnv(self._copies(1))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """No environment is left open when training ends."""
        try:
            yield
        finally:
            while self._open:
                self._open.pop().close()

    def engine(self, learner: Learner, seed: int) -> OnHost:
        return OnHost(partial(self._copies, learner.num_envs), self.env, learner, seed)

    def judge(self, act: ParametricActor) -> HostEvaluator:
        return HostEvaluator(self._copies, self.env, act)

    def _copies(self, num_envs: int) -> Copies:
        self._open.append(self._vector(num_envs))
        return Copies(self._open[-1])

    def _vector(self, num_envs: int) -> VectorEnv[Any, Any, Any]:
        task, options = self._task, self._options
        if isinstance(task, str) and gymnasium.spec(task).vector_entry_point is not None:
            return gymnasium.make_vec(task, num_envs, **options)
        return SyncVectorEnv([self._made] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)

    def _made(self) -> gymnasium.Env[Any, Any]:
        """One environment; what else a function makes is refused."""
        task, options = self._task, self._options
        try:
            env = gymnasium.make(task, **options) if isinstance(task, str) else task(**options)
        except TypeError as error:
            if not options:
                raise
            raise SelectError(f"{self.name} with options {options}: {error}") from error
        if isinstance(env, gymnasium.Env):
            return env
        is_world = isinstance(getattr(env, "spec", None), Spec)
        cure = "train on what it makes" if is_world else "give a function that makes one"
        raise SelectError(
            f"task={self.name} makes a {type(env).__name__}, which is no gymnasium.Env: {cure}"
        )


class HostEnv:
    """What a host environment offers, under the names that JAX worlds use."""

    def __init__(self, copies: Copies) -> None:
        vector = copies.vector
        first = vector.envs[0] if isinstance(vector, SyncVectorEnv) else vector
        inside = first.unwrapped
        held = getattr(inside, "env", None)  # ours hold a JAX world
        base = held if isinstance(getattr(held, "spec", None), Spec) else inside
        limits = getattr(base, "time_limit", None), getattr(first.spec, "max_episode_steps", None)
        self.spec = copies.spec
        self.time_limit = next((limit for limit in limits if limit), None)
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
