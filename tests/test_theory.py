"""Exact solutions of tiny worlds: by hand, by brute force, and as the worlds themselves play."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selectmdp.check import check_select_env
from selectmdp.iterative import random_action
from selectmdp.spec import SelectError
from selectmdp.theory import (
    PROBES,
    Picks,
    Probe,
    TinyWorld,
    evaluate_policy,
    level_world,
    optimality,
    random_policy,
    random_world,
    solve,
    table_of,
    tabulate,
)
from selectmdp.types import Action
from selectmdp.worlds import evaluate

NO = -np.inf


def machine() -> TinyWorld:
    """One pick of two. Item 0 works, for 1 when worn and 3 when good (then half wear out); item 1
    repairs. State 0 is worn, state 1 good."""

    def rule(state: int, picks: Picks) -> tuple[float, Any]:
        if picks == ((1, 0),):
            return 0.0, 1
        return (3.0, np.array([0.5, 0.5])) if state == 1 else (1.0, 0)

    items = [[[0.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]]]
    return tabulate(rule, items, 1)


def one_state(legal: Any, num_select: int = 2) -> TinyWorld:
    """Every step earns 1; only what may be picked matters."""
    mask = np.array([legal], bool)
    items = np.eye(mask.shape[1])[None]
    return tabulate(lambda state, picks: (1.0, 0), items, num_select, legal=mask)


def action(*picks: tuple[int, int]) -> Action:
    items, commands = np.array(picks, np.int32).T
    return Action(jnp.asarray(items), jnp.asarray(commands))


def prefixes(world: TinyWorld, state: int) -> set[Picks]:
    """All picks, in all orders, after which the step goes on."""
    whole = [world.joint[index] for index in np.flatnonzero(world.allowed[state])]
    orders = (order for picks in whole for order in itertools.permutations(picks))
    return {order[:count] for order in orders for count in range(len(order))}


def test_a_machine_that_wears_out_has_the_values_found_by_hand():
    found = solve(machine(), 0.5)
    np.testing.assert_allclose(found.values, [2.4, 4.8], atol=1e-12)
    np.testing.assert_allclose(found.action_values, [[2.2, 2.4], [4.8, 2.4]], atol=1e-12)
    np.testing.assert_array_equal(found.best_action.items, [[1], [0]])
    np.testing.assert_allclose(found.phase_q(0), [[2.2], [2.4]], atol=1e-12)


def test_without_a_future_the_best_is_the_largest_reward():
    found = solve(machine(), 0.0)
    np.testing.assert_array_equal(found.values, [1.0, 3.0])
    np.testing.assert_array_equal(found.best_action.items, [[0], [0]])


def test_policies_have_the_values_found_by_hand():
    world = machine()
    always_work = Action(jnp.zeros((2, 1), int), jnp.zeros((2, 1), int))
    np.testing.assert_allclose(evaluate_policy(world, always_work, 0.5), [2.0, 14 / 3], atol=1e-12)
    by_chance = evaluate_policy(world, random_policy(world), 0.5)
    np.testing.assert_allclose(by_chance, [11 / 7, 19 / 7], atol=1e-12)
    assert optimality(world, always_work, 0.5) == pytest.approx(10 / 3 / 3.6, abs=1e-12)
    assert optimality(world, random_policy(world), 0.5) == pytest.approx(15 / 7 / 3.6, abs=1e-12)
    assert optimality(world, solve(world, 0.5).best_action, 0.5) == pytest.approx(1.0, abs=1e-12)


def test_random_picks_follow_the_chances_found_by_hand():
    # The pairs are a0, a1, b0, c0. {b, c} comes about in two orders of chance 1/4 · 1/3, {a, b}
    # in orders of chance 1/4 · 1/2 and 1/4 · 1/3.
    world = one_state([[1, 1], [1, 0], [1, 0]])
    chances = dict(zip(world.joint, random_policy(world)[0], strict=True))
    assert chances[(1, 0), (2, 0)] == pytest.approx(4 / 24)
    assert chances[(0, 0), (1, 0)] == pytest.approx(5 / 24)
    assert chances[(0, 1), (2, 0)] == pytest.approx(5 / 24)
    assert len(chances) == 5
    assert sum(chances.values()) == pytest.approx(1.0)


def test_random_actions_are_drawn_with_these_chances():
    world = random_world(7, num_states=4, num_items=3, legal_share=0.5)
    chances = random_policy(world)
    keys = jax.random.split(jax.random.key(0), 6000)
    draw = jax.jit(
        jax.vmap(lambda key, state: random_action(key, world, world.observe(state)), (0, None))
    )
    for state in range(4):
        drawn = draw(keys, jnp.asarray(state))
        pairs = np.stack([np.asarray(drawn.items), np.asarray(drawn.commands)], axis=2).tolist()
        picks = [tuple(sorted((i, c) for i, c in row if i >= 0)) for row in pairs]
        shares = [picks.count(joint) / 6000 for joint in world.joint]
        np.testing.assert_allclose(shares, chances[state], atol=0.035)


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_has_the_q_values_it_says(name):
    probe = PROBES[name]()
    found = solve(probe.world, probe.gamma)
    for state, picks, values in probe.answers:
        np.testing.assert_allclose(found.phase_q(state, picks), values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_answers_for_every_state_and_phase(name):
    probe: Probe = PROBES[name]()
    world = probe.world
    asked = {(s, picks) for s in range(world.num_states) for picks in prefixes(world, s)}
    assert {(answer.state, answer.picks) for answer in probe.answers} == asked
    assert len(probe.answers) == len(asked)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [level_world, random_world])
def test_the_values_satisfy_bellmans_equation(make, seed):
    world = make(seed)
    found = solve(world, 0.95)
    for state in range(world.num_states):
        ahead = [
            world.rewards[state, index] + 0.95 * world.transitions[state, index] @ found.values
            for index in np.flatnonzero(world.allowed[state])
        ]
        assert abs(max(ahead) - found.values[state]) < 1e-9
    own = evaluate_policy(world, found.best_action, 0.95)
    np.testing.assert_allclose(own, found.values, rtol=0, atol=1e-9)


def test_no_deterministic_policy_is_better():
    world = random_world(1, num_states=3, num_items=3, num_select=2, num_commands=1)
    assert world.allowed.all()
    best = np.full(3, -np.inf)
    for policy in itertools.product(range(3), repeat=3):
        values = [0.0, 0.0, 0.0]
        for _ in range(60):  # 0.5⁶⁰ is nothing
            values = [
                world.rewards[state, index]
                + 0.5
                * sum(world.transitions[state, index, after] * values[after] for after in range(3))
                for state, index in enumerate(policy)
            ]
        best = np.maximum(best, values)
    np.testing.assert_allclose(solve(world, 0.5).values, best, rtol=0, atol=1e-12)


def test_phase_values_are_those_of_value_iteration_over_single_picks():
    # The IS-MDP pick by pick, in every order; 0.5 only after the last pick of a step.
    world = random_world(7, num_states=4, num_items=3, num_commands=2, legal_share=0.5)
    assert sorted({len(picks) for picks in world.joint}) == [1, 2]
    q: dict[tuple[int, Picks], dict[tuple[int, int], float]] = {}
    for state in range(4):
        for picks in prefixes(world, state):
            longer = [p for p in prefixes(world, state) if p[:-1] == picks and p]
            whole = [
                order
                for index in np.flatnonzero(world.allowed[state])
                for order in itertools.permutations(world.joint[index])
                if order[:-1] == picks
            ]
            q[state, picks] = {order[-1]: 0.0 for order in (*longer, *whole)}
    places = {picks: index for index, picks in enumerate(world.joint)}
    for _ in range(150):
        for (state, picks), values in q.items():
            for pair in values:
                index = places.get(tuple(sorted((*picks, pair))))
                if index is not None and world.allowed[state, index]:
                    after = [max(q[other, ()].values()) for other in range(4)]
                    chances = world.transitions[state, index]
                    values[pair] = world.rewards[state, index] + 0.5 * float(chances @ after)
                else:
                    values[pair] = max(q[state, (*picks, pair)].values())
    found = solve(world, 0.5)
    for (state, picks), values in q.items():
        expected = np.full((3, 2), NO)
        for (item, command), value in values.items():
            expected[item, command] = value
        np.testing.assert_allclose(found.phase_q(state, picks), expected, rtol=0, atol=1e-9)


def test_each_phase_promises_what_the_phase_before_it_promised():
    world = level_world(2, num_items=4, num_select=3, levels=2)
    found = solve(world, 0.9)
    for state in range(world.num_states):
        first = found.phase_q(state)
        assert first.max() == found.values[state]
        for item, command in itertools.product(range(4), range(2)):
            second = found.phase_q(state, ((item, command),))
            assert second.max() == first[item, command]
            assert (second[item] == NO).all()
    whole = ((0, 1), (1, 0), (2, 1))
    assert (found.phase_q(0, whole) == NO).all()


def test_items_in_another_order_have_their_q_values_in_that_order():
    world = level_world(1)
    found = solve(world, 0.9)
    assert world.permute is not None
    permute = jax.jit(jax.vmap(world.permute, in_axes=(0, None)))
    for order in itertools.permutations(range(3)):
        place = np.argsort(order)
        states = jnp.arange(world.num_states)
        all_turned = permute(states, jnp.asarray(order)).tolist()
        for state, turned in enumerate(all_turned):
            np.testing.assert_allclose(
                found.phase_q(turned), found.phase_q(state)[list(order)], rtol=0, atol=1e-9
            )
            np.testing.assert_allclose(
                found.phase_q(turned, ((int(place[1]), 1),)),
                found.phase_q(state, ((1, 1),))[list(order)],
                rtol=0,
                atol=1e-9,
            )


def test_a_world_in_which_an_item_is_its_index_offers_no_other_order():
    assert random_world(0).permute is None
    assert PROBES["worth"]().world.permute is None


def test_looking_ahead_pays_in_a_level_world():
    world = level_world(6)
    assert (world.num_states, len(world.joint)) == (27, 12)
    assert world.rewards.min() >= 0.0
    assert optimality(world, random_policy(world), 0.9) == pytest.approx(0.610, abs=1e-3)
    myopic = solve(world, 0.0).best_action
    assert optimality(world, myopic, 0.9) == pytest.approx(0.463, abs=1e-3)


def test_the_same_seed_is_the_same_world_and_another_is_another():
    np.testing.assert_array_equal(level_world(4).transitions, level_world(4).transitions)
    assert not np.array_equal(level_world(4).rewards, level_world(5).rewards)
    assert not np.array_equal(random_world(4).rewards, random_world(5).rewards)


def test_a_step_earns_and_moves_as_the_model_says():
    world = random_world(2, num_states=4, num_items=3, legal_share=0.7)
    step = jax.jit(jax.vmap(world.step, in_axes=(0, None, None)))
    keys = jax.random.split(jax.random.key(1), 3000)
    for state, index in np.argwhere(world.allowed).tolist():
        picks = world.joint[index]
        padded = (*picks, (-1, 0)) if len(picks) == 1 else picks
        after, reward, discount = step(keys, jnp.asarray(state), action(*padded))
        assert (np.asarray(reward) == np.float32(world.rewards[state, index])).all()
        assert (np.asarray(discount) == 1.0).all()
        shares = np.bincount(np.asarray(after), minlength=4) / 3000
        np.testing.assert_allclose(shares, world.transitions[state, index], atol=0.05)


def test_a_reset_is_uniform_over_the_states():
    world = level_world(0, levels=2)
    states = jax.jit(jax.vmap(world.reset))(jax.random.split(jax.random.key(2), 4000))
    shares = np.bincount(np.asarray(states), minlength=8) / 4000
    np.testing.assert_allclose(shares, np.full(8, 0.125), atol=0.03)


def test_what_cannot_happen_is_never_drawn():
    world = PROBES["delayed"]().world
    keys = jax.random.split(jax.random.key(3), 5000)
    step = jax.jit(jax.vmap(world.step, in_axes=(0, None, None)))
    assert (np.asarray(step(keys, jnp.asarray(0), action((0, 0), (1, 0)))[0]) == 1).all()
    assert (np.asarray(step(keys, jnp.asarray(1), action((2, 0), (1, 0)))[0]) == 0).all()


def test_the_order_of_picks_does_not_matter():
    world = level_world(0, num_items=4, num_select=3, levels=2)
    picks, key = ((0, 1), (2, 0), (3, 1)), jax.random.key(4)
    expected = np.float32(world.rewards[5, world.joint.index(picks)])
    outcomes, step = set(), jax.jit(world.step)
    for order in itertools.permutations(picks):
        state, reward, _ = step(key, jnp.asarray(5), action(*order))
        outcomes.add((int(state), float(reward)))
    assert len(outcomes) == 1
    assert outcomes.pop()[1] == expected
    found = solve(world, 0.9)
    one, other = found.phase_q(5, ((0, 1), (2, 0))), found.phase_q(5, ((2, 0), (0, 1)))
    np.testing.assert_array_equal(one, other)
    turned = jax.tree.map(lambda part: part[:, ::-1], found.best_action)
    np.testing.assert_allclose(evaluate_policy(world, turned, 0.9), found.values, atol=1e-9)


@pytest.mark.parametrize(
    "picks",
    [
        ((0, 0), (0, 0)),
        ((0, 0), (0, 1)),
        ((0, 0), (-1, 0)),
        ((0, 0), (1, 1)),
        ((0, 0), (3, 0)),
        ((0, 0), (2, 2)),
    ],
)
def test_picks_that_are_not_legal_earn_nan(picks):
    world = one_state([[1, 1], [1, 0], [1, 0]])
    _, reward, _ = world.step(jax.random.key(0), jnp.asarray(0), action(*picks))
    assert np.isnan(float(reward))


def test_where_fewer_than_k_items_are_legal_all_of_them_are_picked():
    world = one_state([[0, 1], [0, 0], [0, 0]])
    assert world.joint == (((0, 1),),)
    found = solve(world, 0.5)
    np.testing.assert_array_equal(found.best_action.items, [[0, -1]])
    np.testing.assert_array_equal(found.best_action.commands, [[1, 0]])
    np.testing.assert_array_equal(found.phase_q(0), [[NO, 2.0], [NO, NO], [NO, NO]])


def test_where_nothing_is_legal_the_step_goes_by_without_a_pick():
    world = one_state([[0, 0], [0, 0]])
    assert world.joint == ((),)
    found = solve(world, 0.5)
    np.testing.assert_array_equal(found.values, [2.0])
    np.testing.assert_array_equal(found.best_action.items, [[-1, -1]])
    assert (found.phase_q(0) == NO).all()
    _, reward, _ = world.step(jax.random.key(0), jnp.asarray(0), action((-1, 0), (-1, 0)))
    assert float(reward) == 1.0
    np.testing.assert_array_equal(random_policy(world), [[1.0]])


def test_the_best_policy_earns_in_play_what_the_model_expects():
    world = level_world(6, time_limit=50)
    found = solve(world, 0.9)
    played = evaluate(world, found.act, episodes=200, seed=5)
    picks = [tuple(zip(*row, strict=True)) for row in np.stack(found.best_action, axis=1).tolist()]
    chosen = np.array([world.joint.index(row) for row in picks])
    states, chance, expected = np.arange(27), world.start, 0.0
    for _ in range(50):
        expected += chance @ world.rewards[states, chosen] / 50
        chance = chance @ world.transitions[states, chosen]
    assert played.ci95 < 0.05
    assert played.mean_reward == pytest.approx(expected, abs=3 * played.ci95)


def test_a_policy_asked_in_every_state_can_be_judged():
    world = level_world(6)
    found = solve(world, 0.9)
    asked = table_of(world, found.act)
    np.testing.assert_array_equal(asked.items, found.best_action.items)
    assert optimality(world, asked, 0.9) == pytest.approx(1.0, abs=1e-12)


def test_tiny_worlds_keep_the_rules_of_environments():
    report = check_select_env(level_world(0, time_limit=20), steps=5)
    assert [result.name for result in report.results if result.status == "fail"] == []
    assert "permutation" in [result.name for result in report.results if result.status == "pass"]


def refused(attempt: Any) -> str:
    with pytest.raises(SelectError) as caught:
        attempt()
    return str(caught.value)


def test_a_world_that_is_not_tiny_is_refused_before_it_is_built():
    message = refused(lambda: level_world(0, num_items=8))
    assert "6561 states with 112 joint actions" in message
    assert "at most 10000000" in message
    assert "100000 states" in refused(lambda: random_world(0, num_states=100_000))
    assert "10000 joint actions" in refused(lambda: one_state(np.ones((20, 2)), num_select=5))


def test_policies_that_cannot_be_are_refused():
    world = machine()
    nobody = Action(jnp.full((2, 1), -1), jnp.zeros((2, 1), int))
    assert "[] are not legal in state 0" in refused(lambda: evaluate_policy(world, nobody, 0.5))
    flat = Action(jnp.zeros(2, int), jnp.zeros(2, int))
    assert "must be (2, 1)" in refused(lambda: evaluate_policy(world, flat, 0.5))
    assert "sum to 1" in refused(lambda: evaluate_policy(world, np.ones((2, 2)), 0.5))
    assert "must be (2, 2)" in refused(lambda: evaluate_policy(world, np.ones((2, 3)), 0.5))
    assert "gamma=1.0" in refused(lambda: solve(world, 1.0))
    signed = random_world(0)
    assert "least reward is -2.9" in refused(lambda: optimality(signed, random_policy(signed), 0.9))


def test_questions_that_have_no_answer_are_refused():
    found = solve(machine(), 0.5)
    assert "2 states" in refused(lambda: found.phase_q(2))
    assert "no pair (2, 0)" in refused(lambda: found.phase_q(0, ((2, 0),)))
    assert "not legal" in refused(lambda: found.phase_q(0, ((0, 0), (1, 0))))


def test_tables_that_are_no_model_are_refused():
    looks = np.zeros((2, 2, 1))
    assert "look alike" in refused(lambda: tabulate(lambda s, p: (0.0, 0), looks, 1))
    half = np.array([0.5, 0.0])
    assert "sum to 1" in refused(
        lambda: tabulate(lambda s, p: (0.0, half), np.eye(2)[..., None], 1)
    )
    apart = np.eye(2)[..., None]
    assert "not finite" in refused(lambda: tabulate(lambda s, p: (np.nan, 0), apart, 1))
    assert "levels=1" in refused(lambda: level_world(0, levels=1))
    assert "legal_share=2" in refused(lambda: random_world(0, legal_share=2.0))
