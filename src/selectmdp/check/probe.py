"""An environment in JAX being checked: its shapes, and an episode of random legal picks."""

from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from selectmdp.envs.base import SelectEnv, State, offers
from selectmdp.iterative import Selection, best_pair, unroll
from selectmdp.types import Action, Observation


class Form(NamedTuple):
    """Shapes and dtypes of what reset, observe and step give."""

    state: Any
    observation: Any
    outcome: Any


class Trail(NamedTuple):
    """Steps one after the other, stacked; a new episode begins where one ends."""

    key: Key[Array, " T"]
    state: State
    observation: Observation
    action: Action
    reward: Float[Array, " T"]
    discount: Float[Array, " T"]
    next_observation: Observation
    """Before the reset, where the episode ended."""


class JaxProbe:
    """One environment, and what the checks share about it; computed when first asked for."""

    def __init__(self, env: SelectEnv, seed: int, steps: int) -> None:
        self.env: Any = env
        self.seed = seed
        self.steps = steps
        self.key = jax.random.key(seed)

    @property
    def some_action(self) -> Action:
        """The first K items, each with the first command."""
        num_select = self.env.spec.num_select
        return Action(jnp.arange(num_select, dtype=jnp.int32), jnp.zeros(num_select, jnp.int32))

    @cached_property
    def form(self) -> Form:
        state = jax.eval_shape(self.env.reset, self.key)
        return Form(
            state=state,
            observation=jax.eval_shape(self.env.observe, state),
            outcome=jax.eval_shape(self.env.step, self.key, state, self.some_action),
        )

    @cached_property
    def trail(self) -> Trail:
        return self.play(self.seed)

    def play(self, seed: int) -> Trail:
        """`steps` steps: the world's chance from `seed`, the picks' always from the probe's."""
        return Trail(*self.player(*self.chance(seed)))

    def chance(self, seed: int) -> tuple[Array, Array, Array]:
        """The keys of resets and steps, and what decides between legal pairs."""
        spec = self.env.spec
        reset_keys, step_keys = jax.random.split(jax.random.key(seed), (2, self.steps))
        rows = spec.num_items + spec.allow_pass
        shape = (self.steps, spec.num_select, rows, spec.num_commands)
        noise = np.random.default_rng(self.seed).random(shape, np.float32)
        return reset_keys, step_keys, jnp.asarray(noise)

    @cached_property
    def player(self) -> Any:
        """What plays, compiled once."""
        return self.fresh_player()

    def fresh_player(self) -> Any:
        """What plays, traced anew: what the environment keeps between traces would show."""
        return jax.jit(lambda *chance: self._steps(*chance))

    def _steps(self, reset_keys: Array, step_keys: Array, noise: Array) -> Trail:
        env = self.env
        limit = offers(env, "time_limit") or self.steps + 1

        def one(carry: tuple[State, Array], given: Any) -> tuple[tuple[State, Array], Trail]:
            (state, clock), (step_key, noise, fresh) = carry, given
            observation = env.observe(state)
            action = self._picks(observation, noise)
            following, reward, discount = env.step(step_key, state, action)
            seen = env.observe(following)
            row = Trail(step_key, state, observation, action, reward, discount, seen)
            over = (discount == 0) | (clock + 1 >= limit)
            again = jax.lax.cond(over, lambda: fresh, lambda: following)
            return (again, jnp.where(over, 0, clock + 1)), row

        fresh = jax.lax.map(env.reset, reset_keys)
        start = (jax.tree.map(lambda leaf: leaf[0], fresh), jnp.zeros((), jnp.int32))
        return jax.lax.scan(one, start, (step_keys, noise, fresh))[1]

    def _picks(self, observation: Observation, noise: Float[Array, "K rows C"]) -> Action:
        def chooser(key: Any, observation: Any, selection: Selection, mask: Any) -> Any:
            return *best_pair(noise[selection.phase], mask), None

        rules = offers(self.env, "legal_after"), self.env.spec.allow_pass
        # `unroll` splits a key for its chooser; this one has its noise already.
        return unroll(self.key, observation, chooser, noise.shape[0], *rules)[0]
