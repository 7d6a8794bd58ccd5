"""The two kinds of worlds to train in: JAX ones compile with the learner, others stay on the host.

A `World` knows how its kind is run and evaluated; training asks it and does not care.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import jax

from selectmdp import factories, tasks
from selectmdp.engines import Compiled, Engine
from selectmdp.envs.base import check_forms, check_offers, is_jax, offers
from selectmdp.evaluation import Evaluation, Evaluator, ParametricActor, Progress
from selectmdp.learners.base import Learner
from selectmdp.machine import enough_memory
from selectmdp.references import REFERENCES, reference
from selectmdp.settings import Hosting
from selectmdp.sharded import Sharded
from selectmdp.spec import SelectError


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

    def reference(self, name: str) -> Judge:
        """Of the policy of this name; one that the world does not offer is refused."""
        ...

    def try_heuristic(self) -> None:
        """One step by the world's own heuristic, if it has one: at the end it will be judged."""
        ...


@dataclass(frozen=True)
class JaxWorld:
    """A `SelectEnv`."""

    name: str
    env: Any

    def opened(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def engine(self, learner: Learner, seed: int) -> Compiled | Sharded:
        devices = jax.device_count()
        if devices > 1:
            return Sharded(self.env, learner, seed, devices)
        return Compiled(self.env, learner, seed)

    def judge(self, act: ParametricActor) -> Judge:
        return Evaluator(self.env, act)

    def reference(self, name: str) -> Judge:
        actor = reference(name, self.env)
        return self.judge(lambda _, *seen: actor(*seen))

    def try_heuristic(self) -> None:
        env, greedy = self.env, offers(self.env, "greedy")

        def step(key: Any) -> Any:
            state = env.reset(key)
            return env.step(key, state, greedy(key, state))

        if greedy is not None:
            try:
                jax.eval_shape(step, jax.random.key(0))
            except Exception as error:
                raise SelectError(
                    f"{self.name}: a step by its greedy(key, state) raised "
                    f"{factories.told(error)}; mend it, or leave it out"
                ) from error


def world(task: Any, options: Mapping[str, Any], hosting: Hosting = Hosting()) -> World:  # noqa: B008
    """The world of a task: a name of ours with options, a Gymnasium id, `module:factory`, what
    makes a world when called, or a world.

    A name that a file holds must pass `has_name` first: `module:factory` is imported here.
    """
    if isinstance(task, str) and tasks.is_known(task):
        return JaxWorld(task, tasks.make(task, **options))
    if is_jax(task) and not isinstance(task, type):
        if options:
            raise SelectError(f"options {sorted(options)}: give them to the world itself")
        return _own(type(task).__name__, task)
    from selectmdp.interop.crew import Source
    from selectmdp.interop.host import HostWorld, is_registered, registered

    if isinstance(task, str) and is_registered(task):
        return HostWorld(registered(task, options), hosting)
    if isinstance(task, str) and not factories.is_factory(task):
        known = ", ".join(tasks.names())
        raise SelectError(
            f"task {task!r} is none of {known}, no id that Gymnasium knows and no module:factory; "
            "for another package's id name a function that makes it, module:factory"
        )
    if not (isinstance(task, str) or factories.makes(task) or hasattr(task, "step")):
        raise SelectError(f"task={task!r}: give a name, a world, or a function that makes one")
    source = Source.of(task, dict(options))
    first = source.make()
    return _own(source.name, first) if is_jax(first) else HostWorld(source, hosting, first)


def _own(name: str, env: Any) -> JaxWorld:
    check_offers(env, name)
    check_forms(env, name)
    return JaxWorld(name, env)


def has_name(task: str) -> bool:
    """Whether a name stands for a world without any code being imported for it: a name of ours, or
    an id that Gymnasium knows already."""
    if tasks.is_known(task):
        return True
    from selectmdp.interop.host import is_registered

    return is_registered(task)


def references(world: World) -> dict[str, Judge]:
    """Judges of the policies to compare with; not every world offers a heuristic."""
    judges = {}
    for name in REFERENCES:
        with suppress(SelectError):
            judges[name] = world.reference(name)
    return judges


def evaluate(
    task: Any,
    policy: Any = "random",
    *,
    episodes: int = 20,
    seed: int = 0,
    steps: int | None = None,
    workers: int | None = None,
    timeout: float = Hosting.timeout,
    progress: Progress = lambda done, total: None,
    **options: Any,
) -> Evaluation:
    """Mean reward of a step under a policy: a trained one, a reference's name, or an `Actor`.

    The task is as `train` has it. `steps` of an episode are the world's time limit unless given,
    and 1000 where it has none, as after a training; `progress` hears (done, all).
    """
    place = world(task, options, Hosting(workers, timeout))
    return evaluated(place, policy, episodes=episodes, seed=seed, steps=steps, progress=progress)


def evaluated(world: World, policy: Any, **how: Any) -> Evaluation:
    """A policy, as `evaluate` has it, on a world; `how` is as `Judge` has it."""
    with enough_memory(world.env.spec), world.opened():
        return _judge(world, policy)(**how)


def _judge(world: World, policy: Any) -> Judge:
    if isinstance(policy, str):
        return world.reference(policy)
    # A trained policy may have learned on other sizes.
    actor = policy.actor(world.env) if hasattr(policy, "actor") else policy
    if not callable(actor):
        raise SelectError(f"policy={policy!r}: give a name, or (key, state, observation) → Action")
    return world.judge(lambda _, *seen: actor(*seen))
