"""Moving pictures of a policy at work, for any world that offers `draw`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from selectmdp.raster import save_gif, to_rgb
from selectmdp.references import Actor
from selectmdp.scene import Scene
from selectmdp.spec import SelectError


def scenes(env: Any, actor: Actor, *, steps: int, seed: int = 0) -> Iterator[tuple[Scene, float]]:
    """Each step's scene with the picks about to be made, and the reward that they earn."""
    if not hasattr(env, "draw"):
        raise SelectError(f"{type(env).__name__} offers no draw(state, action): nothing to show")
    act = jax.jit(lambda key, state: actor(key, state, env.observe(state)))
    step = jax.jit(env.step)
    reset_key, key = jax.random.split(jax.random.key(seed))
    state = jax.jit(env.reset)(reset_key)
    for _ in range(steps):
        key, act_key, env_key = jax.random.split(key, 3)
        action = act(act_key, state)
        following, reward, _ = step(env_key, state, action)
        yield env.draw(state, action), float(reward)
        state = following


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
