"""The compiled worlds against their plain NumPy twins, which were written from the rules alone.

Given the same state, picks and draws, a step of both agrees to 1e-5. Single precision can put a
circle on the other side of a hard threshold; what lies within 1e-5 of one is left out, and counted.
"""

from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from selectmdp.bench.twins import CircleTwin, PredatorPreyTwin, features
from selectmdp.envs import Circle, PredatorPrey
from selectmdp.envs.base import DIRECTIONS
from selectmdp.envs.circle import CircleDraws, CircleState
from selectmdp.envs.predator_prey import PredatorPreyDraws, PredatorPreyState
from selectmdp.references import reference
from selectmdp.types import Action

QUICKLY = {"xla_backend_optimization_level": 0}  # compiling is what takes time here
SUBSETS = [names for size in range(1, 6) for names in combinations(DIRECTIONS, size)]
Steps = tuple[Any, Action, Any, Any, Any]
"""State, action, draws, next state and reward of many steps, each with a leading axis."""


def twin_of(env: Circle | PredatorPrey) -> Any:
    sizes = {
        "num_items": env.num_items,
        "num_context": env.num_context,
        "num_select": env.num_select,
        "commands": env.commands,
    }
    if isinstance(env, Circle):
        return CircleTwin(**sizes, dynamics=env.dynamics)
    return PredatorPreyTwin(**sizes, grid=env.grid, captors=env.captors)


# One step of many worlds, drawn by NumPy: any sizes, without compiling a random generator.


def some_picks(env: Circle | PredatorPrey, rng: np.random.Generator, count: int) -> Action:
    """Distinct items with any commands; one pick in six is −1, wherever it stands."""
    items = np.stack([rng.permutation(env.num_items)[: env.num_select] for _ in range(count)])
    items[rng.random(items.shape) < 1 / 6] = -1
    commands = rng.integers(len(env.commands), size=items.shape)
    return Action(jnp.asarray(items, jnp.int32), jnp.asarray(commands, jnp.int32))


def some_circles(
    env: Circle, rng: np.random.Generator, count: int
) -> tuple[CircleState, Action, CircleDraws]:
    n, u = env.num_items, env.num_context

    def unit(*shape: int) -> Any:
        return jnp.asarray(rng.random((count, *shape)), jnp.float32)

    def circles(number: int) -> Any:
        places = rng.uniform(-0.5, 0.5, (count, number, 2))
        radii = 0.45 * rng.random((count, number, 1)) ** 2  # small ones too: some overlap nothing
        return jnp.asarray(np.concatenate([places, radii], axis=2), jnp.float32)

    draws = CircleDraws(unit(n, 3), unit(n), unit(u, 3), unit(u), unit(n, 3), unit(u, 3))
    return CircleState(circles(n), circles(u)), some_picks(env, rng, count), draws


def some_animals(
    env: PredatorPrey, rng: np.random.Generator, count: int
) -> tuple[PredatorPreyState, Action, PredatorPreyDraws]:
    n, u, cells = env.num_items, env.num_context, env.grid**2
    places = np.stack([rng.permutation(cells)[: n + u] for _ in range(count)])
    where = jnp.asarray(np.stack([places // env.grid, places % env.grid], axis=2), jnp.int32)
    draws = PredatorPreyDraws(
        prey_command=jnp.asarray(rng.integers(5, size=(count, u)), jnp.int32),
        order=jnp.asarray([rng.permutation(env.num_select) for _ in range(count)], jnp.int32),
        reappear=jnp.asarray(rng.random((count, u)), jnp.float32),
    )
    return PredatorPreyState(where[:, :n], where[:, n:]), some_picks(env, rng, count), draws


# Agreement.


def rows(steps: Steps) -> list[Any]:
    """Steps one by one, on the host."""
    host = jax.tree.map(np.asarray, steps)
    return [jax.tree.map(lambda part, i=i: part[i], host) for i in range(len(host[-1]))]


def assert_circles_agree(env: Circle, steps: Steps) -> None:
    twin, left_out = twin_of(env), 0
    everything = rows(steps)
    for state, action, draws, after, reward in everything:
        made = [(int(i), int(c)) for i, c in zip(*action, strict=True) if i >= 0]
        chance = {name: part.astype(np.float64) for name, part in draws._asdict().items()}
        items, context = state.items.astype(np.float64), state.context.astype(np.float64)
        if least_margin(twin, items, context, made, chance) < 1e-5:
            left_out += 1
            continue
        items, context, twin_reward = twin.step(items, context, made, chance)
        np.testing.assert_allclose(after.items, items, atol=1e-5, rtol=0)
        np.testing.assert_allclose(after.context, context, atol=1e-5, rtol=0)
        assert reward == pytest.approx(twin_reward, abs=1e-5)
    assert left_out <= 1 + len(everything) // 50


def least_margin(twin: CircleTwin, items: Any, context: Any, made: Any, draws: Any) -> float:
    """How close the nearest hard threshold is: a full radius, or circles that touch."""
    items, context = items.copy(), context.copy()
    low, high = twin._rules.item_growth
    margins = [1.0]
    for i, circle in enumerate(items):
        twin._add_noise(circle, draws["item_noise"][i])
        grown = circle[2] + low + draws["item_growth"][i] * (high - low)
        margins.append(abs(grown - 0.45))
        twin._grow_item(circle, draws["item_growth"][i])
    for u, circle in enumerate(context):
        twin._add_noise(circle, draws["context_noise"][u])
        twin._grow_context(circle, draws["context_growth"][u])
    for item, command in made:
        items[item, :2] += 0.1 * np.array(DIRECTIONS[twin.commands[command]])
    picked = items[[item for item, _ in made]]
    pairs = [*combinations(picked, 2), *((one, other) for one in picked for other in context)]
    for one, other in pairs:
        apart = np.hypot(one[0] - other[0], one[1] - other[1])
        margins.append(abs(apart - one[2] - other[2]))
    return float(min(margins))


def assert_animals_agree(env: PredatorPrey, steps: Steps) -> None:
    twin = twin_of(env)
    for state, action, draws, after, reward in rows(steps):
        made = [p for p in range(env.num_select) if action.items[p] >= 0]
        pairs = [(int(action.items[p]), int(action.commands[p])) for p in made]
        # The twin leaves picks of −1 out, so the others' places in the order move up.
        order = [made.index(p) for p in draws.order if p in made]
        chance = {
            "prey_command": draws.prey_command,
            "order": np.array(order, int),
            "reappear": draws.reappear.astype(np.float64),
        }
        predators, preys, caught = twin.step(state.predators, state.preys, pairs, chance)
        np.testing.assert_array_equal(after.predators, predators)
        np.testing.assert_array_equal(after.preys, preys)
        assert reward == caught
        everyone = {(int(x), int(y)) for x, y in [*after.predators, *after.preys]}
        assert len(everyone) == env.num_items + env.num_context


@st.composite
def sizes(draw: st.DrawFn, most: int) -> dict[str, Any]:
    """N, K, U and commands in any order; often K = N, U = 0, one command, or one item."""
    num_items = draw(st.integers(1, most) | st.just(1))
    num_select = draw(st.integers(1, num_items) | st.just(num_items))
    num_context = draw(st.integers(0, 5) | st.just(0))
    names = draw(st.permutations(list(DIRECTIONS)))
    num_commands = draw(st.integers(1, 5) | st.just(1))
    return {
        "num_items": num_items,
        "num_select": num_select,
        "num_context": num_context,
        "commands": tuple(names[:num_commands]),
    }


@settings(max_examples=14)
@given(sizes=sizes(most=20), dynamics=st.sampled_from(["figures", "text"]), seed=st.integers(0, 99))
def test_circles_of_any_sizes_step_as_their_twin(
    sizes: dict[str, Any], dynamics: Any, seed: int
) -> None:
    env = Circle(**sizes, dynamics=dynamics)
    given = some_circles(env, np.random.default_rng(seed), 24)
    step = jax.jit(jax.vmap(env.advance), compiler_options=QUICKLY)
    assert_circles_agree(env, (*given, *step(*given)))


@settings(max_examples=10)
@given(
    sizes=sizes(most=8), extra=st.integers(0, 2), captors=st.integers(1, 3), seed=st.integers(0, 99)
)
def test_animals_of_any_sizes_step_as_their_twin(
    sizes: dict[str, Any], extra: int, captors: int, seed: int
) -> None:
    crowd = sizes["num_items"] + sizes["num_context"]
    grid = int(np.ceil(np.sqrt(crowd))) + extra  # from full to roomy
    env = PredatorPrey(**sizes, grid=grid, captors=min(captors, sizes["num_select"]))
    given = some_animals(env, np.random.default_rng(seed), 24)
    step = jax.jit(jax.vmap(env.advance), compiler_options=QUICKLY)
    assert_animals_agree(env, (*given, *step(*given)))


@pytest.mark.parametrize("dynamics", ["figures", "text"])
def test_circles_under_every_set_of_commands_step_as_their_twin(dynamics: Any) -> None:
    assert len(SUBSETS) == 31
    for seed, commands in enumerate(SUBSETS):
        env = Circle(num_items=4, num_context=2, num_select=3, commands=commands, dynamics=dynamics)
        given = some_circles(env, np.random.default_rng(seed), 12)
        assert_circles_agree(env, (*given, *jax.vmap(env.advance)(*given)))


def test_animals_under_every_set_of_commands_step_as_their_twin() -> None:
    for seed, commands in enumerate(SUBSETS):
        env = PredatorPrey(num_items=3, num_context=1, num_select=2, grid=3, commands=commands)
        given = some_animals(env, np.random.default_rng(seed), 12)
        assert_animals_agree(env, (*given, *jax.vmap(env.advance)(*given)))


def test_animals_are_seen_as_the_twin_sees_them() -> None:
    for grid in (1, 2, 7):
        cells = np.stack(np.unravel_index(np.arange(grid**2), (grid, grid)), axis=1)
        env = PredatorPrey(num_items=grid**2, num_context=0, num_select=1, grid=grid, captors=1)
        state = PredatorPreyState(jnp.asarray(cells, jnp.int32), jnp.zeros((0, 2), jnp.int32))
        np.testing.assert_allclose(env.observe(state).items, features(cells, grid), atol=1e-6)


# Episodes: the compiled world's own chance, from its own start.

EPISODES, STEPS = 30, 40


def episodes(env: Circle | PredatorPrey, policy: str = "random") -> Steps:
    """What 30 episodes of 40 steps were, [30, 40, …]."""
    actor = reference(policy, env)

    def one(state: Any, key: Any) -> tuple[Any, Steps]:
        act_key, env_key = jax.random.split(key)
        action, draws = actor(act_key, state, env.observe(state)), env.draws(env_key)
        after, reward = env.advance(state, action, draws)  # type: ignore[arg-type]
        return after, (state, action, draws, after, reward)

    def episode(key: Any) -> Steps:
        reset_key, key = jax.random.split(key)
        return jax.lax.scan(one, env.reset(reset_key), jax.random.split(key, STEPS))[1]

    play = jax.jit(jax.vmap(episode), compiler_options=QUICKLY)
    return play(jax.random.split(jax.random.key(0), EPISODES))


def twin_rewards(env: Circle | PredatorPrey) -> np.ndarray:
    """The twin's mean reward of a step in 30 episodes of its own chance."""
    twin, means = twin_of(env), []
    for seed in range(EPISODES):
        rng = np.random.default_rng([11, seed])
        first, second = twin.reset(rng)
        total = 0.0
        for _ in range(STEPS):
            picks, draws = twin.random_picks(rng), twin.draw(rng)
            first, second, reward = twin.step(first, second, picks, draws)
            total += reward
        means.append(total / STEPS)
    return np.asarray(means)


def assert_same_distribution(ours: np.ndarray, twins: np.ndarray) -> None:
    error = np.sqrt((ours.var(ddof=1) + twins.var(ddof=1)) / EPISODES)
    assert error > 0
    assert abs(ours.mean() - twins.mean()) < 4 * error
    assert stats.ks_2samp(ours, twins).pvalue > 1e-3


def first_of(steps: Steps, count: int) -> Steps:
    """The steps of the first episodes, one after the other."""
    return jax.tree.map(lambda part: part[:count].reshape(-1, *part.shape[2:]), steps)


@pytest.mark.parametrize("dynamics", ["figures", "text"])
def test_circle_episodes_follow_the_twin_and_earn_what_it_earns(dynamics: Any) -> None:
    env = Circle(num_items=8, num_context=2, num_select=3, dynamics=dynamics)
    steps = episodes(env)
    assert_circles_agree(env, first_of(steps, 5))
    assert_same_distribution(np.asarray(steps[-1]).mean(axis=1), twin_rewards(env))


def test_animal_episodes_follow_the_twin_and_catch_what_it_catches() -> None:
    env = PredatorPrey(num_items=6, num_context=2, num_select=4, grid=6)
    steps = episodes(env)
    assert_animals_agree(env, first_of(steps, 5))
    random = twin_rewards(env)
    assert_same_distribution(np.asarray(steps[-1]).mean(axis=1), random)
    greedy = episodes(env, "greedy")
    assert_animals_agree(env, first_of(greedy, 2))
    assert np.mean(greedy[-1]) > 3 * random.mean()
