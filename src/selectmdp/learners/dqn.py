"""The paper's learner (§5, appendix C): DQN over the phases of replayed steps, as a preset.

One update an environment step: a batch of S-MDP steps, all K phases of each in one compiled call,
the sum over phases of the batch's mean squared error, one Adam step for all parameter sets.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import replay, sharing, td
from selectmdp.agent import Agent
from selectmdp.devices import ALONE, Shares
from selectmdp.learners.base import Played, check_shares
from selectmdp.nets.base import Params
from selectmdp.settings import PaperSettings
from selectmdp.types import Action, Observation, Transition


class State(NamedTuple):
    """All that learning goes on from."""

    params: Params
    target: Params
    optimiser: optax.OptState
    replay: replay.Rows
    """One ring for each environment: [E, …]."""
    phase_map: Int[Array, " K"]


@dataclass(frozen=True)
class DQN:
    """The paper's DQN for one agent and a number of steps."""

    agent: Agent
    settings: PaperSettings
    total_steps: int
    """T, over all environments; exploration and splits are shares of it."""
    shares: Shares = ALONE

    rollout = 1
    marginal = False
    shares_worlds = False

    @property
    def num_envs(self) -> int:
        return self.settings.num_envs

    @property
    def chunk(self) -> int:
        return self.settings.chunk

    @property
    def discount(self) -> float:
        return self.settings.discount

    @property
    def warmup(self) -> int:
        """Steps of random acting before the first update."""
        return max(min(self.settings.replay_capacity, self.total_steps // 10), 1)

    def shared(self, shares: Shares) -> "DQN":
        """Each device has its part of every batch; all play and remember the same steps."""
        check_shares("batch_size", self.settings.batch_size, shares)
        return replace(self, shares=shares)

    def init(self, key: Key[Array, ""], transition: Transition) -> State:
        """Fresh parameters and an empty replay."""
        params = self.agent.init(key)
        rows = -(-self.settings.replay_capacity // self.num_envs) + 1
        phase_map = sharing.as_array(self.phase_map(0))
        return State(
            params=params,
            target=jax.tree.map(jnp.copy, params),
            optimiser=self._adam().init(params),
            replay=jax.vmap(lambda one: replay.init(rows, one))(transition),
            phase_map=phase_map,
        )

    def epsilon(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """1 while the replay fills, then falling geometrically to its end."""
        rest = self.settings.exploration_share * (self.total_steps - self.warmup)
        share = jnp.clip((step - self.warmup) / max(rest, 1.0), 0.0, 1.0)
        return jnp.power(self.settings.epsilon_end, share)

    def act(
        self,
        key: Key[Array, ""],
        state: State,
        observation: Observation,
        step: Int[Array, ""],
    ) -> tuple[Action, Any]:
        """ε-greedy picks in each environment."""

        def one(key: Key[Array, ""], observation: Observation) -> Action:
            return self.agent.act(
                key, state.params, state.phase_map, observation, self.epsilon(step)
            ).action

        return jax.vmap(one)(jax.random.split(key, self.num_envs), observation), ()

    def learn(
        self, key: Key[Array, ""], state: State, played: Played, step: Int[Array, ""]
    ) -> tuple[State, Float[Array, ""], Bool[Array, ""]]:
        """Store the steps; once warm, as many updates as there were steps."""
        newest = jax.tree.map(lambda leaf: leaf[0], played.steps)
        add = partial(replay.add, allow_pass=self.agent.spec.allow_pass)
        state = state._replace(replay=jax.vmap(add)(state.replay, newest))
        warm = (step >= self.warmup) & (state.replay.filled.min() >= 2)

        def updates() -> tuple[Params, optax.OptState, Float[Array, ""]]:
            def update(carry: Any, key: Key[Array, ""]) -> tuple[Any, Float[Array, ""]]:
                params, optimiser, loss = self.update(*carry, state=state, key=key)
                return (params, optimiser), loss

            keys = jax.random.split(key, self.num_envs)
            (params, optimiser), losses = jax.lax.scan(
                update, (state.params, state.optimiser), keys
            )
            return params, optimiser, losses.mean()

        def nothing() -> tuple[Params, optax.OptState, Float[Array, ""]]:
            return state.params, state.optimiser, jnp.zeros(())

        params, optimiser, loss = jax.lax.cond(warm, updates, nothing)
        return state._replace(params=params, optimiser=optimiser), loss, warm

    def update(
        self, params: Params, optimiser: optax.OptState, state: State, key: Key[Array, ""]
    ) -> tuple[Params, optax.OptState, Float[Array, ""]]:
        """One Adam step on one batch."""
        batch = self.sample(key, state.replay)
        error, gradient = self.shares.mean(self._gradient(params, state, batch))
        change, optimiser = self._adam().update(gradient, optimiser)
        return optax.apply_updates(params, change), optimiser, error

    def loss(self, params: Params, state: State, batch: Transition) -> Float[Array, ""]:
        """The sum over phases of the batch's mean squared error."""
        target = self.targets(state, batch)
        values = self.agent.picked_values(params, state.phase_map, batch.observation, batch.action)
        learns = self.agent.chose(batch.action).T & jnp.isfinite(target.T)  # [K, B]
        errors = jnp.where(learns, target.T - values, 0.0)
        return jnp.square(errors).mean(axis=1).sum()

    def sample(self, key: Key[Array, ""], rings: replay.Rows) -> Transition:
        """This device's part of a batch of stored steps, from all environments alike."""
        which_key, row_key = jax.random.split(key)
        size, spec = self.settings.batch_size, self.agent.spec
        ring = jax.random.randint(which_key, (size,), 0, self.num_envs)
        pairs = (spec.num_items, spec.num_commands)
        return jax.vmap(lambda key, ring: replay.sample(key, rings, ring, pairs))(
            self.shares.keys(row_key, size), self.shares.part(ring)
        )

    def targets(self, state: State, batch: Transition) -> Float[Array, "B K"]:
        """What the target network says the picks of a batch are worth."""
        following = self.agent.following(state.target, state.phase_map, batch)
        rule, allow_pass = self.agent.algorithm.rule, self.agent.spec.allow_pass
        return jax.vmap(partial(td.targets, rule, allow_pass=allow_pass))(
            batch.action.items, batch.reward, batch.discount, following
        )

    def between(self, state: State, step: int) -> State:
        """Split the parameter sets that are due; copy the target network when it is."""
        old, new = tuple(state.phase_map.tolist()), self.phase_map(step)
        if old != new:
            state = state._replace(
                params=sharing.split(state.params, old),
                target=sharing.split(state.target, old),
                optimiser=sharing.split(state.optimiser, old),
                phase_map=sharing.as_array(new),
            )
        if step % self.settings.target_period == 0:
            state = state._replace(target=jax.tree.map(jnp.copy, state.params))
        return state

    def cut(self, state: State, observation: Observation) -> State:
        """What was seen last has a row of its own."""
        return state._replace(replay=_cut(state.replay, observation))

    def policy(self, state: State) -> Params:
        """The parameters as they are."""
        return state.params

    def phase_map(self, step: int) -> sharing.PhaseMap:
        """By the algorithm's sharing."""
        kind, num_select = self.agent.algorithm.sharing, self.agent.spec.num_select
        return sharing.map_at(kind, num_select, step, self.total_steps)

    def _gradient(
        self, params: Params, state: State, batch: Transition
    ) -> tuple[Float[Array, ""], Params]:
        """Loss and gradient of a batch, in as few slices as stay in cache one by one."""
        size = batch.reward.shape[0]
        fits = self.agent.states_at_once() or size
        slices = next(n for n in range(1, size + 1) if size % n == 0 and size // n <= fits)
        if slices == 1:
            return jax.value_and_grad(self.loss)(params, state, batch)

        def add(total: Any, part: Transition) -> tuple[Any, None]:
            more = jax.value_and_grad(self.loss)(params, state, part)
            return jax.tree.map(lambda left, right: left + right / slices, total, more), None

        parts = jax.tree.map(
            lambda leaf: leaf.reshape(slices, size // slices, *leaf.shape[1:]), batch
        )
        nothing = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
        return jax.lax.scan(add, nothing, parts)[0]

    def _adam(self) -> optax.GradientTransformation:
        return optax.adam(self.settings.learning_rate, eps=self.settings.adam_epsilon)


_cut = jax.jit(jax.vmap(replay.cut))  # once: a new one at every checkpoint would compile again
