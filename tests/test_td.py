"""Targets by literal numbers, and the batched phases of an agent against one phase at a time."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import Shelf, ShelfState

from selectmdp import agent as agents
from selectmdp import iterative, sharing, td
from selectmdp.algorithms import ALGORITHMS, Shape
from selectmdp.envs import Circle
from selectmdp.td import Following, Rule
from selectmdp.types import Action, Observation, Transition

jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # runs few times
BEST = Rule(td.best)
VALUES = [  # after one pick, after two, and of the next observation: three items, two commands
    [[1.0, 5.0], [2.0, 3.0], [9.0, 4.0]],
    [[0.5, -1.0], [7.0, 6.0], [-3.0, 2.0]],
    [[10.0, 20.0], [60.0, 40.0], [30.0, 50.0]],
]
ALL = np.ones((3, 3, 2), bool)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}

targets = jit(td.targets, static_argnums=(0, 5))
expanded = jit(iterative.expand)


def learned(
    rule: Rule,
    items: Any,
    reward: float = 2.0,
    discount: float = 0.5,
    legal: Any = ALL,
    allow_pass: bool = False,
) -> list[float]:
    following = Following(np.array(VALUES, np.float32), legal)
    return targets(rule, np.array(items), reward, discount, following, allow_pass).tolist()


def without(*pairs: tuple[int, int, int]) -> Any:
    """All pairs are legal but these (slot, item, command)."""
    legal = ALL.copy()
    legal[tuple(np.array(pairs).T)] = False
    return legal


def test_between_phases_the_discount_is_1_and_after_the_last_pick_it_counts() -> None:
    assert learned(BEST, [0, 1, 2]) == [9.0, 7.0, 2.0 + 0.5 * 60.0]


def test_only_legal_pairs_are_looked_at() -> None:
    legal = without((0, 2, 0), (1, 1, 0), (1, 1, 1), (2, 1, 0), (2, 2, 1))
    assert learned(BEST, [0, 1, 2], legal=legal) == [5.0, 2.0, 2.0 + 0.5 * 40.0]


def test_where_nothing_is_legal_next_what_the_last_pick_is_worth_is_not_known() -> None:
    legal = ALL.copy()
    legal[2] = False
    for name in ("isq-i", "rsq"):
        target = learned(ALGORITHMS[name].rule, [0, 1, 2], legal=legal)
        assert np.isnan(target).tolist() == [False, False, True]
    assert learned(BEST, [0, 1, 2], legal=legal, discount=0.0) == [9.0, 7.0, 2.0]
    assert learned(ALGORITHMS["myopic"].rule, [0, 1, 2], legal=legal)[2] == 2.0


def test_an_item_that_nobody_can_pick_any_more_has_no_future_of_its_own() -> None:
    legal = ALL.copy()
    legal[2] = False
    assert learned(ALGORITHMS["idqn"].rule, [0, 1, 2], legal=legal) == [2.0, 2.0, 2.0]


def test_a_pass_ends_the_picks_and_looks_at_the_next_observation() -> None:
    assert learned(BEST, [0, -1, -1], allow_pass=True)[:2] == [9.0, 32.0]
    assert learned(BEST, [-1, -1, -1], allow_pass=True)[0] == 32.0
    assert learned(BEST, [0, 1, 2], allow_pass=True) == [9.0, 7.0, 32.0]


def test_a_terminal_has_no_future() -> None:
    assert learned(BEST, [0, 1, 2], discount=0.0) == [9.0, 7.0, 2.0]


def test_where_the_picks_end_early_the_last_one_taken_looks_at_the_next_observation() -> None:
    assert learned(BEST, [0, 1, -1])[:2] == [9.0, 32.0]
    assert learned(BEST, [2, -1, -1])[:1] == [32.0]


def test_where_nothing_was_picked_the_targets_are_finite() -> None:
    legal = np.zeros((3, 3, 2), bool)
    for name in ("isq-i", "rsq", "idqn", "myopic"):
        assert np.isfinite(learned(ALGORITHMS[name].rule, [-1, -1, -1], legal=legal)).all()


def test_a_myopic_last_pick_learns_the_reward_alone_and_earlier_ones_chain() -> None:
    rule = ALGORITHMS["myopic"].rule
    assert learned(rule, [0, 1, 2]) == [9.0, 7.0, 2.0]
    assert learned(rule, [0, 1, -1])[:2] == [9.0, 2.0]


def test_rsq_looks_at_the_mean_over_items_of_their_best_commands() -> None:
    rule = ALGORITHMS["rsq"].rule
    # 5, 3, 9; then ½, 7, 2; then 20, 60, 50.
    expected = [17 / 3, 9.5 / 3, 2.0 + 0.5 * 130 / 3]
    assert learned(rule, [0, 1, 2]) == pytest.approx(expected)
    # Item 2 has left after the first pick, items 2 and 1 after the second; item 0 only stays.
    legal = without(
        (0, 2, 0), (0, 2, 1), (1, 2, 0), (1, 2, 1), (1, 1, 0), (1, 1, 1), (1, 0, 0), (2, 0, 1)
    )
    expected = [8 / 2, -1.0, 2.0 + 0.5 * 120 / 3]
    assert learned(rule, [2, 1, 0], legal=legal) == pytest.approx(expected)


def test_every_pick_of_idqn_learns_from_the_reward_and_its_own_next_value() -> None:
    for name in ("idqn", "idqn-own"):
        rule = ALGORITHMS[name].rule
        assert learned(rule, [1, 0, 2]) == [2.0 + 30.0, 2.0 + 10.0, 2.0 + 25.0]
        assert learned(rule, [1, 0, -1])[:2] == [32.0, 12.0]
        gone = without((2, 1, 0), (2, 0, 0), (2, 0, 1))
        assert learned(rule, [1, 0, 2], legal=gone) == [2.0 + 20.0, 2.0, 2.0 + 25.0]


def test_with_one_pick_the_target_is_that_of_dqn() -> None:
    following = Following(np.array(VALUES[2:], np.float32), ALL[2:])
    one = targets(BEST, np.array([1]), 2.0, 0.5, following)
    assert one.tolist() == [32.0]


def test_no_gradient_flows_through_a_target() -> None:
    def total(values: Any) -> Any:
        following = Following(values, jnp.asarray(ALL))
        given = jnp.asarray([0, 1, 2]), jnp.asarray(2.0), jnp.asarray(0.5)
        return td.targets(BEST, *given, following).sum()

    assert not jax.grad(total)(jnp.asarray(VALUES)).any()


@given(
    items=st.permutations(range(3)),
    count=st.integers(0, 3),
    seed=st.integers(0, 2**31 - 1),
    name=st.sampled_from(["isq-i", "rsq", "myopic", "idqn"]),
)
def test_targets_are_those_of_loops_over_phases(
    items: list[int], count: int, seed: int, name: str
) -> None:
    rng = np.random.default_rng(seed)
    values, legal = rng.normal(size=(3, 3, 2)).astype(np.float32), rng.random((3, 3, 2)) < 0.6
    picks = [item if place < count else -1 for place, item in enumerate(items)]

    def worth(slot: int, item: int) -> float:
        best = [
            max((float(values[slot, i, c]) for c in range(2) if legal[slot, i, c]), default=None)
            for i in range(3)
        ]
        if name == "idqn":
            return best[item] or 0.0
        known = [one for one in best if one is not None]
        if not known:
            return 0.0
        return sum(known) / len(known) if name == "rsq" else max(known)

    got = targets(ALGORITHMS[name].rule, np.array(picks), 1.5, 0.9, Following(values, legal))
    got = np.asarray(got)
    for phase in range(count):
        if phase == count - 1 or name == "idqn":
            ahead = 0.0 if name == "myopic" else 0.9 * worth(2, picks[phase])
            assert got[phase] == pytest.approx(1.5 + ahead, abs=1e-5)
        else:
            assert got[phase] == pytest.approx(worth(phase, picks[phase]), abs=1e-5)


SHELF = Shelf(num_items=4, num_select=3, sell_only=1)
CIRCLE = Circle(num_items=5, num_context=2, num_select=3)
SINGLE = Circle(num_items=5, num_context=2, num_select=1)
MAPS = {"independent": (0, 1, 2), "unified": (0, 0, 0), "progressive": (0, 0, 2)}
CASES = [
    "isq-i on shelf",
    "isq-u on shelf",
    "isq-p on shelf",
    "vanilla on shelf",
    "isq-p on circle",
    "eq on circle",
    "eq-local on circle",
    "idqn on circle",
    "idqn-own on circle",
    "isq-i-1 on circle",
    "isq-i on single",
    "isq-u on single",
    *("isq-i of pairs on circle", "isq-u of pairs on circle", "isq-p of pairs on shelf"),
    *("eq of pairs on circle", "idqn of pairs on circle", "idqn-own of pairs on circle"),
]


@cache
def shelf_steps() -> Transition:
    """Steps of a shelf: full ones, some with fewer picks than K, and one with none."""
    on_shelf = [
        ([1, 1, 1, 1], [1, 0, 1, 0], [3, 1, 2], [1, 0, 0]),
        ([1, 1, 1, 1], [0, 0, 0, 1], [0, 1, 2], [1, 0, 0]),
        ([1, 0, 1, 0], [0, 0, 0, 0], [2, 0, -1], [0, 1, 0]),
        ([1, 0, 1, 0], [1, 0, 0, 0], [2, -1, -1], [1, 0, 0]),  # item 0 can only be sold
        ([0, 0, 0, 1], [1, 1, 1, 1], [3, -1, -1], [0, 0, 0]),
        ([0, 0, 0, 0], [1, 1, 1, 1], [-1, -1, -1], [0, 0, 0]),
    ]
    now, then, items, commands = (jnp.asarray(part) for part in zip(*on_shelf, strict=True))

    def seen(rows: Any) -> Any:
        return jax.vmap(SHELF.observe)(ShelfState(rows.astype(bool), jnp.zeros(6, jnp.int32)))

    discount = np.array([0.9, 0.9, 0.9, 0.9, 0.0, 0.9], np.float32)
    made = Action(items, commands), np.arange(6, dtype=np.float32), discount, np.zeros(6, bool)
    return jax.tree.map(np.asarray, Transition(seen(now), *made, seen(then)))


@cache
def circle_steps(num_select: int) -> Transition:
    """Circles of which some are absent or not legal, and up to K random legal picks."""
    rng = np.random.default_rng(3)

    def seen() -> Observation:
        return Observation(
            items=rng.uniform(-1, 1, (6, 5, 3)).astype(np.float32),
            context=rng.uniform(-1, 1, (6, 2, 3)).astype(np.float32),
            present=rng.random((6, 5)) < 0.5,
            context_present=rng.random((6, 2)) < 0.7,
            legal=rng.random((6, 5, 5)) < 0.5,
        )

    now, items, commands = seen(), np.full((6, num_select), -1), np.zeros((6, num_select), int)
    for row in range(6):
        mask = now.legal[row] & now.present[row][:, None]
        able = rng.permutation(np.flatnonzero(mask.any(axis=1)))[:num_select]
        items[row, : len(able)] = able
        commands[row, : len(able)] = [rng.choice(np.flatnonzero(mask[item])) for item in able]
    ones = np.ones(6, np.float32)
    return Transition(now, Action(items, commands), ones, 0.9 * ones, np.zeros(6, bool), seen())


def at(tree: Any, place: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[place], tree)


def phases_of(steps: Transition) -> Iterator[tuple[int, int, iterative.PhaseTransition]]:
    """(step, phase, transition) of every pick that was made, one by one."""
    for row in range(6):
        phases = jax.tree.map(np.asarray, expanded(at(steps, row)))
        for phase in np.flatnonzero(phases.taken).tolist():
            yield row, phase, at(phases, phase)


def learner_of(case: str) -> tuple[agents.Agent, Any, tuple[int, ...], Transition]:
    """An agent, random parameters, a map of its sharing, and steps of its world."""
    kind, world = case.split(" on ")
    name, _, pairs = kind.partition(" of ")
    env = {"shelf": SHELF, "circle": CIRCLE, "single": SINGLE}[world]
    steps = shelf_steps() if world == "shelf" else circle_steps(env.num_select)
    channels = 6 if world == "shelf" else 9  # few and many features are multiplied in two ways
    agent = agents.make(name, env, shape=Shape(channels, 2, (8,), pairs=bool(pairs)))
    rng = np.random.default_rng(1)
    params = jax.tree.map(
        lambda leaf: (0.5 * rng.normal(size=leaf.shape)).astype(np.float32),
        jax.eval_shape(agent.init, jax.random.key(0)),
    )
    return agent, params, MAPS[agent.algorithm.sharing][: env.num_select], steps


@pytest.mark.parametrize("case", CASES)
def test_phases_in_a_batch_are_worth_what_they_are_one_by_one(case: str) -> None:
    agent, params, phase_map, steps = learner_of(case)

    @jit
    def batched(params: Any, phase_map: Any, steps: Transition) -> Any:
        picked = agent.picked_values(params, phase_map, steps.observation, steps.action)
        return picked, agent.following(params, phase_map, steps)

    picked, following = jax.tree.map(
        np.asarray, batched(params, sharing.as_array(phase_map), steps)
    )
    spec = agent.spec
    assert picked.shape == (spec.num_select, 6)
    assert following.values.shape == following.legal.shape
    assert following.legal.shape == (6, spec.num_select, spec.num_items, spec.num_commands)
    values, open_pairs = jit(agent.network.values), jit(agent.open_pairs)
    few = 0
    for row, phase, one in phases_of(steps):
        own = at(params, phase_map[phase])
        pairs = np.asarray(values(own, one.observation, one.selection.picks))
        np.testing.assert_allclose(picked[phase, row], pairs[one.item, one.command], **CLOSE)
        slot = spec.num_select - 1 if one.last else phase
        mask = np.asarray(open_pairs(one.next_observation, one.next_selection))
        np.testing.assert_array_equal(following.legal[row, slot], mask)
        own = at(params, phase_map[int(one.next_selection.phase)])
        pairs = np.asarray(values(own, one.next_observation, one.next_selection.picks))
        np.testing.assert_allclose(following.values[row, slot][mask], pairs[mask], **CLOSE)
        few += bool(one.last) and phase < 2
    assert few >= 1  # some steps had fewer picks than three


def test_what_earlier_picks_forbid_is_not_legal_in_later_phases() -> None:
    agent = agents.make("isq-u", SHELF, shape=Shape(2, 1))
    params = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape), jax.eval_shape(agent.init, jax.random.key(0))
    )
    legal = jit(lambda *given: agent.following(*given).legal)(
        params, jnp.zeros(3, jnp.int32), shelf_steps()
    )
    # Of the first step: item 3 was sold, so nothing else can be; item 0 can only be sold.
    assert legal[0, 0].tolist() == [[False, False], [True, False], [True, False], [False, False]]
    assert legal[0, 1].tolist() == [[False, False], [False, False], [True, False], [False, False]]
    assert legal[0, 2].tolist() == [[False, True], [False, False], [True, True], [False, False]]


@pytest.mark.parametrize("case", ["isq-i of pairs on circle", "isq-u of pairs on circle"])
def test_large_states_share_one_by_one_what_small_ones_share_together(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, params, sets, steps = learner_of(case)
    phase_map = sharing.as_array(sets)

    def slopes(params: Any) -> Any:
        def total(params: Any) -> Any:
            values = agent.picked_values(params, phase_map, steps.observation, steps.action)
            return jnp.square(values).sum()

        return jit(jax.value_and_grad(total))(params)

    together = slopes(params)
    monkeypatch.setattr(agents, "ROWS_TOGETHER", 1)
    one_by_one = slopes(params)
    assert float(together[0]) > 1.0
    jax.tree.map(
        lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4),
        one_by_one,
        together,
    )


@pytest.mark.parametrize("case", ["isq-p on shelf", "isq-u on circle", "isq-i of pairs on circle"])
def test_the_gradient_of_phases_in_a_batch_is_that_of_phases_one_by_one(case: str) -> None:
    agent, params, sets, steps = learner_of(case)
    phase_map = sharing.as_array(sets)
    rng = np.random.default_rng(2)
    weights = np.where((steps.action.items >= 0).T, rng.normal(size=(3, 6)), 0.0)

    def batched(params: Any, steps: Transition) -> Any:
        values = agent.picked_values(params, phase_map, steps.observation, steps.action)
        return (jnp.asarray(weights, jnp.float32) * values).sum()

    def alone(params: Any, one: iterative.PhaseTransition) -> Any:
        own = sharing.of_phase(params, phase_map, one.selection.phase)
        values = agent.network.values(own, one.observation, one.selection.picks)
        return values[one.item, one.command]

    slope, total = jit(jax.grad(alone)), jax.tree.map(np.zeros_like, params)
    for row, phase, one in phases_of(steps):
        weight, more = weights[phase, row], jax.tree.map(np.asarray, slope(params, one))
        total = jax.tree.map(lambda left, right, by=weight: left + by * right, total, more)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(total)) > 0.5
    jax.tree.map(
        lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4),
        jit(jax.grad(batched))(params, steps),
        total,
    )
