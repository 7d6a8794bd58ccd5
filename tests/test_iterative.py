"""K single choices replace one choice of K: literal phases, and masks that are never broken."""

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Array

from selectmdp import iterative
from selectmdp.envs import Circle
from selectmdp.iterative import Selection, empty, legal, unroll
from selectmdp.types import Action, Observation, Transition


def observation(
    num_items: int = 4,
    num_commands: int = 2,
    mask: Any = None,
    present: Any = None,
    value: float = 0.0,
) -> Observation:
    everything = np.ones((num_items, num_commands), bool)
    return Observation(
        items=jnp.full((num_items, 3), value),
        context=jnp.full((1, 3), value),
        present=jnp.asarray(np.ones(num_items, bool) if present is None else present),
        context_present=jnp.ones(1, bool),
        legal=jnp.asarray(everything if mask is None else mask),
    )


def action(items: list[int], commands: list[int]) -> Action:
    return Action(jnp.asarray(items, jnp.int32), jnp.asarray(commands, jnp.int32))


def transition(picks: Action, reward: float = 2.5, discount: float = 0.99) -> Transition:
    return Transition(
        observation=observation(value=1.0),
        action=picks,
        reward=jnp.asarray(reward),
        discount=jnp.asarray(discount),
        truncated=jnp.asarray(False),
        next_observation=observation(value=7.0),
    )


def the_first(
    key: Array, seen: Observation, selection: Selection, mask: Array
) -> tuple[Array, Array, Any]:
    """A chooser: the first legal pair. Aside it tells what it was shown."""
    item, command = iterative.best_pair(jnp.zeros(mask.shape), mask)
    return item, command, (selection, mask)


choose = jax.jit(iterative.choose)
expand = jax.jit(iterative.expand)
selections = jax.jit(iterative.selections)
run_first = jax.jit(lambda key, seen: unroll(key, seen, the_first, 3))
run_random = jax.jit(partial(unroll, chooser=iterative.random_choice), static_argnames="num_select")


def test_nothing_is_chosen_in_phase_0() -> None:
    start = empty(3)
    assert start.picks.items.tolist() == [-1, -1, -1]
    assert start.picks.commands.tolist() == [0, 0, 0]
    assert int(start.phase) == 0


def test_choosing_an_item_removes_it_from_later_phases() -> None:
    seen = observation(3, 2)
    after = choose(empty(2), jnp.asarray(1), jnp.asarray(1))
    assert after.picks.items.tolist() == [1, -1]
    assert after.picks.commands.tolist() == [1, 0]
    assert iterative.picked(after.picks, 3).tolist() == [False, True, False]
    assert iterative.command_of_item(after.picks, 3).tolist() == [0, 1, 0]
    assert int(after.phase) == 1
    assert legal(seen, after).tolist() == [[True, True], [False, False], [True, True]]


def test_choosing_item_minus_1_chooses_nothing() -> None:
    before = choose(empty(3), jnp.asarray(2), jnp.asarray(1))
    after = choose(before, jnp.asarray(-1), jnp.asarray(1))
    assert after.picks.items.tolist() == [2, -1, -1]
    assert after.picks.commands.tolist() == [1, 0, 0]
    assert iterative.picked(after.picks, 4).tolist() == [False, False, True, False]
    assert int(after.phase) == 2


def test_what_is_padding_or_illegal_or_chosen_cannot_be_chosen() -> None:
    seen = observation(
        3, 2, mask=[[True, False], [True, True], [True, True]], present=[True, False, True]
    )
    assert legal(seen, empty(3)).tolist() == [[True, False], [False, False], [True, True]]
    after = choose(empty(3), jnp.asarray(2), jnp.asarray(0))
    assert legal(seen, after).tolist() == [[True, False], [False, False], [False, False]]


def test_an_unrolled_chooser_sees_its_earlier_picks() -> None:
    picks, (selection, mask) = run_first(jax.random.key(0), observation(4, 2))
    assert picks.items.tolist() == [0, 1, 2]
    assert picks.commands.tolist() == [0, 0, 0]
    assert selection.phase.tolist() == [0, 1, 2]
    assert selection.picks.items.tolist() == [[-1, -1, -1], [0, -1, -1], [0, 1, -1]]
    assert mask.sum(axis=(1, 2)).tolist() == [8, 6, 4]


def test_where_fewer_than_k_pairs_are_legal_the_rest_is_minus_1() -> None:
    mask = [[False, False], [False, True], [False, False], [True, True]]
    picks, _ = run_first(jax.random.key(0), observation(4, 2, mask=mask))
    assert picks.items.tolist() == [1, 3, -1]
    assert picks.commands.tolist() == [1, 0, 0]


def test_where_nothing_is_legal_nothing_is_picked() -> None:
    picks, _ = run_first(jax.random.key(0), observation(4, 2, present=[False] * 4))
    assert picks.items.tolist() == [-1, -1, -1]
    assert picks.commands.tolist() == [0, 0, 0]


def no_neighbours(seen: Observation, chosen: Array, command: Array) -> Array:
    """Beside a chosen item nothing may be chosen."""
    beside = jnp.zeros_like(chosen).at[1:].set(chosen[:-1]).at[:-1].max(chosen[1:])
    return jnp.broadcast_to(~beside[:, None], seen.legal.shape)


def test_what_earlier_picks_forbid_is_not_chosen() -> None:
    seen = observation(6, 1)
    picks, _ = unroll(jax.random.key(0), seen, the_first, 4, no_neighbours)
    assert picks.items.tolist() == [0, 2, 4, -1]
    after = choose(empty(6), jnp.asarray(3), jnp.asarray(0))
    rest = legal(seen, after, no_neighbours)
    assert rest[:, 0].tolist() == [True, True, False, False, False, True]


def test_random_actions_ask_a_world_what_stays_legal() -> None:
    class Row:
        spec = Circle(num_items=5, num_select=5).spec
        legal_after = staticmethod(no_neighbours)

    act = jax.jit(jax.vmap(lambda key, seen: iterative.random_action(key, Row(), seen), (0, None)))
    picks = act(jax.random.split(jax.random.key(1), 50), observation(5, 5))
    for row in picks.items.tolist():
        taken = sorted(item for item in row if item >= 0)
        assert all(right - left >= 2 for left, right in itertools.pairwise(taken))
        assert len(taken) in (2, 3)
        assert row[len(taken) :] == [-1] * (5 - len(taken))


SIZES = [(1, 1, 1), (4, 1, 4), (5, 3, 2), (6, 2, 6), (9, 5, 4)]  # N, C, K


@given(size=st.sampled_from(SIZES), seed=st.integers(0, 2**31 - 1), data=st.data())
def test_picks_are_distinct_and_legal_and_as_many_as_there_can_be(
    size: tuple[int, int, int], seed: int, data: st.DataObject
) -> None:
    num_items, num_commands, num_select = size
    density = data.draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    rng = np.random.default_rng(seed)
    mask = rng.random((num_items, num_commands)) < density
    present = rng.random(num_items) < 0.8
    seen = observation(num_items, num_commands, mask, present)
    picks, _ = run_random(jax.random.key(seed), seen, num_select=num_select)
    items, commands = picks.items.tolist(), picks.commands.tolist()
    choosable = int((mask.any(axis=1) & present).sum())
    count = min(num_select, choosable)
    assert all(item >= 0 for item in items[:count])
    assert items[count:] == [-1] * (num_select - count)
    assert len(set(items[:count])) == count
    for item, command in zip(items[:count], commands, strict=False):
        assert mask[item, command]
        assert present[item]


def test_every_legal_pair_is_as_likely() -> None:
    mask = [[True, True], [True, False], [False, False], [True, True]]
    act = jax.jit(
        jax.vmap(lambda key: iterative.random_choice(key, None, None, jnp.asarray(mask))[:2])
    )
    item, command = act(jax.random.split(jax.random.key(3), 4000))
    counts = np.bincount(np.asarray(item * 2 + command), minlength=8)
    assert counts[[3, 4, 5]].tolist() == [0, 0, 0]
    assert (abs(counts[[0, 1, 2, 6, 7]] - 800) < 130).all()  # 5 standard deviations


def test_the_best_pair_is_the_first_of_equals_and_legal() -> None:
    values = jnp.asarray([[1.0, 9.0], [3.0, 3.0], [3.0, -5.0]])
    mask = jnp.asarray([[True, False], [False, True], [True, True]])
    assert [int(part) for part in iterative.best_pair(values, mask)] == [1, 1]
    lowest = mask & jnp.asarray([[False, False], [False, False], [False, True]])
    assert [int(part) for part in iterative.best_pair(values, lowest)] == [2, 1]


def test_one_step_of_three_picks_becomes_three_phases() -> None:
    phases = expand(transition(action([2, 0, 3], [1, 0, 1])))
    assert phases.item.tolist() == [2, 0, 3]
    assert phases.command.tolist() == [1, 0, 1]
    assert phases.reward.tolist() == [0.0, 0.0, 2.5]
    assert phases.discount.tolist() == pytest.approx([1.0, 1.0, 0.99])
    assert phases.last.tolist() == [False, False, True]
    assert phases.taken.tolist() == [True, True, True]
    assert phases.selection.phase.tolist() == [0, 1, 2]
    assert phases.selection.picks.items.tolist() == [[-1, -1, -1], [2, -1, -1], [2, 0, -1]]
    assert phases.selection.picks.commands.tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 0]]


def test_before_the_last_pick_the_same_observation_follows_and_then_the_next_one() -> None:
    phases = expand(transition(action([2, 0, 3], [1, 0, 1])))
    assert phases.observation.items[:, 0, 0].tolist() == [1.0, 1.0, 1.0]
    assert phases.next_observation.items[:, 0, 0].tolist() == [1.0, 1.0, 7.0]
    assert phases.next_selection.phase.tolist() == [1, 2, 0]
    assert phases.next_selection.picks.items.tolist() == [[2, -1, -1], [2, 0, -1], [-1, -1, -1]]
    assert phases.next_selection.picks.commands.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_where_the_picks_end_early_the_last_one_taken_gets_the_reward() -> None:
    phases = expand(transition(action([2, 0, -1], [1, 0, 0])))
    assert phases.reward.tolist() == [0.0, 2.5, 0.0]
    assert phases.discount.tolist() == pytest.approx([1.0, 0.99, 1.0])
    assert phases.last.tolist() == [False, True, False]
    assert phases.taken.tolist() == [True, True, False]
    assert phases.next_observation.items[:2, 0, 0].tolist() == [1.0, 7.0]
    assert phases.next_selection.phase[:2].tolist() == [1, 0]
    assert phases.next_selection.picks.items[1].tolist() == [-1] * 3


def test_where_nothing_was_picked_no_phase_is_taken() -> None:
    phases = expand(transition(action([-1, -1], [0, 0])))
    assert phases.taken.tolist() == [False, False]
    assert phases.last.tolist() == [False, False]
    assert phases.reward.tolist() == [0.0, 0.0]


def test_a_pick_left_out_in_between_does_not_count_the_reward_twice() -> None:
    phases = expand(transition(action([2, -1, 0], [1, 0, 0])))
    assert phases.reward.tolist() == [0.0, 0.0, 2.5]
    assert phases.last.tolist() == [False, False, True]
    assert phases.taken.tolist() == [True, False, True]


def test_with_one_pick_the_phase_is_the_step() -> None:
    phases = expand(transition(action([3], [1]), reward=-1.5, discount=0.0))
    assert phases.reward.tolist() == [-1.5]
    assert phases.discount.tolist() == [0.0]
    assert phases.last.tolist() == [True]
    assert phases.next_selection.phase.tolist() == [0]
    assert phases.next_observation.items[0, 0, 0] == 7.0


@given(
    seed=st.integers(0, 2**31 - 1),
    density=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_choosing_the_picks_one_after_the_other_gives_the_expanded_selections(
    seed: int, density: float
) -> None:
    rng = np.random.default_rng(seed)
    seen = observation(6, 2, rng.random((6, 2)) < density)
    picks, _ = run_random(jax.random.key(seed), seen, num_select=4)
    phases = expand(Transition(seen, picks, *jnp.asarray([1.5, 0.9]), jnp.asarray(False), seen))
    stacked = selections(picks)
    one_by_one = empty(4)
    for k in range(4):
        for rows in (phases.selection, stacked):
            jax.tree.map(
                lambda row, one, k=k: np.testing.assert_array_equal(row[k], one), rows, one_by_one
            )
        if phases.taken[k]:
            assert legal(seen, one_by_one)[phases.item[k], phases.command[k]]
        one_by_one = choose(one_by_one, phases.item[k], phases.command[k])
    jax.tree.map(lambda row, one: np.testing.assert_array_equal(row[4], one), stacked, one_by_one)
    taken = np.asarray(phases.taken)
    assert float(phases.reward.sum()) == pytest.approx(1.5 if taken.any() else 0.0)
    assert float(jnp.prod(phases.discount)) == pytest.approx(0.9 if taken.any() else 1.0)
    assert one_by_one.picks.items.tolist() == picks.items.tolist()


def test_walking_the_phases_one_by_one_makes_the_same_step_of_the_world() -> None:
    env = Circle(num_items=5, num_context=2, num_select=3)
    step = jax.jit(env.step)
    reset_key, act_key, env_key = jax.random.split(jax.random.key(4), 3)
    state = env.reset(reset_key)
    seen = env.observe(state)
    at_once = iterative.random_action(act_key, env, seen)
    selection, picks = empty(3), []
    for phase_key in jax.random.split(act_key, 3):
        item, command, _ = iterative.random_choice(
            phase_key, seen, selection, legal(seen, selection)
        )
        picks.append((int(item), int(command)))
        selection = choose(selection, item, command)
    walked = action([item for item, _ in picks], [command for _, command in picks])
    assert walked.items.tolist() == at_once.items.tolist()
    assert walked.commands.tolist() == at_once.commands.tolist()
    jax.tree.map(
        np.testing.assert_array_equal, step(env_key, state, walked), step(env_key, state, at_once)
    )
