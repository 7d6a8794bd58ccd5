"""Evaluation (paper §5): episodes on paired seeds, mean reward of a step ± 95 % interval.

Episode e of seed s starts in the same state and meets the same chance under every policy, as far as
the policies' own picks allow, so that differences between policies are differences of policies.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from selectmdp.envs.base import offers
from selectmdp.spec import SelectError, Spec, check_count, check_seed
from selectmdp.tasks import describe
from selectmdp.types import Action, Observation

Progress = Callable[[int, int], None]
ParametricActor = Callable[[Any, Key[Array, ""], Any, Observation], Action]

EPISODE_STEPS = 1000
"""Steps of an evaluated episode where the world has no time limit."""
PIECE = 25
"""Steps compiled into one call: progress can be shown and Ctrl-C heard between two."""


@dataclass(frozen=True)
class Evaluation:
    """The mean reward of an S-MDP step, over episodes."""

    mean_reward: float
    ci95: float
    """Half-width of the 95 % interval: Student's t over episodes; NaN for one episode."""
    episodes: int
    steps: int
    """Steps of an episode."""
    seed: int
    unit: str
    dynamics: str | None
    episode_rewards: tuple[float, ...]
    """The mean reward of a step in each episode."""

    def to_json(self) -> dict[str, Any]:
        """Plain data; a number that does not exist, as the interval of one episode, is null."""
        plain = asdict(self)
        plain["episode_rewards"] = [_or_null(reward) for reward in self.episode_rewards]
        plain["mean_reward"], plain["ci95"] = _or_null(self.mean_reward), _or_null(self.ci95)
        return plain


class _Episode(NamedTuple):
    key: Key[Array, ""]
    state: Any
    alive: Array
    """0 after a true terminal: nothing more is earned."""
    total: Float[Array, ""]
    steps: Float[Array, ""]


class Evaluator:
    """Episodes on one world under one way to act; compiled once, parameters are passed in."""

    def __init__(self, env: Any, act: ParametricActor) -> None:
        check_world(env)
        self.env = env
        self._start = jax.jit(jax.vmap(partial(_begin, env)))
        piece = jax.vmap(partial(_go_on, env, act), in_axes=(None, 0, None, None))
        self._piece = jax.jit(piece)

    def __call__(
        self,
        params: Any = None,
        *,
        episodes: int = 20,
        seed: int = 0,
        steps: int | None = None,
        progress: Progress = lambda done, total: None,
    ) -> Evaluation:
        """Mean reward of a step; `steps` are of an episode, as `episode_steps` has them."""
        check_episodes(episodes)
        length, seed = episode_steps(self.env, steps), check_seed(seed)
        keys = jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(jnp.arange(episodes))
        running = self._start(keys)
        for first in range(0, length, PIECE):
            running = jax.block_until_ready(self._piece(params, running, first, length))
            progress(min(first + PIECE, length), length)
        rewards = np.asarray(running.total) / np.asarray(running.steps)
        return summary(rewards, length, seed, describe(self.env))


def interval95(values: Float[np.ndarray, " n"]) -> float:
    """Half-width of the 95 % interval of a mean (Student's t); NaN for one value."""
    from scipy import stats

    if len(values) < 2:
        return float("nan")
    spread = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return float(stats.t.ppf(0.975, len(values) - 1) * spread)


def check_world(env: Any) -> None:
    """A JAX world, which has the sizes of a Select-MDP."""
    if not isinstance(getattr(env, "spec", None), Spec):
        raise SelectError(f"env={env!r}: give a world, such as selectmdp.make('circle')")


def check_episodes(episodes: int) -> None:
    """At least one."""
    if check_count("episodes", episodes) < 1:
        raise SelectError(f"episodes={episodes}: must be at least 1")


def episode_steps(env: Any, steps: int | None = None) -> int:
    """Steps of an evaluated episode: those asked for, the world's time limit, or 1000."""
    length = (offers(env, "time_limit") or EPISODE_STEPS) if steps is None else steps
    if check_count("steps", length) < 1:
        raise SelectError(f"steps={length}: must be at least 1")
    return int(length)


def _begin(env: Any, key: Key[Array, ""]) -> _Episode:
    reset_key, key = jax.random.split(key)
    return _Episode(key, env.reset(reset_key), jnp.ones(()), jnp.zeros(()), jnp.zeros(()))


def _go_on(
    env: Any, act: ParametricActor, params: Any, episode: _Episode, first: Array, limit: Array
) -> _Episode:
    """PIECE steps of one episode, or as many as are left."""

    def step(episode: _Episode, index: Array) -> tuple[_Episode, None]:
        key, act_key, env_key = jax.random.split(episode.key, 3)
        action = act(params, act_key, episode.state, env.observe(episode.state))
        state, reward, discount = env.step(env_key, episode.state, action)
        counts = jnp.where(index < limit, episode.alive, 0.0)
        earned = jnp.where(counts > 0, reward, 0.0)  # past its end a world may even give NaN
        following = _Episode(
            key=key,
            state=state,
            alive=episode.alive * (discount > 0),
            total=episode.total + earned,
            steps=episode.steps + counts,
        )
        return following, None

    episode, _ = jax.lax.scan(step, episode, first + jnp.arange(PIECE))
    return episode


def summary(
    rewards: Float[np.ndarray, " episodes"], steps: int, seed: int, world: Mapping[str, Any]
) -> Evaluation:
    """An evaluation of these mean rewards, one an episode, in a world as `describe` tells it."""
    return Evaluation(
        mean_reward=float(rewards.mean()),
        ci95=interval95(rewards),
        episodes=len(rewards),
        steps=steps,
        seed=seed,
        unit=world["unit"],
        dynamics=world["dynamics"],
        episode_rewards=tuple(float(value) for value in rewards),
    )


def _or_null(number: float) -> float | None:
    return number if math.isfinite(number) else None
