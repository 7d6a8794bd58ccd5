"""Stepping host environments under a compiled learner, and evaluating on them.

A host environment's state cannot be saved. So at a checkpoint all episodes are cut short and begin
anew from a seed made of the run's seed and the step, in a run that goes on and in one that resumes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from selectmdp.engines import ChunkReport, Running, blank, learning_reward
from selectmdp.evaluation import (
    Evaluation,
    ParametricActor,
    Progress,
    check_episodes,
    episode_steps,
    summary,
)
from selectmdp.interop.crew import Crew, HostStep
from selectmdp.learners.base import Learner, Played
from selectmdp.spec import WorldFault, check_seed
from selectmdp.tasks import describe
from selectmdp.types import Action, Observation, Transition, expected_shapes


class OnHost:
    """A learner on host environments: acting and learning compile, stepping is theirs."""

    devices = 1

    def __init__(self, crew: Callable[[], Crew], env: Any, learner: Learner, seed: int) -> None:
        self._make, self.env, self.learner, self.seed = crew, env, learner, seed
        self._tells = learner.marginal and env.partial_reward
        self._crew: Crew | None = None
        self._seen: Observation | None = None
        self._act = jax.jit(self.learner.act)
        self._learn = jax.jit(self._learned, donate_argnums=1)

    def start(self) -> Running:
        """Fresh parameters; the environments are reset when the first chunk begins."""
        return _start(self.learner, self._example(), jax.random.key(self.seed))

    def like(self) -> Running:
        """Shapes and types alone."""
        return jax.eval_shape(
            lambda key: _start(self.learner, self._example(), key), jax.random.key(self.seed)
        )

    def run(self, running: Running) -> tuple[Running, ChunkReport]:
        """One chunk of rounds: T steps of every copy, then learning from them."""
        if self._crew is None:
            self._crew = self._make()
        step, key, learner = int(running.step), running.key, running.learner
        if self._seen is None:
            self._seen = self._crew.reset(self._seed_at(step))
        per_round = self.learner.num_envs * self.learner.rollout
        rewards, losses, updates, sound = [], [], 0, True
        for _ in range(self.learner.chunk // per_round):
            key, learn_key, *act_keys = jax.random.split(key, 2 + self.learner.rollout)
            steps = []
            for act_key in act_keys:
                action, aside = jax.device_get(self._act(act_key, learner, self._seen, step))
                stepped = self._crew.step(action)
                transition = self._transition(self._seen, action, stepped)
                partial = stepped.partial.astype(np.float32) if self._tells else None
                steps.append(Played(transition, aside, partial))  # type: ignore[arg-type]
                rewards.append(stepped.reward.mean())
                self._seen = stepped.observation
            step += per_round
            together = jax.tree.map(lambda *leaves: np.stack(leaves), *steps)
            learner, loss, updated, finite = self._learn(learn_key, learner, together, step)
            sound = sound and bool(finite)
            if updated:
                losses.append(float(loss))
                updates += 1
        mean_loss = float(np.mean(losses)) if losses else float("nan")
        learner = self.learner.between(learner, step)
        running = Running(key, jnp.asarray(step, jnp.int32), running.worlds, running.ages, learner)
        reward = float(np.mean(rewards)) if sound else float("nan")
        return running, ChunkReport(reward, mean_loss, updates)

    def boundary(self, running: Running) -> Running:
        """Cut all episodes short, so that what follows depends on the seed and the step alone."""
        if self._seen is None:
            return running
        learner = self.learner.cut(running.learner, self._seen)
        self._seen = None
        return running._replace(learner=learner)

    def _example(self) -> Observation:
        """An observation of the right shapes."""
        shapes, rows = expected_shapes(self.env.spec).items(), self.learner.num_envs
        kinds = {"items": jnp.float32, "context": jnp.float32}
        return Observation(
            **{name: jnp.zeros((rows, *shape), kinds.get(name, bool)) for name, shape in shapes}
        )

    def _seed_at(self, step: int) -> int:
        return int(np.random.SeedSequence([self.seed, step]).generate_state(1)[0] >> 1)

    def _transition(self, seen: Observation, action: Action, stepped: HostStep) -> Transition:
        alive = np.where(stepped.terminated, 0.0, self.learner.discount)
        return Transition(
            observation=seen,
            action=action,
            reward=stepped.reward.astype(np.float32),  # type: ignore[arg-type]
            discount=alive.astype(np.float32),  # type: ignore[arg-type]
            truncated=stepped.truncated & ~stepped.terminated,  # type: ignore[arg-type]
            next_observation=stepped.last,
        )

    def _learned(self, key: Key[Array, ""], learner: Any, played: Played, step: Any) -> Any:
        scaled = jax.vmap(jax.vmap(learning_reward(self.env)))
        played = played._replace(steps=played.steps._replace(reward=scaled(played.steps.reward)))
        sound = jnp.isfinite(played.steps.reward).all()
        if played.marginal is not None:
            upto = jax.vmap(scaled, in_axes=2, out_axes=2)(played.marginal)
            played = played._replace(
                marginal=jnp.diff(upto, prepend=jnp.zeros((*upto.shape[:2], 1)))
            )
            sound = sound & jnp.isfinite(upto).all()
        return *self.learner.learn(key, learner, played, step), sound


class HostEvaluator:
    """Episodes on copies of a host environment, as `Evaluator` does on a JAX world."""

    def __init__(self, crew: Callable[[int], Crew], env: Any, act: ParametricActor | None) -> None:
        """Without `act` each copy picks by its own heuristic."""
        self._crew, self.env = crew, env

        def batch(params: Any, key: Key[Array, ""], seen: Observation) -> Action:
            assert act is not None
            keys = jax.random.split(key, seen.items.shape[0])
            return jax.vmap(lambda key, seen: act(params, key, None, seen))(keys, seen)

        self._act = None if act is None else jax.jit(batch)

    def __call__(
        self,
        params: Any = None,
        *,
        episodes: int = 20,
        seed: int = 0,
        steps: int | None = None,
        progress: Progress = lambda done, total: None,
    ) -> Evaluation:
        """The first episode of each copy, up to `steps`; copy i has the seed `seed` + i."""
        check_episodes(episodes)
        length, seed = episode_steps(self.env, steps), check_seed(seed)
        with _in_evaluation():
            return self._judged(params, episodes, seed, length, progress)

    def _judged(
        self, params: Any, episodes: int, seed: int, length: int, progress: Progress
    ) -> Evaluation:
        crew = self._crew(episodes)
        seen, key = crew.reset(seed), jax.random.key(seed)
        totals, counts, alive = np.zeros(episodes), np.zeros(episodes), np.ones(episodes, bool)
        for index in range(length):
            action = None
            if self._act is not None:
                action = jax.device_get(self._act(params, jax.random.fold_in(key, index), seen))
            stepped = crew.step(action)
            totals += np.where(alive, stepped.reward, 0.0)
            counts += alive
            alive = alive & ~(stepped.terminated | stepped.truncated)
            seen = stepped.observation
            progress(index + 1, length)
            if not alive.any():
                break
        return summary(totals / counts, length, seed, describe(self.env))


@contextmanager
def _in_evaluation() -> Iterator[None]:
    """Copies for evaluations have numbers of their own."""
    try:
        yield
    except WorldFault as fault:
        raise WorldFault(f"in an evaluation, {fault}") from fault


def _start(learner: Learner, seen: Observation, key: Key[Array, ""]) -> Running:
    key, init_key = jax.random.split(key)
    num_select = learner.agent.spec.num_select
    example = jax.vmap(lambda one: blank(one, num_select))(jax.tree.map(jnp.asarray, seen))
    ages: Int[Array, " E"] = jnp.zeros(learner.num_envs, jnp.int32)
    return Running(key, jnp.zeros((), jnp.int32), (), ages, learner.init(init_key, example))
