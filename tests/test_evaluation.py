"""Evaluation: toy worlds whose mean is known, intervals against tables, seeds that pair."""

import json
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from jaxtyping import Array

from selectmdp.envs import Circle
from selectmdp.envs.base import everything_legal
from selectmdp.evaluation import Evaluation, interval95
from selectmdp.references import reference
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation
from selectmdp.worlds import evaluate


@dataclass(frozen=True)
class Toy:
    """A step earns `reward` plus `slope` times the steps before it; it ends after `end` steps."""

    reward: float = 0.5
    slope: float = 0.0
    end: int = 10**6
    after_the_end: float = 99.0
    start_noise: float = 0.0
    step_noise: float = 0.0
    spec: Spec = Spec(3, 1, 0, 0, 1, 2)  # noqa: RUF009

    def reset(self, key: Array) -> tuple[Array, Array]:
        start = self.start_noise * jax.random.uniform(key) if self.start_noise else jnp.zeros(())
        return jnp.zeros((), jnp.int32), start

    def step(self, key: Array, state: tuple[Array, Array], action: Action) -> Any:
        count, start = state
        reward = self.reward + self.slope * count + start
        if self.step_noise:
            reward += self.step_noise * jax.random.uniform(key)
        reward = jnp.where(count < self.end, reward, self.after_the_end)
        return (count + 1, start), reward, jnp.where(count + 1 >= self.end, 0.0, 1.0)

    def observe(self, state: tuple[Array, Array]) -> Observation:
        return everything_legal(jnp.zeros((3, 1)), jnp.zeros((0, 0)), 2)


@dataclass(frozen=True)
class TimedToy(Toy):
    time_limit: int = 30
    unit: str = "points"
    dynamics: str = "toy"


class EndlessHost:
    """In NumPy: a step earns its number."""

    spec = Spec(3, 1, 0, 0, 1, 2)

    def reset(self, seed: int) -> Any:
        self.steps = 0
        return np.zeros((3, 1))

    def step(self, action: Action) -> Any:
        self.steps += 1
        return np.zeros((3, 1)), float(self.steps), False


def first(key: Array, state: Any, observation: Observation) -> Action:
    return Action(jnp.zeros(1, jnp.int32), jnp.zeros(1, jnp.int32))


def test_a_constant_reward_is_its_mean_and_has_no_spread() -> None:
    result = evaluate(Toy(reward=0.5), first, episodes=4, steps=7)
    assert result.mean_reward == 0.5
    assert result.ci95 == 0.0
    assert result.episode_rewards == (0.5, 0.5, 0.5, 0.5)
    assert (result.episodes, result.steps, result.seed) == (4, 7, 0)
    assert (result.unit, result.dynamics) == ("reward", None)


@pytest.mark.parametrize(
    ("steps", "pieces"),
    [(1, [(1, 1)]), (25, [(25, 25)]), (60, [(25, 60), (50, 60), (60, 60)])],
)
def test_an_episode_has_exactly_as_many_steps_as_asked_and_progress_hears_them(
    steps: int, pieces: list[tuple[int, int]]
) -> None:
    heard: list[tuple[int, int]] = []
    env = Toy(reward=0.0, slope=1.0)
    result = evaluate(env, first, episodes=2, steps=steps, progress=lambda *at: heard.append(at))
    assert result.mean_reward == (steps - 1) / 2  # 0, 1, …, steps − 1
    assert result.steps == steps
    assert heard == pieces


def test_the_time_limit_of_the_world_is_the_length_of_an_episode() -> None:
    result = evaluate(TimedToy(reward=0.0, slope=1.0), first, episodes=2)
    assert result.steps == 30
    assert result.mean_reward == 14.5
    assert (result.unit, result.dynamics) == ("points", "toy")


def test_without_a_time_limit_an_episode_has_a_thousand_steps_as_after_a_training() -> None:
    result = evaluate(Toy(reward=0.0, slope=1.0), first, episodes=2)
    assert (result.steps, result.mean_reward) == (1000, 499.5)
    host = evaluate(EndlessHost, "random", episodes=2, workers=0)
    assert (host.steps, host.mean_reward) == (1000, 500.5)


@pytest.mark.parametrize("after_the_end", [99.0, math.nan])
def test_after_a_true_end_nothing_counts(after_the_end: float) -> None:
    env = Toy(reward=2.0, slope=1.0, end=4, after_the_end=after_the_end)
    result = evaluate(env, first, episodes=2, steps=30)
    assert result.mean_reward == 3.5  # 2, 3, 4, 5 in four steps, not in thirty


def test_the_same_seed_gives_the_same_episodes_and_another_does_not() -> None:
    env = Toy(start_noise=1.0, step_noise=1.0)
    one = evaluate(env, first, episodes=5, steps=3, seed=1)
    again = evaluate(env, first, episodes=5, steps=3, seed=1)
    other = evaluate(env, first, episodes=5, steps=3, seed=2)
    assert one == again
    assert len(set(one.episode_rewards)) == 5
    assert set(one.episode_rewards).isdisjoint(other.episode_rewards)


def test_seeds_are_paired_between_policies_and_between_numbers_of_episodes() -> None:
    env = Toy(start_noise=1.0, step_noise=1.0)
    chosen = evaluate(env, first, episodes=3, steps=30, seed=7)
    chance = evaluate(env, "random", episodes=5, steps=30, seed=7)
    np.testing.assert_allclose(chosen.episode_rewards, chance.episode_rewards[:3], rtol=1e-5)


def test_one_episode_has_no_interval_and_its_json_says_null() -> None:
    result = evaluate(Toy(), first, episodes=1, steps=2, seed=np.int64(3))
    assert math.isnan(result.ci95)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False)) == {
        "mean_reward": 0.5,
        "ci95": None,
        "episodes": 1,
        "steps": 2,
        "seed": 3,
        "unit": "reward",
        "dynamics": None,
        "episode_rewards": [0.5],
    }


def test_an_interval_that_exists_is_in_the_json() -> None:
    plain = Evaluation(1.0, 0.25, 2, 3, 4, "area", "text", (0.5, 1.5)).to_json()
    assert plain["ci95"] == 0.25
    assert plain["episode_rewards"] == [0.5, 1.5]


def test_the_interval_is_students() -> None:
    # Mean 3, standard deviation √2.5; t(0.975, 4 degrees of freedom) = 2.776445.
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert interval95(values) == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)
    # With two values, half their distance times t(0.975, 1) = 12.706205.
    assert interval95(np.array([1.0, 3.0])) == pytest.approx(12.706205, rel=1e-6)
    assert math.isnan(interval95(np.array([1.0])))


def test_the_interval_of_an_evaluation_is_over_its_episodes() -> None:
    result = evaluate(Toy(start_noise=1.0), first, episodes=6, steps=2)
    rewards = np.asarray(result.episode_rewards)
    assert result.mean_reward == pytest.approx(rewards.mean())
    assert result.ci95 == pytest.approx(2.570582 * rewards.std(ddof=1) / math.sqrt(6), rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes=0: must be at least 1"),
        ({"episodes": -1}, "episodes=-1: must not be negative"),
        ({"episodes": 2.0}, "episodes=2.0: must be a whole number, not float"),
        ({"steps": 0}, "steps=0: must be at least 1"),
        ({"steps": -5}, "steps=-5: must not be negative"),
        ({"steps": "9"}, "steps='9': must be a whole number, not str"),
        ({"seed": "a"}, "seed='a': must be a whole number, not str"),
        ({"seed": -1}, "seed=-1: must not be negative"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SelectError) as caught:
        evaluate(Toy(), first, **({"steps": 5} | options))
    assert str(caught.value) == message


def test_an_unknown_policy_lists_those_there_are() -> None:
    with pytest.raises(SelectError, match="policy 'best' is none of random, greedy"):
        evaluate(Toy(), "best", steps=5)


def test_greedy_needs_a_world_that_offers_it() -> None:
    with pytest.raises(SelectError, match=r"Toy offers no greedy\(key, state\): take 'random'"):
        evaluate(Toy(), "greedy", steps=5)


def test_a_reference_policy_acts_for_one_example() -> None:
    env = Circle(num_items=5, num_select=3, commands=("stay",))
    state = env.reset(jax.random.key(0))
    for name in ("random", "greedy"):
        action = reference(name, env)(jax.random.key(1), state, env.observe(state))
        assert len(set(action.items.tolist())) == 3
        assert action.commands.tolist() == [0, 0, 0]


@dataclass(frozen=True)
class Worth:
    """A step earns the worth of its picks, less the first one's command; all is always the same."""

    num_items: int
    num_select: int
    time_limit: int = 30

    @property
    def spec(self) -> Spec:
        return Spec(self.num_items, 1, 0, 0, self.num_select, 2)

    def reset(self, key: Array) -> Array:
        return jnp.zeros(())

    def step(self, key: Array, state: Array, action: Action) -> Any:
        worth = self.observe(state).items[action.items, 0].sum() - action.commands[0]
        return state, worth, jnp.ones(())

    def observe(self, state: Array) -> Observation:
        items = jnp.sin(1.0 + jnp.arange(self.num_items))[:, None]
        return everything_legal(items, jnp.zeros((0, 0)), 2)


def test_a_trained_policy_plays_a_world_of_other_sizes_as_it_selects() -> None:
    policy, world = tiny.untrained("isq-i", Worth(5, 2)), Worth(9, 4)
    told = evaluate(world, policy, episodes=3)
    seen = world.observe(world.reset(jax.random.key(0)))
    picks = policy.select(seen, 4)
    assert picks.extrapolates
    earned = np.asarray(seen.items)[np.asarray(picks.items), 0].sum() - int(picks.commands[0])
    assert told.episode_rewards == pytest.approx((earned,) * 3, rel=1e-5)


def test_a_world_that_a_policy_cannot_serve_is_refused() -> None:
    bound = tiny.untrained("vanilla", Worth(5, 2))
    with pytest.raises(SelectError, match="a dense network serves only the sizes it was trained"):
        evaluate(Worth(6, 2), bound)
    with pytest.raises(SelectError, match="item_features=3: the policy was trained with 1"):
        evaluate(Circle(num_items=5, num_select=2), tiny.untrained("isq-u", Worth(5, 2)))


@pytest.mark.parametrize("task", [None, 3, object()])
def test_what_is_no_world_is_refused(task: Any) -> None:
    with pytest.raises(SelectError, match=r"task=.*: give a name, a world, or a function that"):
        evaluate(task)


def test_a_name_a_class_and_a_world_are_the_same_to_evaluate() -> None:
    sizes = {"num_items": 5, "num_select": 2, "time_limit": 7}
    told = evaluate("circle", episodes=2, **sizes)
    assert evaluate(Circle, episodes=2, **sizes) == evaluate(Circle(**sizes), episodes=2) == told
    with pytest.raises(SelectError, match="task 'rings' is none of circle, predator-prey, league"):
        evaluate("rings")


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(SelectError, match="policy=3: give a name, or"):
        evaluate(Toy(), 3, steps=5)


def test_rewards_that_are_no_numbers_are_null_in_the_json() -> None:
    result = evaluate(Toy(reward=math.nan), first, episodes=2, steps=2)
    assert math.isnan(result.mean_reward)
    plain = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert (plain["mean_reward"], plain["ci95"]) == (None, None)
    assert plain["episode_rewards"] == [None, None]
