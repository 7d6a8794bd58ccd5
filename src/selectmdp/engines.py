"""Where a learner meets a world: acting, stepping, storing and updating as one compiled chunk.

A chunk is a fixed number of steps; between two of them plain Python looks at the clock, evaluates,
saves. The state of a run is one tree of arrays, so a checkpoint of it resumes bit for bit.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from selectmdp.devices import ALONE
from selectmdp.envs.base import offers
from selectmdp.learners.base import Learner, Played
from selectmdp.types import Action, Observation, Transition


class Running(NamedTuple):
    """A run between two chunks."""

    key: Key[Array, ""]
    step: Int[Array, ""]
    """Steps made so far, over all environments."""
    worlds: Any
    """Environment states [E, …]."""
    ages: Int[Array, " E"]
    """Steps of each episode so far."""
    learner: Any


class ChunkReport(NamedTuple):
    """What a chunk measured, as numbers."""

    reward: float
    """Mean of a step, unscaled; NaN too where it was finite and what is learned of it is not."""
    loss: float
    """Mean over updates; NaN where there was none."""
    updates: int
    """How many rounds of acting were followed by learning."""


class Engine(Protocol):
    """Runs a learner on some kind of world."""

    @property
    def devices(self) -> int:
        """How many train together, over all processes."""
        ...

    def start(self) -> Running:
        """Fresh worlds, fresh parameters."""
        ...

    def like(self) -> Running:
        """Shapes and types of a run's state, to read a checkpoint by."""
        ...

    def run(self, running: Running) -> tuple[Running, ChunkReport]:
        """One chunk, then what the learner has to do between two."""
        ...

    def boundary(self, running: Running) -> Running:
        """What is saved, and gone on from, at a checkpoint."""
        ...


@dataclass(frozen=True)
class Compiled:
    """A learner on a JAX world: everything in one compiled call."""

    env: Any
    learner: Learner
    seed: int

    devices = 1

    def start(self) -> Running:
        """Fresh worlds, fresh parameters."""
        return self._start(jax.random.key(self.seed))

    def like(self) -> Running:
        """Shapes and types alone."""
        return jax.eval_shape(self._start, jax.random.key(self.seed))

    def run(self, running: Running) -> tuple[Running, ChunkReport]:
        """One chunk, then what the learner has to do between two."""
        running, (reward, loss, updates) = self._chunk(running)
        report = ChunkReport(float(reward), float(loss), int(updates))
        after = self.learner.between(running.learner, int(running.step))
        return running._replace(learner=after), report

    def boundary(self, running: Running) -> Running:
        """The state as it is: episodes go on where they were."""
        return running

    def compiled(self) -> Any:
        """A chunk's program, which tells what it needs before it is run."""
        return self._chunk.lower(self.like()).compile()

    @cached_property
    def _start(self) -> Any:
        return jax.jit(self.begin)

    @cached_property
    def _chunk(self) -> Any:
        return jax.jit(self.rounds, donate_argnums=0)

    def begin(self, key: Key[Array, ""]) -> Running:
        """Fresh worlds of all devices, fresh parameters."""
        key, reset_key, init_key = jax.random.split(key, 3)
        worlds = jax.vmap(self.env.reset)(jax.random.split(reset_key, self.learner.num_envs))
        example = jax.vmap(lambda observation: blank(observation, self.env.spec.num_select))(
            jax.vmap(self.env.observe)(worlds)
        )
        return Running(
            key=key,
            step=jnp.zeros((), jnp.int32),
            worlds=worlds,
            ages=jnp.zeros(self.learner.num_envs, jnp.int32),
            learner=self.learner.init(init_key, example),
        )

    def rounds(self, running: Running) -> tuple[Running, tuple[Array, Array, Array]]:
        """A chunk: rounds of playing, then learning, in this device's share of the worlds."""
        per_round = self.learner.num_envs * self.learner.rollout

        def one_round(running: Running, _: None) -> tuple[Running, tuple[Array, Array, Array]]:
            key, learn_key, play_key = jax.random.split(running.key, 3)
            play_keys = jax.random.split(play_key, self.learner.rollout)
            running, (played, rewards) = jax.lax.scan(self._step, running, play_keys)
            step = running.step + per_round
            learner, loss, updated = self.learner.learn(learn_key, running.learner, played, step)
            running = running._replace(key=key, step=step, learner=learner)
            return running, (rewards.mean(), loss, updated)

        rounds = self.learner.chunk // per_round
        running, (rewards, losses, updated) = jax.lax.scan(one_round, running, None, rounds)
        updates = updated.sum()
        means = self.learner.shares.mean((rewards.mean(), losses.sum() / updates))
        return running, (*means, updates)

    def _step(
        self, running: Running, key: Key[Array, ""]
    ) -> tuple[Running, tuple[Played, Float[Array, " E"]]]:
        """One step of every environment; where an episode ends, the next begins."""
        act_key, env_key, reset_key = jax.random.split(key, 3)
        observation = jax.vmap(self.env.observe)(running.worlds)
        action, aside = self.learner.act(act_key, running.learner, observation, running.step)
        env_keys = self._keys(env_key)
        worlds, reward, alive = jax.vmap(self.env.step)(env_keys, running.worlds, action)
        learned = jax.vmap(learning_reward(self.env))(reward)
        sound, marginal = jnp.isfinite(learned), None
        if self.learner.marginal and offers(self.env, "partial_reward") is not None:
            tells = partial(_added, self.env)
            marginal = jax.vmap(tells)(env_keys, running.worlds, action, reward)
            sound = sound & jnp.isfinite(marginal).all(axis=1)
        ages = running.ages + 1
        limit = offers(self.env, "time_limit")
        terminated = alive == 0
        truncated = (ages >= limit) & ~terminated if limit else jnp.zeros_like(terminated)
        transition = Transition(
            observation=observation,
            action=action,
            reward=learned,
            discount=alive * self.learner.discount,
            truncated=truncated,
            next_observation=jax.vmap(self.env.observe)(worlds),
        )
        ended = terminated | truncated

        def restarted() -> Any:
            fresh = jax.vmap(self.env.reset)(self._keys(reset_key))
            return jax.tree.map(partial(_where, ended), fresh, worlds)

        worlds = jax.lax.cond(ended.any(), restarted, lambda: worlds)
        running = running._replace(worlds=worlds, ages=jnp.where(ended, 0, ages))
        told = jnp.where(sound, reward, jnp.nan)  # of what is not learned from, nobody would hear
        return running, (Played(transition, aside, marginal), told)

    def _keys(self, key: Key[Array, ""]) -> Key[Array, " E"]:
        """One for each world that this device has."""
        learner = self.learner
        shares = learner.shares if learner.shares_worlds else ALONE
        return shares.keys(key, learner.num_envs)


def learning_reward(env: Any) -> Any:
    """The scale in which a world's reward is learned: its own, or the reward as it is."""
    return offers(env, "learning_reward") or (lambda reward: reward)


def _added(
    env: Any, key: Key[Array, ""], world: Any, action: Action, reward: Float[Array, ""]
) -> Float[Array, " K"]:
    """What each pick adds to a step's reward, as it is learned; the first adds what nothing does.

    The key is that of the step on purpose: the same chance. The last takes what is left, so that
    the sum is the step's reward whatever a world tells.
    """
    upto = env.partial_reward(key, world, action).at[-1].set(reward)
    return jnp.diff(jax.vmap(learning_reward(env))(upto), prepend=jnp.zeros(1))


def blank(observation: Observation, num_select: int) -> Transition:
    """A transition of the right shapes, in which nothing happens."""
    nothing = jnp.zeros(num_select, jnp.int32)
    return Transition(
        observation=observation,
        action=Action(nothing - 1, nothing),
        reward=jnp.zeros(()),
        discount=jnp.zeros(()),
        truncated=jnp.zeros((), bool),
        next_observation=observation,
    )


def _where(mask: Array, left: Array, right: Array) -> Array:
    return jnp.where(mask.reshape(mask.shape + (1,) * (left.ndim - 1)), left, right)
