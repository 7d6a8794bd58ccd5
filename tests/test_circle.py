"""Circle Selection, rule by rule: literal circles, literal areas.

Most worlds here stand still (no noise, no growth), so that every number can be read off the layout;
the others have their draws handed in: 0.5 is no noise, and a growth in the middle of its range.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selectmdp.envs import Circle, CircleRules
from selectmdp.envs.circle import RULES, CircleDraws, CircleState
from selectmdp.spec import SelectError
from selectmdp.types import Action
from selectmdp.worlds import evaluate

STAY, UP, DOWN, LEFT, RIGHT = range(5)
STILL = CircleRules(
    growth_low=0.0,
    growth_high=0.0,
    growth_share=None,
    restarts=False,
    noise=0.0,
    radius_noise=0.0,
    replacement_low=0.01,
    replacement_high=0.01,
    context_growth_low=0.0,
    context_growth_high=0.0,
)
STILL_WORLD = Circle(num_items=3, num_context=2, num_select=2, rules=STILL)
THREE_OF_SIX = Circle(num_items=6, num_context=2, num_select=3)
FAR = (-0.45, -0.45, 0.01)
FAR_TOO = (0.45, -0.45, 0.01)

# Compiling is what takes time here: only the rules themselves are optimised.
quickly = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
advance = jax.jit(Circle.advance, static_argnums=0)
partial_reward = quickly(Circle.partial_reward, static_argnums=0)
step = quickly(Circle.step, static_argnums=0)
greedy = quickly(Circle.greedy, static_argnums=0)
random_state = quickly(THREE_OF_SIX.reset)


def circles(items: Any, context: Any) -> CircleState:
    return CircleState(
        jnp.asarray(items, jnp.float32).reshape(-1, 3),
        jnp.asarray(context, jnp.float32).reshape(-1, 3),
    )


def picks(*pairs: tuple[int, int]) -> Action:
    rows = np.asarray(pairs, np.int32)
    return Action(jnp.asarray(rows[:, 0]), jnp.asarray(rows[:, 1]))


def draws(env: Circle, **given: Any) -> CircleDraws:
    """No noise, middling growth, replacements in the middle, unless given."""
    n, u = env.num_items, env.num_context
    shapes = {
        "item_noise": (n, 3),
        "item_growth": (n,),
        "context_noise": (u, 3),
        "context_growth": (u,),
        "item_replacement": (n, 3),
        "context_replacement": (u, 3),
    }
    return CircleDraws(
        **{
            name: jnp.broadcast_to(jnp.asarray(given.get(name, 0.5), jnp.float32), shape)
            for name, shape in shapes.items()
        }
    )


def reward_of(items: Any, context: Any, *pairs: tuple[int, int]) -> float:
    """The reward of these picks where nothing grows or trembles."""
    return float(
        advance(STILL_WORLD, circles(items, context), picks(*pairs), draws(STILL_WORLD))[1]
    )


# Three cases of the reward.


def test_case_1_a_pick_on_an_unselectable_circle_costs_its_area() -> None:
    items = [(0.0, 0.0, 0.2), (-0.4, 0.4, 0.1), FAR]
    context = [(0.25, 0.0, 0.1), FAR_TOO]
    assert reward_of(items, context, (0, STAY), (1, STAY)) == pytest.approx(math.pi * (0.01 - 0.04))


def test_case_2_picks_that_overlap_each_other_earn_nothing() -> None:
    items = [(0.0, 0.0, 0.2), (0.25, 0.0, 0.1), FAR]
    context = [(0.0, 0.4, 0.1), FAR_TOO]
    assert reward_of(items, context, (0, STAY), (1, STAY)) == 0.0


def test_case_3_picks_that_overlap_nothing_earn_their_area() -> None:
    items = [(0.0, 0.0, 0.2), (-0.4, 0.4, 0.1), FAR]
    context = [(0.35, 0.0, 0.1), FAR_TOO]
    assert reward_of(items, context, (0, STAY), (1, STAY)) == pytest.approx(math.pi * 0.05)


def test_case_1_comes_before_case_2() -> None:
    items = [(0.0, 0.0, 0.2), (-0.25, 0.0, 0.1), FAR]
    context = [(0.25, 0.0, 0.1), FAR_TOO]  # on item 0 alone; item 1 is on item 0
    assert reward_of(items, context, (0, STAY), (1, STAY)) == pytest.approx(-math.pi * 0.04)


def test_an_overlap_counts_once_however_many_circles_it_is_with() -> None:
    items = [(0.0, 0.0, 0.2), FAR, (0.4, 0.4, 0.01)]
    context = [(0.25, 0.0, 0.1), (-0.25, 0.0, 0.1)]
    assert reward_of(items, context, (0, STAY), (2, STAY)) == pytest.approx(
        math.pi * (0.0001 - 0.04)
    )


def test_circles_that_touch_do_not_overlap() -> None:
    items = [(-0.25, 0.0, 0.25), (0.25, 0.0, 0.25), FAR]
    context = [(0.25, 0.5, 0.25), FAR_TOO]
    assert reward_of(items, context, (0, STAY), (1, STAY)) == pytest.approx(math.pi * 0.125)


def test_a_circle_inside_another_overlaps_it() -> None:
    items = [(0.0, 0.0, 0.2), FAR, (0.4, 0.4, 0.01)]
    context = [(0.0, 0.0, 0.01), FAR_TOO]
    assert reward_of(items, context, (0, STAY), (-1, STAY)) == pytest.approx(-math.pi * 0.04)


def test_circles_that_were_not_picked_do_not_matter() -> None:
    items = [(0.0, 0.0, 0.2), (0.0, 0.0, 0.2), (0.4, 0.4, 0.1)]
    context = [FAR, FAR_TOO]
    assert reward_of(items, context, (0, STAY), (2, STAY)) == pytest.approx(math.pi * 0.05)


# Moves.

TOWARDS = {UP: (0.0, 1.0), DOWN: (0.0, -1.0), LEFT: (-1.0, 0.0), RIGHT: (1.0, 0.0)}


@pytest.mark.parametrize("command", TOWARDS)
def test_a_move_command_moves_by_a_tenth(command: int) -> None:
    x, y = TOWARDS[command]
    area = math.pi * 0.01
    items = [(0.0, 0.0, 0.1), FAR, FAR_TOO]
    just_within = [(0.299 * x, 0.299 * y, 0.1), (0.45, 0.45, 0.01)]
    just_beyond = [(0.301 * x, 0.301 * y, 0.1), (0.45, 0.45, 0.01)]
    assert reward_of(items, just_within, (0, command), (-1, 0)) == pytest.approx(-area)
    assert reward_of(items, just_beyond, (0, command), (-1, 0)) == pytest.approx(area)
    assert reward_of(items, just_within, (0, STAY), (-1, 0)) == pytest.approx(area)


def test_commands_count_in_the_order_the_world_lists_them() -> None:
    env = Circle(num_items=1, num_context=1, num_select=1, commands=("left", "stay"), rules=STILL)
    state = circles([(0.0, 0.0, 0.1)], [(-0.25, 0.0, 0.1)])
    assert advance(env, state, picks((0, 0)), draws(env))[1] == pytest.approx(-math.pi * 0.01)
    assert advance(env, state, picks((0, 1)), draws(env))[1] == pytest.approx(math.pi * 0.01)


def test_a_moved_circle_is_not_clipped_before_the_overlap_test() -> None:
    items = [(0.5, 0.0, 0.2), FAR, FAR_TOO]
    context = [(0.25, 0.0, 0.1), (-0.45, 0.45, 0.01)]  # 0.35 from (0.6, 0), 0.25 from (0.5, 0)
    assert reward_of(items, context, (0, RIGHT), (-1, 0)) == pytest.approx(math.pi * 0.04)
    assert reward_of(items, context, (0, STAY), (-1, 0)) == pytest.approx(-math.pi * 0.04)


# Replacement and clipping.


def test_picks_and_the_unselectable_circles_they_struck_are_replaced() -> None:
    items = [(0.0, 0.0, 0.2), (-0.4, 0.4, 0.1), (0.4, 0.4, 0.3)]
    context = [(0.3, 0.3, 0.05), (0.25, 0.0, 0.1)]  # the first is on item 2, which is not picked
    chance = draws(
        STILL_WORLD,
        item_replacement=[[0.1, 0.2, 0.0], [0.3, 0.4, 0.0], [0.5, 0.6, 0.0]],
        context_replacement=[[0.7, 0.8, 0.0], [0.9, 1.0, 0.0]],
    )
    after, _ = advance(STILL_WORLD, circles(items, context), picks((1, STAY), (0, STAY)), chance)
    np.testing.assert_allclose(
        after.items, [(-0.4, -0.3, 0.01), (-0.2, -0.1, 0.01), (0.4, 0.4, 0.3)], atol=1e-6
    )
    np.testing.assert_allclose(after.context, [(0.3, 0.3, 0.05), (0.4, 0.5, 0.01)], atol=1e-6)


@pytest.mark.parametrize(
    ("dynamics", "least", "most"), [("figures", 0.0, 0.0045), ("text", 0.01, 0.01)]
)
def test_a_replacement_is_small_and_anywhere(dynamics: Any, least: float, most: float) -> None:
    env = Circle(num_items=3, num_context=1, num_select=3, dynamics=dynamics)
    state = circles([(0.0, 0.0, 0.2)] * 3, [(0.0, 0.0, 0.2)])
    chance = draws(
        env,
        item_replacement=[[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.5, 0.25, 0.5]],
        context_replacement=[[0.75, 0.5, 1.0]],
    )
    after, _ = advance(env, state, picks((0, STAY), (1, STAY), (2, STAY)), chance)
    middle = (least + most) / 2
    np.testing.assert_allclose(
        after.items, [(-0.5, 0.5, least), (0.5, -0.5, most), (0.0, -0.25, middle)], atol=1e-6
    )
    np.testing.assert_allclose(after.context, [(0.25, 0.0, most)], atol=1e-6)


def test_after_the_step_everything_is_inside_again() -> None:
    rules = replace(RULES["figures"], growth_low=0.0, growth_high=0.0)
    env = Circle(num_items=2, num_context=1, num_select=1, rules=rules)
    state = circles([(0.5, -0.5, 0.001), (0.2, 0.2, 0.2)], [(-0.5, 0.5, 0.45)])
    chance = draws(
        env, item_noise=[[1.0, 0.0, 0.0], [0.5, 0.5, 0.5]], context_noise=[[0.0, 1.0, 1.0]]
    )
    after, _ = advance(env, state, picks((-1, STAY)), chance)
    np.testing.assert_allclose(after.items, [(0.5, -0.5, 0.0), (0.2, 0.2, 0.2)], atol=1e-6)
    np.testing.assert_allclose(after.context, [(-0.5, 0.5, 0.45)], atol=1e-6)


def test_a_pick_of_minus_1_changes_nothing() -> None:
    state = circles([(0.0, 0.0, 0.2), (0.1, 0.0, 0.2), (0.4, 0.4, 0.1)], [(0.0, 0.1, 0.1), FAR])
    after, reward = advance(STILL_WORLD, state, picks((-1, UP), (-1, LEFT)), draws(STILL_WORLD))
    assert reward == 0.0
    np.testing.assert_array_equal(after.items, state.items)
    np.testing.assert_array_equal(after.context, state.context)
    one = advance(STILL_WORLD, state, picks((-1, UP), (2, LEFT)), draws(STILL_WORLD))
    same = advance(STILL_WORLD, state, picks((2, LEFT), (-1, DOWN)), draws(STILL_WORLD))
    assert one[1] == pytest.approx(math.pi * 0.01)
    jax.tree.map(np.testing.assert_array_equal, one, same)
    np.testing.assert_array_equal(one[0].items[:2], state.items[:2])


# Growth and noise, in both dynamics.


@pytest.mark.parametrize(
    ("num_items", "dynamics", "least", "most"),
    [
        (50, "figures", 0.01944, 0.02376),
        (200, "figures", 0.00486, 0.00594),
        (50, "text", 0.045, 0.055),
    ],
)
def test_a_selectable_circle_grows_within_its_range(
    num_items: int, dynamics: Any, least: float, most: float
) -> None:
    env = Circle(num_items=num_items, num_select=6, dynamics=dynamics)
    state = circles([(0.0, 0.0, 0.1)] * num_items, [])
    chance = draws(env, item_growth=np.linspace(0, 1, num_items))
    after, _ = advance(env, state, picks(*[(-1, STAY)] * 6), chance)
    expected = 0.1 + np.linspace(least, most, num_items)
    np.testing.assert_allclose(after.items[:, 2], expected, atol=1e-6)


FOUR = {"num_items": 4, "num_context": 2, "num_select": 1}


@pytest.mark.parametrize("dynamics", ["figures", "text"])
def test_an_unselectable_circle_grows_by_a_twentieth_up_to_its_maximum(dynamics: Any) -> None:
    env = Circle(**FOUR, dynamics=dynamics)
    state = circles([FAR] * 4, [(0.0, 0.0, 0.1), (0.2, 0.2, 0.1)])
    after, _ = advance(env, state, picks((-1, STAY)), draws(env, context_growth=[0.0, 1.0]))
    np.testing.assert_allclose(after.context[:, 2], [0.145, 0.155], atol=1e-6)
    large = circles([FAR] * 4, [(0.0, 0.0, 0.40), (0.2, 0.2, 0.45)])
    after, _ = advance(env, large, picks((-1, STAY)), draws(env, context_growth=[1.0, 0.0]))
    np.testing.assert_allclose(after.context, [(0.0, 0.0, 0.45), (0.2, 0.2, 0.45)], atol=1e-6)


@pytest.mark.parametrize(
    ("dynamics", "noise", "on_radius"), [("figures", 0.005, 0.005), ("text", 0.01, 0.0)]
)
def test_noise_moves_every_circle_by_so_much(dynamics: Any, noise: float, on_radius: float) -> None:
    env = Circle(**FOUR, dynamics=dynamics)
    state = circles([(0.0, 0.0, 0.1)] * 4, [(0.1, 0.1, 0.2)] * 2)
    units = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.75]])
    chance = draws(env, item_noise=units, context_noise=units[:2])
    after, _ = advance(env, state, picks((-1, STAY)), chance)
    growth = 0.36 / 4 * 0.5 if dynamics == "figures" else 0.05
    shift = np.array([[noise, noise, on_radius]]) * (2 * units - 1)
    np.testing.assert_allclose(after.items, shift + np.array([[0, 0, 0.1 + growth]]), atol=1e-6)
    np.testing.assert_allclose(after.context, shift[:2] + np.array([[0.1, 0.1, 0.25]]), atol=1e-6)


def test_in_the_figures_a_full_circle_starts_again_where_it_is() -> None:
    env = Circle(**FOUR)  # grows by 0.045
    state = circles([(0.3, -0.2, 0.41), (0.1, 0.1, 0.40), FAR, FAR], [FAR_TOO] * 2)
    after, _ = advance(env, state, picks((-1, STAY)), draws(env))
    np.testing.assert_allclose(after.items[:2], [(0.3, -0.2, 0.01), (0.1, 0.1, 0.445)], atol=1e-6)
    _, reward = advance(env, state, picks((0, STAY)), draws(env))
    assert reward == pytest.approx(math.pi * 0.0001, rel=1e-3)


def test_in_the_text_a_full_circle_stays_full() -> None:
    env = Circle(**FOUR, dynamics="text")
    state = circles([(0.3, 0.3, 0.41), (0.1, 0.1, 0.45), FAR, FAR], [FAR] * 2)
    after, _ = advance(env, state, picks((-1, STAY)), draws(env))
    np.testing.assert_allclose(after.items[:2], [(0.3, 0.3, 0.45), (0.1, 0.1, 0.45)], atol=1e-6)
    _, reward = advance(env, state, picks((0, STAY)), draws(env))
    assert reward == pytest.approx(math.pi * 0.2025)


def test_growth_comes_before_the_overlap_test() -> None:
    env = Circle(**FOUR, dynamics="text")
    state = circles([(0.0, 0.0, 0.1), FAR, FAR, FAR], [(0.29, 0.0, 0.1), FAR_TOO])  # 0.15 + 0.15
    after, reward = advance(env, state, picks((0, STAY)), draws(env))
    assert reward == pytest.approx(-math.pi * 0.0225)
    assert after.context[0].tolist() == pytest.approx([0.0, 0.0, 0.01])


# Chance.


def test_a_world_starts_anywhere_with_any_radius() -> None:
    env = Circle(num_items=2000, num_context=2000, num_select=6)
    start = env.reset(jax.random.key(0))
    for part in (start.items, start.context):
        assert float(jnp.abs(part[:, :2]).max()) <= 0.5
        assert float(part[:, 2].min()) >= 0.0
        assert float(part[:, 2].max()) <= 0.45
        np.testing.assert_allclose(part.mean(axis=0), [0.0, 0.0, 0.225], atol=0.05)
        np.testing.assert_allclose(part.std(axis=0), [0.2887, 0.2887, 0.1299], atol=0.02)


def test_every_number_that_a_step_draws_is_its_own_and_uniform() -> None:
    keys = jax.random.split(jax.random.key(1), 40)
    chance = jax.tree.map(lambda *each: np.stack(each), *map(THREE_OF_SIX.draws, keys))
    everything = np.concatenate([np.ravel(part) for part in chance])
    assert everything.size == 40 * 7 * 8
    assert len(np.unique(everything)) > 2230
    assert everything.min() >= 0.0
    assert everything.max() < 1.0
    for part in chance:
        assert np.mean(part) == pytest.approx(0.5, abs=0.12)


def test_a_step_draws_from_its_key_and_never_ends_the_episode() -> None:
    env, state, key = THREE_OF_SIX, random_state(jax.random.key(0)), jax.random.key(7)
    action = picks((0, UP), (3, LEFT), (5, STAY))
    after, reward, discount = step(env, key, state, action)
    again, same_reward = advance(env, state, action, env.draws(key))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), after, again)
    assert reward == pytest.approx(float(same_reward), abs=1e-6)
    assert discount == 1.0
    other, _, _ = step(env, jax.random.key(8), state, action)
    assert not np.allclose(after.items, other.items)


# What the world offers beside the protocol.


def test_everything_is_seen_and_legal() -> None:
    env = Circle(num_items=4, num_context=2, num_select=2, commands=("stay", "up"))
    state = env.reset(jax.random.key(0))
    seen = env.observe(state)
    np.testing.assert_array_equal(seen.items, state.items)
    np.testing.assert_array_equal(seen.context, state.context)
    assert seen.legal.shape == (4, 2)
    assert bool(seen.legal.all())
    assert bool(seen.present.all())
    assert seen.context_present.tolist() == [True, True]


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31 - 1))
def test_a_partial_reward_is_the_reward_of_the_picks_so_far(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state, key = random_state(jax.random.key(seed)), jax.random.key(seed % 1000)
    items = rng.permutation(6)[:3]
    items[rng.random(3) < 0.2] = -1
    pairs = [(int(item), int(rng.integers(5))) for item in items]
    so_far = partial_reward(THREE_OF_SIX, key, state, picks(*pairs))
    for made in (1, 2, 3):
        first = pairs[:made] + [(-1, STAY)] * (3 - made)
        _, reward, _ = step(THREE_OF_SIX, key, state, picks(*first))
        assert so_far[made - 1] == pytest.approx(float(reward), abs=1e-5)


def test_a_partial_reward_does_not_know_the_later_picks() -> None:
    state, key = random_state(jax.random.key(0)), jax.random.key(1)
    one = partial_reward(THREE_OF_SIX, key, state, picks((0, UP), (1, DOWN), (2, STAY)))
    other = partial_reward(THREE_OF_SIX, key, state, picks((0, UP), (1, DOWN), (5, LEFT)))
    np.testing.assert_allclose(one[:2], other[:2], atol=1e-7)


def test_partial_rewards_against_literal_circles() -> None:
    items = [(0.0, 0.0, 0.2), (0.25, 0.0, 0.1), FAR]
    state = circles(items, [(0.0, 0.4, 0.1), FAR_TOO])
    key = jax.random.key(0)
    expected = [math.pi * 0.04, 0.0]  # the second pick spoils the first
    so_far = partial_reward(STILL_WORLD, key, state, picks((0, STAY), (1, STAY)))
    np.testing.assert_allclose(so_far, expected, atol=1e-6)
    so_far = partial_reward(STILL_WORLD, key, state, picks((-1, STAY), (1, STAY)))
    np.testing.assert_allclose(so_far, [0.0, math.pi * 0.01], atol=1e-6)


def test_greedy_picks_the_largest_circles_that_overlap_nothing() -> None:
    env = Circle(num_items=4, num_context=1, num_select=2, commands=("stay",), rules=STILL)
    items = [(-0.3, 0.3, 0.1), (0.3, 0.0, 0.2), (0.1, 0.0, 0.15), (-0.3, -0.3, 0.3)]
    state = circles(items, [(-0.4, -0.4, 0.05)])  # on the largest; 2 is on 1
    action = greedy(env, jax.random.key(0), state)
    assert action.items.tolist() == [1, 0]
    assert action.commands.tolist() == [0, 0]
    _, reward = advance(env, state, action, draws(env))
    assert reward == pytest.approx(math.pi * 0.05)


def test_greedy_moves_a_circle_away_from_what_it_would_overlap() -> None:
    env = Circle(num_items=1, num_context=1, num_select=1, commands=("stay", "left"), rules=STILL)
    state = circles([(0.0, 0.0, 0.2)], [(0.25, 0.0, 0.1)])
    assert greedy(env, jax.random.key(0), state).commands.tolist() == [1]


def test_greedy_does_not_wait_for_a_circle_that_is_about_to_start_again() -> None:
    env = Circle(num_items=2, num_select=1, commands=("stay",))  # grows by 0.09
    state = circles([(0.0, 0.0, 0.44), (0.3, 0.3, 0.2)], [])
    assert greedy(env, jax.random.key(0), state).items.tolist() == [1]


def test_a_random_policy_earns_what_it_did_in_the_figures_and_greedy_twice_that() -> None:
    random = evaluate(Circle(), "random", episodes=10, steps=1000)
    assert (random.unit, random.dynamics) == ("area", "figures")
    assert random.mean_reward == pytest.approx(0.094, abs=0.015)
    best = evaluate(Circle(), "greedy", episodes=10, steps=200)
    assert best.mean_reward - best.ci95 > 2 * 0.094


def test_the_order_of_the_circles_does_not_matter() -> None:
    env, order = THREE_OF_SIX, jnp.asarray([4, 2, 0, 5, 1, 3])
    state, chance = random_state(jax.random.key(5)), env.draws(jax.random.key(6))
    permuted = env.permute(state, order)
    np.testing.assert_array_equal(permuted.items[0], state.items[4])
    np.testing.assert_array_equal(permuted.context, state.context)
    shuffled = chance._replace(
        item_noise=chance.item_noise[order],
        item_growth=chance.item_growth[order],
        item_replacement=chance.item_replacement[order],
    )
    after, reward = advance(env, state, picks((4, UP), (0, LEFT), (3, STAY)), chance)
    other, other_reward = advance(env, permuted, picks((0, UP), (2, LEFT), (5, STAY)), shuffled)
    np.testing.assert_allclose(other.items, after.items[order], atol=1e-6)
    np.testing.assert_allclose(other.context, after.context, atol=1e-6)
    assert other_reward == pytest.approx(float(reward), abs=1e-6)
    np.testing.assert_allclose(env.permute(permuted, jnp.argsort(order)).items, state.items)


def test_greedy_takes_the_pick_that_costs_least_where_every_one_clashes() -> None:
    env = Circle(num_items=4, num_select=3, commands=("stay",), dynamics="text")
    two_apart = [[-0.3, 0.0, 0.15], [0.3, 0.0, 0.1]]
    touching_both, inside_the_second = [0.0, 0.0, 0.12], [0.3, 0.0, 0.01]
    items = jnp.asarray([touching_both, *two_apart, inside_the_second])
    state = CircleState(items, jnp.zeros((0, 3)))
    assert env.greedy(jax.random.key(0), state).items.tolist() == [1, 2, 3]


def test_a_world_with_constants_of_its_own_does_not_report_the_papers_dynamics() -> None:
    farther = replace(RULES["text"], reach=0.2)
    env = Circle(rules=farther)
    assert env.dynamics == "custom"
    assert replace(env, num_items=7).dynamics == "custom"
    assert Circle(rules=RULES["figures"]).dynamics == "figures"
    with pytest.raises(SelectError, match="dynamics='custom' needs rules"):
        Circle(dynamics="custom")
