"""Predators and squads whose number each episode draws: as in a world of that very number."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import selectmdp as sm
from selectmdp import cli
from selectmdp.check import check_select_env
from selectmdp.envs.league_rules import homes, homes_of
from selectmdp.envs.predator_prey import PredatorPreyState
from selectmdp.spec import SelectError
from selectmdp.types import Action

HUNT = sm.PredatorPrey(num_items=(4, 9), num_context=3, num_select=3, grid=5)
LEAGUE = sm.League(num_items=(13, 20))
reset, seeds = jax.jit(HUNT.reset), st.integers(0, 2**31 - 1)


@pytest.mark.slow
@settings(max_examples=10)
@given(seed=seeds)
def test_a_hunt_is_that_of_the_predators_which_are_there(seed: int) -> None:
    state = reset(jax.random.key(seed))
    count = int((state.predators[:, 0] >= 0).sum())
    small = sm.PredatorPrey(num_items=count, num_context=3, num_select=3, grid=5)
    rng = np.random.default_rng(seed)
    items, commands = rng.permutation(count)[:3], rng.integers(0, 5, 3)
    action = Action(jnp.asarray(items, jnp.int32), jnp.asarray(commands))
    chance = HUNT.draws(jax.random.key(seed + 1))
    shown = PredatorPreyState(state.predators[:count], state.preys)
    following, reward = HUNT.advance(state, action, chance)
    expected, same = small.advance(shown, action, chance)
    assert np.array_equal(following.predators[:count], expected.predators)
    assert np.array_equal(following.preys, expected.preys)
    assert (np.asarray(following.predators[count:]) == -1).all()
    assert float(reward) == float(same)
    key = jax.random.key(0)
    assert np.array_equal(HUNT.greedy(key, state).items, small.greedy(key, shown).items)
    assert len([each for each in HUNT.draw(state).shapes if hasattr(each, "item")
                and each.item is not None]) == count  # fmt: skip


@pytest.mark.parametrize("count", [11, 15, 25, 30])
def test_a_drawn_squad_has_the_positions_of_a_squad_of_its_size(count: int) -> None:
    assert homes_of(jnp.asarray(count), 30)[:count].tolist() == homes(count).tolist()
    world = sm.League(num_items=(count, count + 1))
    states = jax.vmap(world.reset)(jax.random.split(jax.random.key(0), 20))
    there = np.asarray(states.present)
    assert set(there.sum(axis=1).tolist()) == {count, count + 1}
    best = np.where(there, np.asarray(states.skills).argmax(axis=2), -1)
    for row, size in zip(best, there.sum(axis=1), strict=True):
        assert sorted(row[row >= 0].tolist()) == sorted(homes(int(size)).tolist())


def test_nobody_plays_who_is_not_in_the_squad() -> None:
    state = LEAGUE.reset(jax.random.key(1))
    seen, count = LEAGUE.observe(state), int(np.asarray(state.present).sum())
    assert 13 <= count < 20
    assert not np.asarray(seen.items[count:]).any()
    assert not np.asarray(seen.legal[count:]).any()
    assert np.asarray(LEAGUE.greedy(jax.random.key(0), state).items).max() < count


@pytest.mark.parametrize("world", [HUNT, LEAGUE])
def test_worlds_of_a_range_pass_the_checks(world: Any) -> None:
    check_select_env(world).raise_for_failures()
    assert world.item_range == world.num_items


def test_a_range_of_one_number_is_that_number() -> None:
    assert sm.PredatorPrey(num_items=(10, 10)) == sm.PredatorPrey()
    assert sm.League(num_items=(25, 25)) == sm.League()
    assert sm.League().reset(jax.random.key(0)).present is None
    with pytest.raises(SelectError, match="an episode has at least num_select=11 items"):
        sm.League(num_items=(8, 20))


def test_the_command_takes_a_range_and_says_what_one_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    brief = ["--episodes", "2", "--policy", "greedy", "--json"]
    cli.main(["evaluate", "league", "--num-items", "15:18", "--time-limit", "5", *brief])
    assert json.loads(capsys.readouterr().out)["mean_reward"] >= 0
    for text in ("20:", "a:b", "x"):
        with pytest.raises(SystemExit):
            cli.main(["evaluate", "circle", "--num-items", text])
        told = " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert f"{text}: give a number, or a range LOW:HIGH such as 20:200" in told
