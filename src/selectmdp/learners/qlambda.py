"""The fast learner: Q(λ) on the picks of many environments at once, without replay or target copy.

A round plays T steps in E environments, makes one λ-return for each pick, and learns them in a few
epochs of small batches. A return runs from pick to pick and from step to step, so a step's reward
reaches its first pick at once. What is learned is the value of picking greedily: a return is cut
where a later pick explored, and goes on there with what the network promised.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import sharing, td
from selectmdp.agent import Agent
from selectmdp.devices import ALONE, Shares
from selectmdp.iterative import is_last
from selectmdp.learners.base import Played, check_shares
from selectmdp.nets.base import Params
from selectmdp.settings import FastSettings
from selectmdp.types import Action, Observation, Transition

ROWS_AT_ONCE = 3200
"""Items, over environments, that are acted on together."""


class State(NamedTuple):
    """All that learning goes on from."""

    params: Params
    average: Params
    """A moving average of the parameters: the policy."""
    optimiser: optax.OptState
    phase_map: Int[Array, " K"]


class Aside(NamedTuple):
    """What acting knew of each pick: as `agent.Acted` has it."""

    worth: Float[Array, "*stack K"]
    greedy: Bool[Array, "*stack K"]


class Lesson(NamedTuple):
    """Steps, and what their picks are to learn."""

    observation: Observation
    action: Action
    target: Float[Array, "*stack K"]


@dataclass(frozen=True)
class QLambda:
    """Parallel Q(λ) for one agent and a number of steps."""

    agent: Agent
    settings: FastSettings
    total_steps: int
    """T, over all environments; exploration, learning rate and splits are shares of it."""
    shares: Shares = ALONE

    shares_worlds = True

    @property
    def num_envs(self) -> int:
        return self.settings.num_envs

    @property
    def rollout(self) -> int:
        return self.settings.rollout

    @property
    def chunk(self) -> int:
        return self.settings.chunk

    @property
    def discount(self) -> float:
        return self.settings.discount

    @property
    def marginal(self) -> bool:
        return self.settings.marginal and self.agent.algorithm.rule.chains

    def shared(self, shares: Shares) -> "QLambda":
        """Each device has its part of the environments, and of every batch."""
        check_shares("num_envs", self.num_envs, shares)
        check_shares("minibatch", self.settings.minibatch, shares)
        return replace(self, shares=shares)

    def init(self, key: Key[Array, ""], transition: Transition) -> State:
        """Fresh parameters."""
        del transition
        params = self.agent.init(key)
        return State(
            params=params,
            average=jax.tree.map(jnp.copy, params),
            optimiser=self._optimiser().init(params),
            phase_map=sharing.as_array(self.phase_map(0)),
        )

    def epsilon(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Falling linearly from 1 to its end, then constant."""
        share = jnp.clip(step / (self.settings.exploration_share * self.total_steps), 0.0, 1.0)
        return 1.0 + share * (self.settings.epsilon_end - 1.0)

    def act(
        self,
        key: Key[Array, ""],
        state: State,
        observation: Observation,
        step: Int[Array, ""],
    ) -> tuple[Action, Aside]:
        """ε-greedy picks in each environment, and what they promised."""

        def one(key: Key[Array, ""], observation: Observation) -> tuple[Action, Aside]:
            acted = self.agent.act(
                key, state.params, state.phase_map, observation, self.epsilon(step)
            )
            return acted.action, Aside(acted.worth, acted.greedy)

        keys = self.shares.keys(key, self.num_envs)
        return in_groups(one, observation.present.shape[1], keys, observation)

    def learn(
        self, key: Key[Array, ""], state: State, played: Played, step: Int[Array, ""]
    ) -> tuple[State, Float[Array, ""], Bool[Array, ""]]:
        """A few epochs over the steps, each in small batches in a random order."""
        steps = played.steps
        lesson = Lesson(steps.observation, steps.action, self.targets(state, played))
        count = steps.reward.size
        lesson = jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), lesson)

        def epoch(carry: Any, key: Key[Array, ""]) -> tuple[Any, Float[Array, ""]]:
            order = jax.random.permutation(self.shares.own(key), count)
            rows = order.reshape(-1, self.shares.of(self.settings.minibatch))
            return jax.lax.scan(update, carry, rows)

        def update(carry: Any, rows: Int[Array, " B"]) -> tuple[Any, Float[Array, ""]]:
            params, optimiser = carry
            batch = jax.tree.map(lambda leaf: leaf[rows], lesson)
            loss, gradient = jax.value_and_grad(self.loss)(params, state.phase_map, batch)
            gradient = self.shares.mean(gradient)
            change, optimiser = self._optimiser().update(gradient, optimiser, params)
            return (optax.apply_updates(params, change), optimiser), loss

        keys = jax.random.split(key, self.settings.epochs)
        (params, optimiser), losses = jax.lax.scan(epoch, (state.params, state.optimiser), keys)
        # Of the first rounds a plain mean, so that the parameters before them do not linger.
        share = jnp.maximum(self.settings.averaging, self.num_envs * self.rollout / step)
        average = jax.tree.map(lambda old, new: old + share * (new - old), state.average, params)
        state = state._replace(params=params, average=average, optimiser=optimiser)
        return state, losses.mean(), jnp.ones((), bool)

    def loss(self, params: Params, phase_map: Int[Array, " K"], batch: Lesson) -> Float[Array, ""]:
        """The sum over phases of the batch's mean squared error."""
        values = self.agent.picked_values(params, phase_map, batch.observation, batch.action)
        learns = (self.agent.chose(batch.action) & jnp.isfinite(batch.target)).T  # [K, B]
        errors = jnp.where(learns, batch.target.T - values, 0.0)
        return jnp.square(errors).mean(axis=1).sum()

    def targets(self, state: State, played: Played) -> Float[Array, "T E K"]:
        """What each pick is to learn."""
        steps, rule = played.steps, self.agent.algorithm.rule
        if not rule.chains:  # each pick has a future of its own, which no later pick's return tells
            return jax.lax.map(lambda row: self._one_step(state, row), steps)
        at_last = partial(at_last_pick, allow_pass=self.agent.spec.allow_pass)
        rewards = jax.vmap(jax.vmap(at_last))(steps.action.items, steps.reward)
        if played.marginal is not None:
            rewards = played.marginal
        discount = steps.discount if rule.looks_ahead else jnp.zeros_like(steps.discount)
        return lambda_returns(
            taken=jax.vmap(self.agent.chose)(steps.action),
            rewards=rewards,
            discount=discount,
            cut=steps.truncated,
            promised=self._promised(state, steps),
            aside=played.aside,
            lambda_steps=self.settings.lambda_steps,
            lambda_phases=self.settings.lambda_phases,
        )

    def between(self, state: State, step: int) -> State:
        """Split the parameter sets that are due."""
        old, new = tuple(state.phase_map.tolist()), self.phase_map(step)
        if old == new:
            return state
        params, average, optimiser = (sharing.split(part, old) for part in state[:3])
        return State(params, average, optimiser, sharing.as_array(new))

    def cut(self, state: State, observation: Observation) -> State:
        """Nothing is remembered from one round to the next."""
        del observation
        return state

    def policy(self, state: State) -> Params:
        """The average."""
        return state.average

    def phase_map(self, step: int) -> sharing.PhaseMap:
        """By the algorithm's sharing."""
        kind, num_select = self.agent.algorithm.sharing, self.agent.spec.num_select
        return sharing.map_at(kind, num_select, step, self.total_steps)

    def _promised(self, state: State, steps: Transition) -> Float[Array, "T E"]:
        """What was promised after steps that no recorded one follows: at time limits and the end.

        NaN where nothing could be picked there, which promises nothing. Other places hold 0.
        """
        first = partial(self.agent.first_worth, state.params, state.phase_map)

        def worth(seen: Observation) -> Float[Array, " E"]:
            return in_groups(first, seen.present.shape[1], seen)

        end = worth(jax.tree.map(lambda leaf: leaf[-1], steps.next_observation))
        nothing = jnp.zeros_like(steps.reward)
        everywhere = jax.lax.cond(
            steps.truncated.any(),
            lambda: jax.lax.map(worth, steps.next_observation),
            lambda: nothing,
        )
        return jnp.where(steps.truncated, everywhere, nothing).at[-1].set(end)

    def _one_step(self, state: State, steps: Transition) -> Float[Array, "E K"]:
        first = partial(self.agent.first_values, state.params, state.phase_map)
        values, legal = jax.vmap(first)(steps.next_observation)
        return jax.vmap(partial(td.one_step, self.agent.algorithm.rule))(
            steps.action.items, steps.reward, steps.discount, values, legal
        )

    def _optimiser(self) -> optax.GradientTransformation:
        rounds = self.total_steps // (self.num_envs * self.rollout)
        updates = rounds * self.settings.epochs * self.num_envs * self.rollout
        rate = optax.linear_schedule(
            self.settings.learning_rate, 0.0, max(updates // self.settings.minibatch, 1)
        )
        return optax.chain(optax.clip_by_global_norm(self.settings.max_gradient), optax.radam(rate))


class _Ahead(NamedTuple):
    """What follows a pick: the return from there, what was promised there, whether it is heeded."""

    earned: Float[Array, " E"]
    promised: Float[Array, " E"]
    heeded: Bool[Array, " E"]

    def seen(self, trust: float) -> Float[Array, " E"]:
        """The promise, moved towards the return where the next pick was greedy."""
        heeded = self.heeded & jnp.isfinite(self.earned)
        return self.promised + jnp.where(heeded, trust * (self.earned - self.promised), 0.0)


def lambda_returns(
    taken: Bool[Array, "T E K"],
    rewards: Float[Array, "T E K"],
    discount: Float[Array, "T E"],
    cut: Bool[Array, "T E"],
    promised: Float[Array, "T E"],
    aside: Aside,
    lambda_steps: float,
    lambda_phases: float,
) -> Float[Array, "T E K"]:
    """The return of each pick, from the last to the first.

    `promised` counts at the last step and where `cut` is set, after which another episode follows;
    where it is NaN, so is the return of the last pick before it, and those before heed promises.
    A phase in which nothing was picked lets what follows through, with its reward.
    """

    def pick(ahead: _Ahead, now: Any) -> tuple[_Ahead, Float[Array, " E"]]:
        taken, reward, worth, greedy = now
        earned = reward + ahead.seen(lambda_phases)
        return _Ahead(
            earned=jnp.where(taken, earned, reward + ahead.earned),
            promised=jnp.where(taken, worth, reward + ahead.promised),
            heeded=jnp.where(taken, greedy, ahead.heeded),
        ), earned

    def step(ahead: _Ahead, now: Any) -> tuple[_Ahead, Float[Array, "E K"]]:
        taken, rewards, discount, cut, promised, aside = now
        after = discount * jnp.where(cut, promised, ahead.seen(lambda_steps))
        after = jnp.where(discount == 0.0, 0.0, after)  # an end is known to promise nothing
        phases = jax.tree.map(lambda leaf: leaf.T, (taken, rewards, *aside))
        last = _Ahead(after, after, jnp.ones_like(cut))
        ahead, earned = jax.lax.scan(pick, last, phases, reverse=True)
        return ahead, earned.T

    end = _Ahead(promised[-1], promised[-1], jnp.ones_like(cut[-1]))
    steps = taken, rewards, discount, cut, promised, aside
    return jax.lax.stop_gradient(jax.lax.scan(step, end, steps, reverse=True)[1])


def in_groups(function: Any, num_items: int, *batched: Any) -> Any:
    """`function` over arguments [E, …], in groups whose items' numbers stay in cache."""
    count = jax.tree.leaves(batched)[0].shape[0]
    groups = math.ceil(count / max(ROWS_AT_ONCE // num_items, 1))
    if groups == 1:
        return jax.vmap(function)(*batched)
    return jax.lax.map(lambda each: function(*each), batched, batch_size=math.ceil(count / groups))


def at_last_pick(
    items: Int[Array, " K"], reward: Float[Array, ""], allow_pass: bool = False
) -> Float[Array, " K"]:
    """A step's reward at its last pick, or pass; where there was none, at the last phase."""
    last = is_last(items, allow_pass)
    idle = ~last.any() & (jnp.arange(items.shape[0]) == items.shape[0] - 1)
    return jnp.where(last | idle, reward, 0.0)
