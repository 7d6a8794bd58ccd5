"""Many Select-MDPs at once: one compiled, batched step for all (`gymnasium.make_vec`).

Autoreset mode is SAME_STEP: when a sub-environment's episode ends, that same step returns the first
observation of its next episode, and `info["final_obs"][i]` holds the last one of the ended episode
(`info["_final_obs"]` says where), as in Gymnasium's `SyncVectorEnv`. Rewards, terminations and
truncations are those of the ended episode. Sub-environment i under seed s is the single environment
under seed s + i, up to rounding: it is another compiled program.
"""

from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Array, Bool

from selectmdp import iterative, tasks
from selectmdp.envs.base import SelectEnv, State, offers
from selectmdp.interop.gymnasium import (
    Arrays,
    Running,
    SelectGymEnv,
    advance,
    begin,
    draw_words,
    frame,
    legal_pairs,
    metadata_of,
    once_for_each,
    to_arrays,
)
from selectmdp.interop.spaces import (
    SelectSpace,
    check_numbers,
    observation_space,
)
from selectmdp.spec import SelectError, check_count
from selectmdp.types import Action, Observation


class SelectVectorEnv(VectorEnv[Arrays, Arrays, npt.NDArray[Any]]):
    """`num_envs` copies of a `SelectEnv`, stepped together; autoreset mode SAME_STEP.

    A bad action in any row raises `SelectError`, names the row, and changes nothing in any.
    """

    metadata = {**SelectGymEnv.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    observation_space: spaces.Dict
    single_observation_space: spaces.Dict
    action_space: SelectSpace
    single_action_space: SelectSpace

    def __init__(self, env: SelectEnv, num_envs: int = 1, render_mode: str | None = None) -> None:
        if check_count("num_envs", num_envs) < 1:
            raise SelectError(f"num_envs={num_envs}: must be at least 1")
        self.env, self.num_envs, self.render_mode = env, int(num_envs), render_mode
        self.metadata = metadata_of(env, render_mode, type(self).metadata)
        self.single_observation_space = observation_space(env.spec)
        batched = batch_space(self.single_observation_space, self.num_envs)
        self.observation_space = cast(spaces.Dict, batched)
        self.single_action_space = SelectSpace(env.spec)
        self.action_space = SelectSpace(env.spec, num_envs=self.num_envs)
        self._compiled = compiled(env)
        self._rngs: list[np.random.Generator] = []
        self._next_words = np.zeros((self.num_envs, 2), np.uint32)
        self._running: Running | None = None
        self._made: tuple[State, Action] | None = None
        self._observation: Observation

    @property
    def state(self) -> State:
        """The states of the JAX environments, batched."""
        return self._under_way("state").state

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Arrays, dict[str, Any]]:
        """New episodes everywhere; a seed s gives sub-environment i the seed s + i."""
        if options and "reset_mask" in options:
            raise SelectError("reset_mask is not served: rows begin again when their episode ends")
        seeds = self._seeds(seed)
        fresh = [not self._rngs or own is not None for own in seeds]
        rngs = [
            seeding.np_random(own)[0] if fresh[row] else self._rngs[row]
            for row, own in enumerate(seeds)
        ]
        super().reset(seed=seed if isinstance(seed, int) else None)
        self._rngs, self._made = rngs, None
        for row in range(self.num_envs):
            if fresh[row]:
                self._next_words[row] = draw_words(rngs[row])
        self._running, observation = self._compiled.reset(self._take_words(range(self.num_envs)))
        return self._show(observation), {}

    def step(
        self, actions: Any
    ) -> tuple[Arrays, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """One S-MDP step everywhere; where an episode ends, the next one begins."""
        running = self._under_way("step")
        picks = check_numbers(self.env.spec, actions, self.num_envs)
        stepped: Stepped = self._compiled.step(
            running, self._observation, picks, self._next_words.copy()
        )
        if not np.asarray(stepped.obeyed).all():
            self.action_space.check(picks)  # raises, and names the row
        self._made = running.state, picks
        self._running = stepped.running
        info: dict[str, Any] = {}
        terminated, truncated = np.array(stepped.terminated), np.array(stepped.truncated)
        ended = np.flatnonzero(terminated | truncated)
        if len(ended):
            self._take_words(ended)
            last = to_arrays(stepped.final_observation, self.observation_space)
            for row in ended:
                final = {name: rows[row].copy() for name, rows in last.items()}
                info = self._add_info(info, {"final_obs": final, "final_info": {}}, int(row))
        rewards = np.array(stepped.reward, np.float64)
        return self._show(stepped.observation), rewards, terminated, truncated, info

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """A picture of each sub-environment, if `render_mode` is `rgb_array`: as the single's."""
        if self.render_mode is None:
            return None
        shown = jax.device_get(self._made or (self._under_way("render").state, None))
        each = (jax.tree.map(lambda rows, i=i: rows[i], shown) for i in range(self.num_envs))
        return tuple(frame(self.env, state, picks) for state, picks in each)

    def _seeds(self, seed: int | list[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if not isinstance(seed, list | tuple):
            return [check_count("seed", seed) + row for row in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise SelectError(f"seed has {len(seed)} entries: give one for each of {self.num_envs}")
        return [own if own is None else check_count("seed", own) for own in seed]

    def _take_words(self, rows: Any) -> npt.NDArray[np.uint32]:
        """The bits for the next episodes, and new ones drawn in these rows for those after."""
        words = self._next_words.copy()
        for row in rows:
            self._next_words[row] = draw_words(self._rngs[row])
        return words

    def _under_way(self, what: str) -> Running:
        if self._running is None:
            raise SelectError(f"{what} before the first reset: call reset() first")
        return self._running

    def _show(self, observation: Observation) -> Arrays:
        self._observation = observation
        self.action_space.legal = legal_pairs(observation.legal, observation.present)
        if self._compiled.legal_after is not None:
            self.action_space.legal_after = partial(self._compiled.legal_after, observation)
        return to_arrays(observation, self.observation_space)


def make(
    world: str, num_envs: int = 1, render_mode: str | None = None, **options: Any
) -> SelectVectorEnv:
    """What `gymnasium.make_vec` calls: copies of the world of this name with these options."""
    return SelectVectorEnv(tasks.make(world, **options), num_envs, render_mode)


class Stepped(NamedTuple):
    """A batched step; `observation` is after the resets and `final_observation` before."""

    running: Running
    observation: Observation
    final_observation: Observation
    reward: Array
    terminated: Array
    truncated: Array
    obeyed: Array


def obeys(env: SelectEnv, observation: Observation, action: Action) -> Bool[Array, ""]:
    """Whether each pick was legal when made, and −1 only where nothing was, or to pass."""
    may_pass = env.spec.allow_pass

    def open_pairs(selection: iterative.Selection) -> Bool[Array, "rows C"]:
        mask = iterative.legal(observation, selection, offers(env, "legal_after"))
        return iterative.with_pass(mask, selection) if may_pass else mask

    before = jax.tree.map(lambda rows: rows[:-1], iterative.selections(action))
    pairs = jax.vmap(open_pairs)(before)
    picked = pairs[jnp.arange(env.spec.num_select), action.items, action.commands]
    ended = ~pairs.any(axis=(1, 2)) | (pairs[:, -1, 0] if may_pass else False)
    return jnp.where(action.items >= 0, picked, ended).all()


class Compiled(NamedTuple):
    """The environment's functions, batched and compiled when first called."""

    reset: Any
    step: Any
    legal_after: Any


@once_for_each
def compiled(env: SelectEnv) -> Compiled:
    """The batched, compiled functions of an environment."""
    reset = jax.vmap(partial(begin, env))
    legal_after = offers(env, "legal_after")

    def step(running: Running, observation: Observation, action: Action, words: Array) -> Stepped:
        obeyed = jax.vmap(partial(obeys, env))(observation, action)
        after, outcome = jax.vmap(partial(advance, env))(running, action)
        ended = outcome.terminated | outcome.truncated

        def where_ended(fresh: Any, going: Any) -> Any:
            pick = jax.vmap(lambda end, new, old: jnp.where(end, new, old))
            return jax.tree.map(partial(pick, ended), fresh, going)

        def restart() -> tuple[Running, Observation]:
            running, observation = reset(words)
            return where_ended(running, after), where_ended(observation, outcome.observation)

        running, shown = jax.lax.cond(ended.any(), restart, lambda: (after, outcome.observation))
        final, reward, terminated, truncated = outcome
        return Stepped(running, shown, final, reward, terminated, truncated, obeyed)

    return Compiled(
        reset=jax.jit(reset),
        step=jax.jit(step),
        legal_after=None if legal_after is None else jax.jit(jax.vmap(legal_after)),
    )
