"""The two kinds of worlds to train in: JAX ones compile with the learner, others stay on the host.

A `World` knows how its kind is run and evaluated; training asks it and does not care.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from selectmdp import tasks
from selectmdp.engines import Compiled, Engine
from selectmdp.evaluation import Evaluation, Evaluator, ParametricActor, Progress
from selectmdp.learners.base import Learner
from selectmdp.references import REFERENCES, Actor
from selectmdp.spec import SelectError, Spec


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

    def references(self) -> dict[str, Judge]:
        """Judges of the policies to compare with."""
        ...


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

    def references(self) -> dict[str, Judge]:
        judges: dict[str, Judge] = {}
        for name, make in REFERENCES.items():
            try:
                judges[name] = Evaluator(self.env, _without_parameters(make(self.env)))
            except SelectError:  # not every world offers a heuristic
                continue
        return judges


def world(task: Any, options: Mapping[str, Any]) -> World:
    """The world of a task: a name of ours with options, a Gymnasium id, a factory, or a world."""
    if isinstance(task, str) and tasks.is_known(task):
        return JaxWorld(task, tasks.make(task, **options))
    if isinstance(getattr(task, "spec", None), Spec):
        if options:
            raise SelectError(f"options {sorted(options)}: give them to the world itself")
        return JaxWorld(type(task).__name__, task)
    from selectmdp.interop.host import HostWorld, is_registered

    if isinstance(task, str) and not is_registered(task):
        known = ", ".join(tasks.names())
        raise SelectError(f"task {task!r} is none of {known}, and no Gymnasium id")
    if not isinstance(task, str) and not callable(task):
        raise SelectError(f"task={task!r}: give a name, a world, or a function that makes one")
    return HostWorld(task, dict(options))


def _without_parameters(actor: Actor) -> ParametricActor:
    return lambda _, *seen: actor(*seen)
