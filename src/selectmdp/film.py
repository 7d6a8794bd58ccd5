"""Moving pictures of a policy at work, for any world that offers `draw`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Key

from selectmdp.envs.base import offers
from selectmdp.raster import save_gif, to_rgb
from selectmdp.references import Actor
from selectmdp.scene import Scene
from selectmdp.spec import SelectError, check_seed
from selectmdp.types import Action, Observation

TellingActor = Callable[[Key[Array, ""], Any, Observation], tuple[Action, Any]]
"""A policy that tells more than its picks, such as the values that it took them from."""


class Moment(NamedTuple):
    """One step: where it begins, what is picked there, what that earns."""

    state: Any
    action: Action
    told: Any
    """What the policy told beside its picks."""
    reward: float


def moments(env: Any, actor: TellingActor, *, steps: int, seed: int = 0) -> Iterator[Moment]:
    """The first of the episodes that `evaluate` plays on this seed, to a true terminal at most."""

    @jax.jit
    def advance(key: Key[Array, ""], state: Any) -> tuple[Any, ...]:
        key, act_key, env_key = jax.random.split(key, 3)
        action, told = actor(act_key, state, env.observe(state))
        following, reward, discount = env.step(env_key, state, action)
        return key, following, action, told, reward, discount

    reset_key, key = jax.random.split(jax.random.fold_in(jax.random.key(check_seed(seed)), 0))
    state = jax.jit(env.reset)(reset_key)
    for _ in range(steps):
        key, following, action, told, reward, discount = advance(key, state)
        yield Moment(state, action, told, float(reward))
        if discount == 0:
            return
        state = following


def scenes(env: Any, actor: Actor, *, steps: int, seed: int = 0) -> Iterator[tuple[Scene, float]]:
    """Each step's scene with the picks about to be made, and the reward that they earn."""
    check_drawn(env, type(env).__name__)
    for moment in moments(env, lambda *seen: (actor(*seen), None), steps=steps, seed=seed):
        yield env.draw(moment.state, moment.action), moment.reward


def check_drawn(env: Any, name: str) -> None:
    """A world of this name that can be seen."""
    if offers(env, "draw") is None:
        raise SelectError(
            f"{name} offers no draw(state, action), so there is nothing to see: add that method to "
            "a world in JAX, giving a selectmdp.scene.Scene, and train in it"
        )


def save_film(
    shown: Sequence[tuple[Scene, float]],
    path: Path,
    *,
    title: str,
    size: int = 360,
    fps: float = 4.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Write what `scenes` gave as an animation; each frame tells what its picks earn."""
    frames = []
    total = 0.0
    for number, (scene, reward) in enumerate(shown, start=1):
        total += reward
        caption = f"{title} · step {number} · {reward:+.3f} · so far {total:.2f}"
        frames.append(to_rgb(replace(scene, caption=caption), size))
        progress(number, len(shown))
    save_gif(frames, path, fps)
