"""A JAX Select-MDP as a Gymnasium environment: one step is one choice of K of N (paper §2.1).

`begin` and `advance` say for one example what a reset and a step are; the vector environment
batches the same two functions.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from selectmdp import tasks
from selectmdp.envs.base import SelectEnv, State, offers
from selectmdp.interop.spaces import SelectSpace, check_action, observation_space
from selectmdp.spec import SelectError, check_count
from selectmdp.types import Action, Observation

Arrays = dict[str, Any]
"""NumPy arrays by name."""

Built = TypeVar("Built")


class Running(NamedTuple):
    """An episode under way."""

    state: State
    key: Key[Array, ""]
    """All chance of the episode's steps comes from it and `steps`."""
    steps: Int[Array, ""]


class Outcome(NamedTuple):
    """What a step gives back; the observation is from before any reset."""

    observation: Observation
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    """The discount was 0: a true terminal."""
    truncated: Bool[Array, ""]
    """The time limit was reached and it was no terminal."""


class SelectGymEnv(gymnasium.Env[Arrays, Arrays]):
    """Any `SelectEnv` with Gymnasium's interface.

    Observations are NumPy dicts (`observation_space` says of what); `action_space.legal` is kept
    current. A bad action raises `SelectError` and changes nothing. The environment does not reset
    itself: after an episode's end a step raises until `reset` is called. The same seed gives the
    same episode, bit for bit.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, env: SelectEnv, render_mode: str | None = None) -> None:
        self.env = env
        self.metadata = metadata_of(env, render_mode, type(self).metadata)
        self.render_mode = render_mode
        self.observation_space: spaces.Dict = observation_space(env.spec)
        self.action_space: SelectSpace = SelectSpace(env.spec)
        self._compiled = compiled(env)
        self._running: Running | None = None
        self._made: tuple[State, Action] | None = None
        self._over = False

    @property
    def state(self) -> State:
        """The state of the JAX environment."""
        return self._under_way("state").state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Arrays, dict[str, Any]]:
        """A new episode; with a seed, always the same one."""
        super().reset(seed=None if seed is None else check_count("seed", seed))
        self._made = None
        self._running, observation = self._compiled.reset(draw_words(self.np_random))
        self._over = False
        return self._show(observation), {}

    def step(self, action: Any) -> tuple[Arrays, float, bool, bool, dict[str, Any]]:
        """One S-MDP step: observation, reward, terminated, truncated, info."""
        running = self._under_way("step")
        if self._over:
            raise SelectError("step after the end of the episode: call reset() first")
        space = self.action_space
        picks = check_action(self.env.spec, space.legal, action, space.legal_after)
        self._made = running.state, picks
        self._running, outcome = self._compiled.step(running, picks)
        terminated, truncated = bool(outcome.terminated), bool(outcome.truncated)
        self._over = terminated or truncated
        return self._show(outcome.observation), float(outcome.reward), terminated, truncated, {}

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Pixels [H, W, 3], if `render_mode` is `rgb_array`: the last step's state and its picks.

        After a reset it is the first state, without picks.
        """
        if self.render_mode is None:
            return None
        return frame(self.env, *(self._made or (self._under_way("render").state, None)))

    def _under_way(self, what: str) -> Running:
        if self._running is None:
            raise SelectError(f"{what} before the first reset: call reset() first")
        return self._running

    def _show(self, observation: Observation) -> Arrays:
        self.action_space.legal = legal_pairs(observation.legal, observation.present)
        if offers(self.env, "legal_after") is not None:
            self.action_space.legal_after = partial(self._compiled.legal_after, observation)
        return to_arrays(observation, self.observation_space)


def make(
    world: str, render_mode: str | None = None, **options: Any
) -> gymnasium.Env[Arrays, Arrays]:
    """What `gymnasium.make` calls: the world of this name with these options."""
    return SelectGymEnv(tasks.make(world, **options), render_mode)


make.metadata = SelectGymEnv.metadata  # type: ignore[attr-defined]  # gymnasium.make looks here


def begin(env: SelectEnv, words: UInt32[Array, " 2"]) -> tuple[Running, Observation]:
    """A new episode from 64 random bits."""
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    reset_key, steps_key = jax.random.split(key)
    state = env.reset(reset_key)
    return Running(state, steps_key, jnp.zeros((), jnp.int32)), env.observe(state)


def advance(env: SelectEnv, running: Running, action: Action) -> tuple[Running, Outcome]:
    """One S-MDP step; the time limit truncates and never terminates."""
    step_key = jax.random.fold_in(running.key, running.steps)
    state, reward, discount = env.step(step_key, running.state, action)
    steps = running.steps + 1
    limit = offers(env, "time_limit")
    terminated = discount == 0
    truncated = ~terminated & (steps >= limit) if limit is not None else jnp.zeros((), bool)
    outcome = Outcome(env.observe(state), reward, terminated, truncated)
    return Running(state, running.key, steps), outcome


class Compiled(NamedTuple):
    """The environment's functions, compiled when first called."""

    reset: Any
    step: Any
    legal_after: Any


def once_for_each(build: Callable[[Any], Built]) -> Callable[[Any], Built]:
    """`build(env)`, remembered for equal environments if they can be hashed."""
    remembered = lru_cache(maxsize=64)(build)

    def built(env: Any) -> Built:
        try:
            hash(env)
        except TypeError:
            return build(env)
        return remembered(env)

    return built


@once_for_each
def compiled(env: SelectEnv) -> Compiled:
    """The compiled functions of an environment."""
    legal_after = offers(env, "legal_after")
    return Compiled(
        reset=jax.jit(partial(begin, env)),
        step=jax.jit(partial(advance, env)),
        legal_after=None if legal_after is None else jax.jit(legal_after),
    )


def draw_words(rng: np.random.Generator) -> npt.NDArray[np.uint32]:
    """64 random bits, for `begin`."""
    return rng.integers(2**32, size=2, dtype=np.uint32)


def legal_pairs(legal: Any, present: Any) -> npt.NDArray[np.bool_]:
    """The pairs [… N, C] that are legal and whose item is present."""
    pairs: npt.NDArray[np.bool_] = np.asarray(legal, bool) & np.asarray(present, bool)[..., None]
    return pairs


def to_arrays(observation: Observation, space: spaces.Dict) -> Arrays:
    """A copy of the observation as the space has it."""
    return {
        name: np.array(getattr(observation, name), dtype=part.dtype)
        for name, part in space.spaces.items()
    }


def metadata_of(env: SelectEnv, render_mode: str | None, full: dict[str, Any]) -> dict[str, Any]:
    """The metadata without the render modes that the environment cannot offer."""
    modes = full["render_modes"] if offers(env, "draw") is not None else []
    if render_mode is not None and render_mode not in modes:
        raise SelectError(f"render_mode={render_mode!r}: must be one of {[None, *modes]}")
    return {**full, "render_modes": list(modes)}


def frame(env: SelectEnv, state: State, picks: Action | None) -> npt.NDArray[np.uint8]:
    """The picture [H, W, 3] of a state with the picks about to be made."""
    from selectmdp.raster import to_rgb  # Pillow, which only those who look need

    return to_rgb(offers(env, "draw")(state, picks))
