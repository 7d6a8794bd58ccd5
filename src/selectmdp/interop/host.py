"""Host environments as worlds to train in: the learner compiled, the environments in workers.

Whatever is no world in JAX comes here: NumPy classes, adapted Gymnasium environments, Gymnasium
environments that speak our spaces. Copies of it run side by side; where an episode ends the next
begins in the same step.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium
import jax

from selectmdp import processes
from selectmdp.envs.base import check_offers
from selectmdp.evaluation import ParametricActor
from selectmdp.interop.adapter import hosted
from selectmdp.interop.called import FORMS, Called
from selectmdp.interop.crew import Crew, Source, Team, here
from selectmdp.interop.host_loop import HostEvaluator, OnHost
from selectmdp.interop.rows import closed
from selectmdp.learners.base import Learner
from selectmdp.machine import cores
from selectmdp.policy import heard
from selectmdp.references import reference
from selectmdp.settings import Hosting
from selectmdp.spec import SelectError, WorldFault


class HostWorld:
    """A host environment as a world to train in."""

    def __init__(self, source: Source, hosting: Hosting, first: Any = None) -> None:
        """`first` is one environment, if one was made already."""
        self.name = source.name
        self._source, self._hosting = source, hosting
        self._open: list[Crew] = []
        self._judging: Crew | None = None
        first = source.make() if first is None else first
        try:
            world = hosted(first, source.name)
            check_offers(world, source.name)
            self.env = HostEnv(world)
        finally:
            closed(first, f"the first environment of {source.name}")
        _workers(source, hosting, 1)  # refuses what cannot be, before anything is begun

    @contextmanager
    def opened(self) -> Iterator[None]:
        """No environment, and no process, is left when training ends."""
        try:
            with heard(self.env.faults):
                yield
        finally:
            self._judging = None
            while self._open:
                self._open.pop().close()

    def engine(self, learner: Learner, seed: int) -> OnHost:
        if jax.process_count() > 1:
            raise SelectError(
                f"{self.name} in {jax.process_count()} processes: a Gymnasium world trains in one; "
                f"unset {', '.join(processes.VARIABLES)}"
            )
        tells = learner.marginal and self.env.partial_reward
        why = "num_envs; --set num_envs=… opens fewer"
        return OnHost(partial(self._crew, learner.num_envs, tells, why), self.env, learner, seed)

    def judge(self, act: ParametricActor) -> HostEvaluator:
        return HostEvaluator(self._judges, self.env, act)

    def reference(self, name: str) -> HostEvaluator:
        if name != "greedy":
            actor = reference(name, self.env)
            return self.judge(lambda _, *seen: actor(*seen))
        if not self.env.greedy:
            raise SelectError(f"{self.name} offers no greedy(): take 'random'")
        return HostEvaluator(self._judges, self.env, None)

    def try_heuristic(self) -> None:
        if self.env.greedy:
            with self.opened():
                self.reference("greedy")(episodes=1, steps=1)

    def _judges(self, num_envs: int) -> Crew:
        """Copies for evaluations: all policies play on the same."""
        if self._judging is None or self._judging.block.num_envs != num_envs:
            if self._judging is not None:
                self._open.remove(self._judging)
                self._judging.close()
            self._judging = self._crew(num_envs, False, "one for each episode")
        return self._judging

    def _crew(self, num_envs: int, tells: bool, why: str) -> Crew:
        try:
            self._open.append(Crew(self._team(num_envs, tells)))
        except WorldFault as fault:
            raise WorldFault(f"{fault} ({num_envs} copies are opened: {why})") from fault
        return self._open[-1]

    def _team(self, num_envs: int, tells: bool) -> Team:
        source, hosting, spec = self._source, self._hosting, self.env.spec
        workers = _workers(source, hosting, num_envs)
        if workers == 0:
            return here(source, spec, num_envs, tells)
        from selectmdp.interop.workers import Workers

        assert source.address is not None
        how = (workers, hosting.timeout, tells)
        return Workers(source.address, source.options, spec, num_envs, *how)


STANDS_FOR_OTHERS = ("GymV21Environment", "GymV26Environment")
"""Ids of Gymnasium's own for environments of old Gym, given by an option."""


class HostEnv:
    """What a host environment offers, under the names that JAX worlds use."""

    def __init__(self, env: Any) -> None:
        self.spec = env.spec
        self.time_limit = getattr(env, "time_limit", None)
        self.unit = getattr(env, "unit", None) or "reward"
        for name in ("command_names", "dynamics", "suits"):
            setattr(self, name, getattr(env, name, None))
        self.faults: list[WorldFault] = []
        """What its functions raised in compiled code, from which no exception comes as it was."""
        for name in FORMS:
            function: Any = getattr(env, name, None)
            setattr(self, name, None if function is None else Called(name, function, self.faults))
        self.partial_reward = callable(getattr(env, "partial_reward", None))
        self.greedy = callable(getattr(env, "greedy", None))


def registered(task: str, options: Mapping[str, Any]) -> Source:
    """An environment that Gymnasium knows by an id; only this process is sure to know it too."""
    return Source(partial(gymnasium.make, task), task, options, None)


def is_registered(task: str) -> bool:
    """Whether Gymnasium knows an environment of this id; not one that makes what an option names,
    which would be imported for it."""
    if task.partition("-v")[0] in STANDS_FOR_OTHERS:
        return False
    try:
        gymnasium.spec(task)
    except gymnasium.error.Error:
        return False
    return True


def _workers(source: Source, hosting: Hosting, num_envs: int) -> int:
    """How many processes: one a core where the world can be made in them; 0 is this one alone."""
    possible = source.address is not None and os.name == "posix"
    if hosting.workers is None:
        return min(cores(), num_envs) if possible else 0
    if hosting.workers > 0 and not possible:
        raise SelectError(
            f"workers={hosting.workers}: {source.name} cannot be made in another process; put it "
            "into a module and give it as module:factory, or let workers=0"
        )
    return min(hosting.workers, num_envs)
