"""The league: line-ups, what a match leaves, and a plain version of it in loops as the oracle."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import selectmdp as sm
from selectmdp import iterative
from selectmdp.envs.league import League, LeagueDraws, LeagueState
from selectmdp.envs.league_rules import homes
from selectmdp.scene import Box, Label
from selectmdp.spec import SelectError
from selectmdp.types import Action

SMALL = League(num_items=6, formation=(1, 1, 1, 0), time_limit=5)


def squad(**changes: Any) -> LeagueState:
    """Six equal players who are fit and fresh; every opponent has attack and defence 0.5."""
    state = LeagueState(
        skills=jnp.full((6, 4), 0.5),
        form=jnp.zeros(6),
        fatigue=jnp.zeros(6),
        out=jnp.zeros(6, jnp.int32),
        opponents=jnp.full((8, 2), 0.5),
        match=jnp.zeros((), jnp.int32),
        score=jnp.zeros(2, jnp.int32),
        points=jnp.zeros(()),
    )
    return state._replace(**changes)


def chance(**changes: Any) -> LeagueDraws:
    """Nobody is hurt; a middling load and form; both sides' goals by the number 0.5."""
    half = jnp.full(6, 0.5)
    drawn = LeagueDraws(jnp.full(2, 0.5), half, jnp.ones(6), half, half)
    return drawn._replace(**changes)


def lineup(*pairs: tuple[int, int]) -> Action:
    items, commands = zip(*pairs, strict=True)
    return Action(jnp.asarray(items, jnp.int32), jnp.asarray(commands, jnp.int32))


def by_hand(world: League, state: Any, action: Action, drawn: Any) -> tuple[dict[str, Any], float]:
    """A match in loops."""
    skills, form, fatigue, out, opponents, match, _, earned = (
        np.array(part, np.float64) for part in state[:8]
    )
    sides = []
    for weights in ((0.0, 0.2, 0.8, 1.6), (1.6, 0.9, 0.5, 0.0)):
        total, whole = 0.0, 0.0
        for position, count in enumerate(world.formation):
            whole += weights[position] * count
        for player, position in zip(action.items.tolist(), action.commands.tolist(), strict=True):
            if player >= 0:
                today = (1 - 0.4 * fatigue[player]) * (1 + 0.1 * form[player])
                total += weights[position] * skills[player, position] * today
        sides.append(total / whole)
    attack, defence = opponents[int(match) % len(opponents)]
    goals = []
    for margin, number in (
        (sides[0] - defence, float(drawn.goals[0])),
        (attack - sides[1], float(drawn.goals[1])),
    ):
        mean, upto, scored = 1.3 * math.exp(2.5 * margin), 0.0, 0
        for count in range(10):
            upto += mean**count * math.exp(-mean) / math.factorial(count)
            scored += upto <= number
        goals.append(scored)
    points = 3.0 if goals[0] > goals[1] else 1.0 if goals[0] == goals[1] else 0.0
    plays = dict(zip(action.items.tolist(), action.commands.tolist(), strict=True))
    after: dict[str, Any] = {"form": [], "fatigue": [], "out": []}
    after |= {"score": goals, "points": earned + points}
    for player in range(len(form)):
        tired = fatigue[player] - 0.28
        still_out = max(out[player] - 1, 0)
        if player in plays:
            load = (0.12, 0.30, 0.38, 0.32)[plays[player]]
            tired = fatigue[player] + load * (0.8 + 0.4 * float(drawn.load[player]))
            if float(drawn.hurt[player]) < 0.01 + 0.15 * fatigue[player] ** 2:
                still_out = 1 + math.floor(float(drawn.length[player]) * 5)
        after["fatigue"].append(min(max(tired, 0.0), 1.0))
        after["form"].append(0.85 * form[player] + 0.5 * (float(drawn.form[player]) - 0.5))
        after["out"].append(still_out)
    return after, points


def test_a_season_is_the_one_played_by_hand() -> None:
    world = League(num_items=14)
    state = world.reset(jax.random.key(3))
    for match in range(12):
        action = world.greedy(jax.random.key(0), state)
        drawn = world.draws(jax.random.key(match))
        expected, points = by_hand(world, state, action, drawn)
        state, earned = world.advance(state, action, drawn)
        assert float(earned) == points
        for name, numbers in expected.items():
            np.testing.assert_allclose(getattr(state, name), numbers, atol=1e-5)
    assert int(state.match) == 12


def test_a_line_up_of_halves_against_halves_draws_at_even_chance() -> None:
    action = lineup((0, 0), (1, 1), (2, 2))
    attack, defence = SMALL.strength(squad(), action)
    assert (float(attack), float(defence)) == pytest.approx((0.5, 0.5))
    _, points = SMALL.advance(squad(), action, chance())
    assert float(points) == 1.0  # both sides score the median of the same distribution


def test_a_stronger_side_scores_more_on_the_same_chance() -> None:
    action = lineup((0, 0), (1, 1), (2, 2))
    strong = squad(skills=jnp.full((6, 4), 0.9))
    assert float(SMALL.advance(strong, action, chance())[1]) == 3.0
    assert float(SMALL.advance(squad(skills=jnp.full((6, 4), 0.1)), action, chance())[1]) == 0.0


def test_who_plays_tires_by_position_and_who_rests_recovers() -> None:
    before = squad(fatigue=jnp.full(6, 0.4))
    after, _ = SMALL.advance(before, lineup((0, 0), (1, 1), (2, 2)), chance())
    expected = [0.52, 0.70, 0.78, 0.12, 0.12, 0.12]
    np.testing.assert_allclose(after.fatigue, expected, atol=1e-6)


def test_tired_players_are_weaker_and_get_hurt() -> None:
    action = lineup((0, 0), (1, 1), (2, 2))
    tired = squad(fatigue=jnp.ones(6))
    assert float(SMALL.strength(tired, action)[1]) == pytest.approx(0.3)
    hurt, _ = SMALL.advance(tired, action, chance(hurt=jnp.full(6, 0.15)))
    assert hurt.out.tolist() == [3, 3, 3, 0, 0, 0]  # half of five, rounded down, and one
    fresh, _ = SMALL.advance(squad(), action, chance(hurt=jnp.full(6, 0.15)))
    assert fresh.out.tolist() == [0] * 6


def test_who_is_out_cannot_be_picked_and_comes_back() -> None:
    state = squad(out=jnp.asarray([2, 0, 0, 1, 0, 0]))
    legal = SMALL.observe(state).legal
    assert legal.any(axis=1).tolist() == [False, True, True, False, True, True]
    state, _ = SMALL.advance(state, lineup((1, 0), (2, 1), (4, 2)), chance())
    assert state.out.tolist() == [1, 0, 0, 0, 0, 0]


def test_a_position_that_is_full_is_closed() -> None:
    seen = SMALL.observe(squad())
    chosen = jnp.asarray([True, False, False, False, False, False])
    keeper = SMALL.legal_after(seen, chosen, jnp.zeros(6, jnp.int32))
    assert keeper[1].tolist() == [False, True, True, False]  # no forward plays in this formation


@pytest.mark.parametrize("policy", ["random", "greedy"])
def test_every_line_up_is_the_formation(policy: str) -> None:
    world = League()
    state = world.reset(jax.random.key(1))
    if policy == "greedy":
        action = world.greedy(jax.random.key(0), state)
    else:
        action = iterative.random_action(jax.random.key(0), world, world.observe(state))
    assert np.bincount(action.commands, minlength=4).tolist() == [1, 4, 4, 2]
    assert len(set(action.items.tolist())) == 11


def test_greedy_spares_the_tired_and_the_same_eleven_play_always() -> None:
    world = League()
    state = world.reset(jax.random.key(2))
    first = world.same_eleven(jax.random.key(0), state, world.observe(state))
    played = np.isin(np.arange(25), first.items)
    tired = state._replace(fatigue=jnp.asarray(played * 1.0))
    again = world.same_eleven(jax.random.key(0), tired, world.observe(tired))
    assert sorted(again.items.tolist()) == sorted(first.items.tolist())
    spared = world.greedy(jax.random.key(0), tired)
    assert len(set(spared.items.tolist()) & set(first.items.tolist())) < 8


def test_with_too_few_fit_players_places_stay_empty() -> None:
    state = squad(out=jnp.asarray([1, 1, 1, 1, 0, 0]))
    action = SMALL.greedy(jax.random.key(0), state)
    assert (action.items >= 0).sum() == 2
    assert int(action.items[-1]) == -1
    assert np.isfinite(float(SMALL.advance(state, action, chance())[1]))


def test_a_squad_of_25_is_at_home_in_shares() -> None:
    assert np.bincount(homes(25)).tolist() == [3, 8, 8, 6]


@pytest.mark.slow
def test_rotation_pays_over_a_season() -> None:
    world = League()

    def resting(key: Any, state: LeagueState, observation: Any) -> Action:
        """Who is tired rests, whatever it costs today."""
        return world._eleven(state, world._today(state) - state.fatigue[:, None])

    fixed = sm.evaluate(world, world.same_eleven, episodes=100).mean_reward
    fresh = sm.evaluate(world, "greedy", episodes=100).mean_reward
    rested = sm.evaluate(world, resting, episodes=100).mean_reward
    blind = sm.evaluate(world, "random", episodes=100).mean_reward
    assert blind + 0.3 < fixed < fresh - 0.1
    assert 38 * fresh + 5 < 38 * rested == pytest.approx(60, abs=2)  # as the tutorial says


@pytest.mark.parametrize("formation", [(1, 4, 4), (0, 0, 0, 0), (1, 4, -1, 2), "4-4-2"])
def test_a_formation_that_is_none_is_refused(formation: Any) -> None:
    with pytest.raises(SelectError, match="formation"):
        League(formation=formation)


def test_more_places_than_players_are_refused() -> None:
    with pytest.raises(SelectError, match="num_select=11 is more than num_items=9"):
        League(num_items=9)


def test_the_picture_shows_every_player_once() -> None:
    world = League()
    state = world.reset(jax.random.key(0))
    scene = world.draw(state, world.greedy(jax.random.key(0), state))
    shown = [shape.item for shape in scene.shapes if shape.item is not None]
    assert sorted(shown) == list(range(25))
    assert scene.caption == "match 1 of 38"


def test_the_picture_tells_the_last_score_the_points_and_who_is_hurt() -> None:
    state = squad(match=jnp.asarray(3), score=jnp.asarray([2, 1]), points=jnp.asarray(7.0))
    state = state._replace(out=jnp.asarray([0, 4, 0, 0, 0, 0]))
    scene = SMALL.draw(state)
    assert scene.caption == "match 4 of 5 · last 2 : 1 · 7 points"
    words = [shape.text for shape in scene.shapes if isinstance(shape, Label)]
    assert [word for word in words if "+" in word] == ["+4"]
    assert {"next", "in 1", "in 2"} <= set(words)


def test_a_tired_player_has_a_shorter_bar() -> None:
    def bars(fatigue: float) -> list[float]:
        scene = SMALL.draw(squad(fatigue=jnp.full(6, fatigue)))
        found = [shape for shape in scene.shapes if isinstance(shape, Box)]
        return [bar.width for bar in found if bar.height == 1.2]

    assert bars(0.0) == [5.0] * 6
    assert bars(0.7) == pytest.approx([1.5] * 6)


@pytest.mark.parametrize("num_items", [11, 25, 120])
def test_no_two_players_sit_on_one_seat(num_items: int) -> None:
    world = League(num_items=num_items)
    scene = world.draw(world.reset(jax.random.key(0)))
    seats = {(shape.x, shape.y) for shape in scene.shapes if shape.item is not None}
    assert len(seats) == num_items
