"""The two kinds of worlds to train in: JAX ones compile with the learner, others stay on the host.

A `World` knows how its kind is run and evaluated; training asks it and does not care.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from selectmdp import tasks
from selectmdp.engines import Compiled, Engine
from selectmdp.envs.base import offers
from selectmdp.evaluation import Evaluation, Evaluator, ParametricActor, Progress
from selectmdp.learners.base import Learner
from selectmdp.references import REFERENCES, Actor, reference
from selectmdp.spec import SelectError, Spec

EPISODE_STEPS = 1000
"""Steps of an evaluated episode where the world has no time limit."""


class Judge(Protocol):
    """Evaluates parameters on a world, compiled once."""

    def __call__(
        self,
        params: Any = None,
        *,
        episodes: int = 20,
        seed: int = 0,
        steps: int | None = None,
        progress: Progress = lambda done, total: None,
    ) -> Evaluation: ...


class World(Protocol):
    """A world to train in."""

    @property
    def name(self) -> str: ...

    @property
    def env(self) -> Any:
        """What knows the sizes, and what the world offers."""
        ...

    def opened(self) -> AbstractContextManager[Any]:
        """While training lasts."""
        ...

    def engine(self, learner: Learner, seed: int) -> Engine: ...

    def judge(self, act: ParametricActor) -> Judge: ...


@dataclass(frozen=True)
class JaxWorld:
    """A `SelectEnv`."""

    name: str
    env: Any

    def opened(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def engine(self, learner: Learner, seed: int) -> Engine:
        return Compiled(self.env, learner, seed)

    def judge(self, act: ParametricActor) -> Judge:
        return Evaluator(self.env, act)


def world(task: Any, options: Mapping[str, Any]) -> World:
    """The world of a task: a name of ours with options, a Gymnasium id, a factory, or a world."""
    if isinstance(task, str) and tasks.is_known(task):
        return JaxWorld(task, tasks.make(task, **options))
    if isinstance(getattr(task, "spec", None), Spec):
        if options:
            raise SelectError(f"options {sorted(options)}: give them to the world itself")
        return JaxWorld(type(task).__name__, task)
    from selectmdp.interop.host import HostWorld

    if isinstance(task, str) and not has_name(task):
        known = ", ".join(tasks.names())
        raise SelectError(f"task {task!r} is none of {known}, and no Gymnasium id")
    if not isinstance(task, str) and not callable(task):
        raise SelectError(f"task={task!r}: give a name, a world, or a function that makes one")
    return HostWorld(task, dict(options))


def has_name(task: str) -> bool:
    """Whether a world can be made from this name alone: one of ours, or a Gymnasium id."""
    if tasks.is_known(task):
        return True
    from selectmdp.interop.host import is_registered

    return is_registered(task)


def episode_steps(world: World) -> int:
    """Steps of an evaluated episode."""
    return offers(world.env, "time_limit") or EPISODE_STEPS


def references(world: World) -> dict[str, Judge]:
    """Judges of the policies to compare with; not every world offers a heuristic."""
    judges = {}
    for name in REFERENCES:
        with suppress(SelectError):
            judges[name] = _judge_of(world, reference(name, world.env))
    return judges


def evaluated(world: World, policy: Any, **how: Any) -> Evaluation:
    """A trained policy, or a reference by its name, on this world; `how` is as `Judge` has it."""
    named = isinstance(policy, str)
    actor = reference(policy, world.env) if named else policy.actor(world.env)
    with world.opened():
        return _judge_of(world, actor)(steps=episode_steps(world), **how)


def _judge_of(world: World, actor: Actor) -> Judge:
    return world.judge(lambda _, *seen: actor(*seen))
