"""Selective Predator-Prey, rule by rule: literal cells of a small grid."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selectmdp.envs import PredatorPrey
from selectmdp.envs.predator_prey import PredatorPreyDraws, PredatorPreyState
from selectmdp.iterative import random_action
from selectmdp.types import Action

STAY, UP, DOWN, LEFT, RIGHT = range(5)
WORLD = PredatorPrey(num_items=3, num_context=2, num_select=2, grid=6)
TRIO = PredatorPrey(num_items=4, num_context=1, num_select=3, grid=6, captors=3)

# Compiling is what takes time here: only the rules themselves are optimised.
quickly = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
advance = jax.jit(PredatorPrey.advance, static_argnums=0)
partial_reward = quickly(PredatorPrey.partial_reward, static_argnums=0)
step = quickly(PredatorPrey.step, static_argnums=0)
greedy = quickly(PredatorPrey.greedy, static_argnums=0)


def animals(predators: Any, preys: Any) -> PredatorPreyState:
    return PredatorPreyState(
        jnp.asarray(predators, jnp.int32).reshape(-1, 2),
        jnp.asarray(preys, jnp.int32).reshape(-1, 2),
    )


def picks(*pairs: tuple[int, int]) -> Action:
    rows = np.asarray(pairs, np.int32)
    return Action(jnp.asarray(rows[:, 0]), jnp.asarray(rows[:, 1]))


def draws(
    env: PredatorPrey = WORLD,
    prey_moves: tuple[int, ...] | None = None,
    order: tuple[int, ...] | None = None,
    reappear: Any = None,
) -> PredatorPreyDraws:
    """Preys stay, picks move in their order, the caught take the first free cell, unless given."""
    return PredatorPreyDraws(
        prey_command=jnp.asarray(prey_moves or (STAY,) * env.num_context, jnp.int32),
        order=jnp.asarray(order or tuple(range(env.num_select)), jnp.int32),
        reappear=jnp.asarray(reappear or (0.0,) * env.num_context, jnp.float32),
    )


def after(
    predators: Any, preys: Any, *pairs: tuple[int, int], env: PredatorPrey = WORLD, **given: Any
) -> tuple[list[list[int]], list[list[int]], float]:
    """Predators, preys and the reward after one step."""
    state, reward = advance(env, animals(predators, preys), picks(*pairs), draws(env, **given))
    return state.predators.tolist(), state.preys.tolist(), float(reward)


NOBODY = ((-1, STAY), (-1, STAY))


# Preys.


@pytest.mark.parametrize(
    ("command", "cell"),
    [(STAY, [2, 2]), (UP, [2, 3]), (DOWN, [2, 1]), (LEFT, [1, 2]), (RIGHT, [3, 2])],
)
def test_a_prey_moves_by_one_cell(command: int, cell: list[int]) -> None:
    predators = [(5, 5), (5, 4), (5, 3)]
    _, preys, _ = after(predators, [(2, 2), (0, 0)], *NOBODY, prey_moves=(command, STAY))
    assert preys == [cell, [0, 0]]


def test_a_prey_does_not_leave_the_grid() -> None:
    predators = [(3, 3), (3, 2), (2, 3)]
    _, preys, _ = after(predators, [(0, 0), (5, 5)], *NOBODY, prey_moves=(LEFT, UP))
    assert preys == [[0, 0], [5, 5]]
    _, preys, _ = after(predators, [(0, 0), (5, 5)], *NOBODY, prey_moves=(DOWN, RIGHT))
    assert preys == [[0, 0], [5, 5]]


def test_a_prey_does_not_enter_an_occupied_cell() -> None:
    predators = [(3, 2), (5, 5), (5, 4)]
    _, preys, _ = after(predators, [(2, 2), (2, 3)], *NOBODY, prey_moves=(RIGHT, DOWN))
    assert preys == [[2, 2], [2, 3]]  # a predator to the right, a prey below


def test_preys_move_one_after_the_other() -> None:
    predators = [(5, 5), (5, 4), (5, 3)]
    _, preys, _ = after(predators, [(2, 2), (1, 2)], *NOBODY, prey_moves=(RIGHT, RIGHT))
    assert preys == [[3, 2], [2, 2]]  # the first makes room for the second
    _, preys, _ = after(predators, [(2, 2), (3, 2)], *NOBODY, prey_moves=(RIGHT, RIGHT))
    assert preys == [[2, 2], [4, 2]]  # and cannot have the room that the second makes


def test_preys_move_before_the_predators() -> None:
    predators, preys, _ = after(
        [(2, 2), (5, 5), (5, 0)], [(3, 2), (0, 0)], (0, RIGHT), (-1, STAY), prey_moves=(UP, STAY)
    )
    assert predators[0] == [3, 2]  # the prey has left this cell
    assert preys[0] == [3, 3]
    predators, preys, _ = after(
        [(2, 2), (5, 5), (5, 0)], [(3, 3), (0, 0)], (0, RIGHT), (-1, STAY), prey_moves=(DOWN, STAY)
    )
    assert predators[0] == [2, 2]  # the prey was there first
    assert preys[0] == [3, 2]


# Predators.


@pytest.mark.parametrize(
    ("command", "cell"),
    [(STAY, [2, 2]), (UP, [2, 3]), (DOWN, [2, 1]), (LEFT, [1, 2]), (RIGHT, [3, 2])],
)
def test_a_picked_predator_follows_its_command(command: int, cell: list[int]) -> None:
    predators, _, reward = after(
        [(5, 5), (2, 2), (5, 3)], [(0, 0), (0, 5)], (1, command), (-1, STAY)
    )
    assert predators == [[5, 5], cell, [5, 3]]
    assert reward == 0.0


def test_a_predator_does_not_leave_the_grid() -> None:
    predators, _, _ = after([(0, 5), (5, 0), (3, 3)], [(2, 0), (2, 1)], (0, UP), (1, RIGHT))
    assert predators == [[0, 5], [5, 0], [3, 3]]
    predators, _, _ = after([(0, 5), (5, 0), (3, 3)], [(2, 0), (2, 1)], (0, LEFT), (1, DOWN))
    assert predators == [[0, 5], [5, 0], [3, 3]]


def test_a_predator_does_not_enter_an_occupied_cell() -> None:
    predators, preys, _ = after([(2, 2), (5, 5), (2, 3)], [(3, 2), (0, 0)], (0, UP), (1, STAY))
    assert predators[0] == [2, 2]  # an unpicked predator is there
    predators, preys, _ = after([(2, 2), (5, 5), (2, 3)], [(3, 2), (0, 0)], (0, RIGHT), (1, STAY))
    assert predators[0] == [2, 2]  # a prey is there
    assert preys[0] == [3, 2]


def test_the_order_in_which_predators_move_matters() -> None:
    start, far = [(2, 2), (3, 2), (0, 5)], [(5, 5), (0, 0)]
    follow = ((0, RIGHT), (1, RIGHT))
    assert after(start, far, *follow, order=(0, 1))[0] == [[2, 2], [4, 2], [0, 5]]
    assert after(start, far, *follow, order=(1, 0))[0] == [[3, 2], [4, 2], [0, 5]]


def test_two_predators_that_want_one_cell_do_not_both_get_it() -> None:
    start, far = [(1, 2), (3, 2), (0, 5)], [(5, 5), (0, 0)]
    meet = ((0, RIGHT), (1, LEFT))
    assert after(start, far, *meet, order=(0, 1))[0][:2] == [[2, 2], [3, 2]]
    assert after(start, far, *meet, order=(1, 0))[0][:2] == [[1, 2], [2, 2]]


def test_a_pick_of_minus_1_moves_nobody_wherever_it_stands() -> None:
    start, far = [(2, 2), (3, 4), (0, 5)], [(5, 0), (0, 0)]
    for order in ((0, 1), (1, 0)):
        assert after(start, far, (-1, UP), (-1, RIGHT), order=order)[0] == [[2, 2], [3, 4], [0, 5]]
        assert after(start, far, (-1, UP), (1, UP), order=order)[0] == [[2, 2], [3, 5], [0, 5]]
        assert after(start, far, (1, UP), (-1, UP), order=order)[0] == [[2, 2], [3, 5], [0, 5]]


def test_commands_count_in_the_order_the_world_lists_them() -> None:
    env = PredatorPrey(
        num_items=2, num_context=0, num_select=2, grid=6, captors=1, commands=("left", "up")
    )
    predators, _, _ = after([(2, 2), (4, 4)], [], (0, 0), (1, 1), env=env)
    assert predators == [[1, 2], [4, 5]]


# Catching.


@pytest.mark.parametrize("beside", [(1, 1), (1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2), (3, 3)])
def test_two_picked_predators_on_the_eight_cells_around_catch_a_prey(beside: Any) -> None:
    other = (1, 2) if beside != (1, 2) else (3, 2)
    _, preys, reward = after([beside, other, (5, 5)], [(2, 2), (5, 0)], (0, STAY), (1, STAY))
    assert reward == 1.0
    assert preys == [[0, 0], [5, 0]]


def test_one_picked_predator_catches_nothing() -> None:
    _, preys, reward = after([(1, 2), (3, 2), (5, 5)], [(2, 2), (5, 0)], (0, STAY), (2, STAY))
    assert reward == 0.0  # the other beside it is not picked
    assert preys == [[2, 2], [5, 0]]
    assert after([(1, 2), (4, 2), (5, 5)], [(2, 2), (5, 0)], (0, STAY), (1, STAY))[2] == 0.0


def test_a_predator_catches_from_where_it_has_moved_to() -> None:
    start, preys = [(1, 2), (4, 2), (5, 5)], [(2, 2), (5, 0)]
    assert after(start, preys, (0, STAY), (1, LEFT))[2] == 1.0
    assert after(start, preys, (0, LEFT), (1, LEFT))[2] == 0.0
    assert after(start, preys, (0, STAY), (1, LEFT), prey_moves=(DOWN, STAY))[2] == 1.0


def test_two_predators_can_catch_two_preys_at_once() -> None:
    _, preys, reward = after([(2, 1), (2, 3), (5, 5)], [(2, 2), (3, 2)], (0, STAY), (1, STAY))
    assert reward == 2.0
    assert preys == [[0, 0], [0, 1]]


def test_three_captors_need_three() -> None:
    prey = [(2, 2)]
    three = [(1, 1), (1, 2), (1, 3), (5, 5)]
    stay = ((0, STAY), (1, STAY), (2, STAY))
    assert after(three, prey, *stay, env=TRIO)[2] == 1.0
    assert after([(1, 1), (1, 2), (0, 3), (5, 5)], prey, *stay, env=TRIO)[2] == 0.0
    assert after(three, prey, (0, STAY), (1, STAY), (3, STAY), env=TRIO)[2] == 0.0
    assert after(three, prey, (0, STAY), (1, STAY), (-1, STAY), env=TRIO)[2] == 0.0


@pytest.mark.parametrize(
    ("share", "cell"),
    [
        (0.0, [0, 0]),  # the first of 32 free cells: 36 less 3 predators and the other prey
        (13 / 32, [2, 2]),  # where it was caught is free again; cell 13, (2, 1), is a predator's
        (14 / 32, [2, 4]),  # cell 15, (2, 3), is a predator's
        (28 / 32, [5, 1]),  # cell 30, (5, 0), is the other prey's
        (0.999, [5, 4]),  # the last: cell 35, (5, 5), is a predator's
    ],
)
def test_a_caught_prey_reappears_that_share_of_the_way_through_the_free_cells(share, cell) -> None:
    _, preys, reward = after(
        [(2, 1), (2, 3), (5, 5)], [(2, 2), (5, 0)], (0, STAY), (1, STAY), reappear=(share, 0.0)
    )
    assert reward == 1.0
    assert preys == [cell, [5, 0]]


def test_on_a_full_grid_a_caught_prey_returns_to_its_own_cell() -> None:
    env = PredatorPrey(num_items=3, num_context=1, num_select=2, grid=2)
    start = [(0, 0), (0, 1), (1, 0)]
    predators, preys, reward = after(start, [(1, 1)], (0, RIGHT), (1, STAY), env=env)
    assert (predators, preys, reward) == ([[0, 0], [0, 1], [1, 0]], [[1, 1]], 1.0)


# Chance.

SIZES = [  # N, K, U, G, captors
    (1, 1, 3, 2, 1),
    (6, 3, 3, 3, 2),
]


def world(size: tuple[int, int, int, int, int]) -> PredatorPrey:
    num_items, num_select, num_context, grid, captors = size
    return PredatorPrey(
        num_items=num_items,
        num_select=num_select,
        num_context=num_context,
        grid=grid,
        captors=captors,
    )


def episode(env: PredatorPrey, key: Any) -> tuple[PredatorPreyState, Any]:
    """Twenty steps of random picks: all the states, and the rewards."""

    def one(state: PredatorPreyState, key: Any) -> tuple[PredatorPreyState, Any]:
        act_key, env_key = jax.random.split(key)
        action = random_action(act_key, env, env.observe(state))
        following, reward, _ = env.step(env_key, state, action)
        return following, (state, reward)

    reset_key, key = jax.random.split(key)
    return jax.lax.scan(one, env.reset(reset_key), jax.random.split(key, 20))[1]


play = quickly(episode, static_argnums=0)


@settings(max_examples=15)
@given(size=st.sampled_from(SIZES), seed=st.integers(0, 2**31 - 1))
def test_nobody_ever_shares_a_cell_or_leaves_the_grid(size: Any, seed: int) -> None:
    env = world(size)
    states, rewards = play(env, jax.random.key(seed))
    everyone = np.concatenate(states, axis=1)
    assert everyone.shape == (20, env.num_items + env.num_context, 2)
    assert ((everyone >= 0) & (everyone < env.grid)).all()
    for cells in everyone:  # the first is what reset gives
        assert len({(int(x), int(y)) for x, y in cells}) == len(cells)
    assert ((rewards >= 0) & (rewards <= env.num_context)).all()


def test_a_prey_stays_six_times_in_ten_and_goes_each_way_once() -> None:
    env = PredatorPrey(num_items=4, num_context=50, num_select=4, grid=10)
    chance = quickly(jax.vmap(env.draws))(jax.random.split(jax.random.key(0), 200))
    counts = np.bincount(np.ravel(chance.prey_command), minlength=5) / 10_000
    np.testing.assert_allclose(counts, [0.6, 0.1, 0.1, 0.1, 0.1], atol=0.02)
    firsts = np.bincount(np.asarray(chance.order)[:, 0], minlength=4) / 200
    np.testing.assert_allclose(firsts, [0.25] * 4, atol=0.13)
    assert (np.sort(chance.order, axis=1) == np.arange(4)).all()
    assert np.mean(chance.reappear) == pytest.approx(0.5, abs=0.01)


def test_animals_start_anywhere() -> None:
    env = world((6, 3, 3, 3, 2))
    starts = quickly(jax.vmap(env.reset))(jax.random.split(jax.random.key(1), 900))
    for part in starts:
        cells = np.asarray(part[:, 0, 0] * 3 + part[:, 0, 1])
        assert (abs(np.bincount(cells, minlength=9) - 100) < 50).all()


def test_a_step_draws_from_its_key_and_never_ends_the_episode() -> None:
    key, state = jax.random.key(3), animals([(1, 2), (3, 2), (5, 5)], [(2, 2), (5, 0)])
    stepped, reward, discount = step(WORLD, key, state, picks((0, STAY), (1, STAY)))
    again, same = advance(WORLD, state, picks((0, STAY), (1, STAY)), WORLD.draws(key))
    jax.tree.map(np.testing.assert_array_equal, stepped, again)
    assert (float(reward), float(discount)) == (float(same), 1.0)


# What the world offers beside the protocol.


def test_cells_are_seen_between_minus_1_and_1() -> None:
    seen = WORLD.observe(animals([(0, 5), (5, 0), (1, 2)], [(0, 0), (5, 5)]))
    np.testing.assert_allclose(seen.items, [(-1, 1), (1, -1), (-0.6, -0.2)], atol=1e-6)
    np.testing.assert_allclose(seen.context, [(-1, -1), (1, 1)], atol=1e-6)
    assert seen.legal.shape == (3, 5)
    assert bool(seen.legal.all())
    assert bool(seen.present.all())


def test_on_a_grid_of_one_cell_the_only_cell_is_0() -> None:
    env = world((1, 1, 0, 1, 1))
    assert env.observe(env.reset(jax.random.key(0))).items.tolist() == [[0.0, 0.0]]


@settings(max_examples=15)
@given(seed=st.integers(0, 2**31 - 1))
def test_a_partial_reward_is_the_reward_of_the_picks_so_far(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = np.stack(np.unravel_index(rng.permutation(9)[:5], (3, 3)), axis=1)  # close together
    state, key = animals(cells[:3], cells[3:]), jax.random.key(seed % 100)
    items = rng.permutation(3)[:2]
    items[rng.random(2) < 0.2] = -1
    pairs = [(int(item), int(rng.integers(5))) for item in items]
    so_far = partial_reward(WORLD, key, state, picks(*pairs))
    assert so_far[0] == step(WORLD, key, state, picks(pairs[0], (-1, STAY)))[1]
    assert so_far[1] == step(WORLD, key, state, picks(*pairs))[1]


def test_a_partial_reward_against_literal_cells() -> None:
    # Predators in two corners of a full board: preys cannot move, whatever is drawn.
    env = PredatorPrey(num_items=3, num_context=1, num_select=2, grid=2)
    state = animals([(0, 0), (0, 1), (1, 0)], [(1, 1)])
    so_far = partial_reward(env, jax.random.key(0), state, picks((0, STAY), (2, STAY)))
    assert so_far.tolist() == [0.0, 1.0]


def test_greedy_sends_two_predators_beside_the_same_prey() -> None:
    start = animals([(0, 2), (4, 2), (5, 5)], [(2, 2), (0, 5)])
    action = greedy(WORLD, jax.random.key(0), start)
    moves = dict(zip(action.items.tolist(), action.commands.tolist(), strict=True))
    assert moves == {0: RIGHT, 1: LEFT}
    assert advance(WORLD, start, action, draws())[1] == 1.0


def test_greedy_without_preys_still_picks_distinct_predators() -> None:
    env = PredatorPrey(num_items=4, num_context=0, num_select=3)
    action = greedy(env, jax.random.key(0), env.reset(jax.random.key(0)))
    assert len(set(action.items.tolist())) == 3


def test_the_order_of_the_predators_does_not_matter() -> None:
    order = jnp.asarray([2, 0, 1])
    state = animals([(1, 2), (4, 2), (5, 5)], [(2, 2), (5, 0)])
    permuted = WORLD.permute(state, order)
    assert permuted.predators.tolist() == [[5, 5], [1, 2], [4, 2]]
    one, reward = advance(WORLD, state, picks((1, LEFT), (0, STAY)), draws())
    other, same = advance(WORLD, permuted, picks((2, LEFT), (1, STAY)), draws())
    assert float(reward) == float(same) == 1.0
    assert other.predators.tolist() == one.predators[order].tolist()
    assert other.preys.tolist() == one.preys.tolist()
