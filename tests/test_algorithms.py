"""The table of algorithms: what each row does, how it picks, and what its settings refuse."""

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
from selectmdp import iterative, sharing
from selectmdp.algorithms import ALGORITHMS, Shape, algorithm
from selectmdp.envs import Circle, PredatorPrey
from selectmdp.learners.presets import PRESETS, preset
from selectmdp.nets.base import count
from selectmdp.nets.dense import Dense
from selectmdp.nets.isq import ISQ
from selectmdp.nets.per_item import PerItem
from selectmdp.settings import PaperSettings, with_changes
from selectmdp.spec import SelectError
from selectmdp.types import Action, Observation

jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # runs few times
CIRCLE = Circle(num_items=4, num_context=1, num_select=3)
PICKS = 2000


def agent_of(name: str, env: Any = CIRCLE) -> agents.Agent:
    return agents.make(name, env, shape=Shape(5, 1, (7,)))


@cache
def params_of(name: str, env: Any = CIRCLE) -> Any:
    """Random parameters: values far apart."""
    rng = np.random.default_rng(1)
    shapes = jax.eval_shape(agent_of(name, env).init, jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype), shapes)


@cache
def acting(name: str, env: Any = CIRCLE) -> Any:
    """Many picks in one state: (parameters, map, observation, ε) → action and values [PICKS, …]."""
    agent = agent_of(name, env)
    keys = jax.random.split(jax.random.key(7), PICKS)
    return jit(lambda *given: jax.vmap(lambda key: agent.act(key, *given))(keys))


def picked(name: str, seen: Observation, epsilon: float, env: Any = CIRCLE) -> tuple[Action, Any]:
    kind = ALGORITHMS[name].sharing
    phase_map = sharing.as_array(sharing.first_map(kind, env.spec.num_select))
    action, values, *_ = acting(name, env)(
        params_of(name, env), phase_map, seen, jnp.asarray(epsilon, jnp.float32)
    )
    return jax.tree.map(np.asarray, action), np.asarray(values)


def circles(seed: int = 0, legal: Any = None) -> Observation:
    rng = np.random.default_rng(seed)
    return Observation(
        items=jnp.asarray(rng.uniform(-0.5, 0.5, (4, 3)), jnp.float32),
        context=jnp.asarray(rng.uniform(-0.5, 0.5, (1, 3)), jnp.float32),
        present=jnp.ones(4, bool),
        context_present=jnp.ones(1, bool),
        legal=jnp.asarray(np.ones((4, 5), bool) if legal is None else legal),
    )


def test_the_rows_differ_in_what_the_paper_says() -> None:
    unified = {name for name, row in ALGORITHMS.items() if row.sharing == "unified"}
    assert unified == {"isq-u", "idqn", "idqn-own"}
    assert {name for name, row in ALGORITHMS.items() if row.sharing == "progressive"} == {"isq-p"}
    assert {name for name, row in ALGORITHMS.items() if row.random_item} == {"rsq"}
    assert {name for name, row in ALGORITHMS.items() if not row.rule.looks_ahead} == {"myopic"}
    assert {name for name, row in ALGORITHMS.items() if not row.rule.chains} == {"idqn", "idqn-own"}


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("isq-i", ISQ(5, 1)),
        ("isq-u", ISQ(5, 1)),
        ("isq-p", ISQ(5, 1)),
        ("isq-i-1", ISQ(5, 1)),
        ("myopic", ISQ(5, 1)),
        ("rsq", ISQ(5, 1)),
        ("eq", ISQ(5, 1, ("selected", "context"))),
        ("eq-local", ISQ(5, 1, ())),
        ("idqn", ISQ(5, 1, selected=False)),
        ("idqn-own", PerItem(ISQ(5, 1, selected=False))),
        ("vanilla", Dense((7,))),
    ],
)
def test_each_row_has_its_network(name: str, network: Any) -> None:
    assert agent_of(name).network == network


def test_an_unknown_algorithm_is_told_which_there_are() -> None:
    with pytest.raises(
        SelectError, match=r"'isq' is none of isq-i, isq-u, isq-p, isq-i-1, vanilla"
    ):
        algorithm("isq")
    with pytest.raises(SelectError, match=r"'dqn' is none of .*, rsq, idqn, idqn-own"):
        agents.make("dqn", CIRCLE)


def test_an_unknown_preset_is_told_which_there_are() -> None:
    assert preset("paper") is PRESETS["paper"]
    with pytest.raises(SelectError, match="preset 'quick' is none of fast, paper"):
        preset("quick")


def test_sorting_sorts_circles_by_radius_largest_first() -> None:
    order = agent_of("sorting").network.order
    seen = circles()._replace(
        items=jnp.asarray([[0.5, 0.5, 0.1], [0.0, 0.0, 0.4], [0.5, 0.5, 0.2], [0.1, 0.3, 0.3]])
    )
    assert order(seen).tolist() == [1, 3, 2, 0]
    absent = seen._replace(present=jnp.asarray([True, False, True, True]))
    assert order(absent).tolist() == [3, 2, 0, 1]
    assert agent_of("vanilla").network.order is None


def test_sorting_sorts_by_features_where_a_world_does_not_say() -> None:
    seen = Shelf().observe(ShelfState(jnp.ones(4, bool), jnp.zeros((), jnp.int32)))
    assert agent_of("sorting", Shelf()).network.order(seen).tolist() == [3, 2, 1, 0]


def size(name: str, num_items: int, num_select: int) -> int:
    agent = agents.make(name, Circle(num_items=num_items, num_select=num_select))
    return count(jax.eval_shape(agent.init, jax.random.key(0)))


def test_isq_has_as_many_parameters_for_any_number_of_items() -> None:
    # Two sets, 48 channels: (3 + 8 + 2 · 11 + 2) · 48, then 2 · (48 + 96 + 1) · 48, then 145 · 5.
    assert size("isq-u", 50, 6) == 35 * 48 + 290 * 48 + 725 == 16325
    assert size("isq-u", 200, 6) == size("isq-u", 20, 3) == 16325
    assert [size("isq-i", 50, k) for k in (1, 2, 6)] == [16325, 2 * 16325, 6 * 16325]
    assert size("isq-i", 200, 6) == size("isq-p", 200, 6) == 6 * 16325


def test_vanilla_has_parameters_with_the_square_of_n_for_each_phase() -> None:
    # N=50, K=1: 150 + 8 inputs, two layers of 948, 250 outputs.
    assert size("vanilla", 50, 1) == 159 * 948 + 949 * 948 + 949 * 250
    assert size("vanilla", 400, 1) / size("vanilla", 200, 1) == pytest.approx(4.0, rel=0.03)
    assert size("vanilla", 400, 6) / size("vanilla", 400, 3) == pytest.approx(2.0, rel=0.05)
    assert size("idqn-own", 50, 6) == 50 * size("idqn", 50, 6)


def test_without_exploring_every_pick_is_the_best_legal_one() -> None:
    mask = np.ones((4, 5), bool)
    mask[2, 3] = mask[0, :4] = False
    for name in ("isq-i", "vanilla"):
        action, values = picked(name, circles(legal=mask), epsilon=0.0)
        assert (action.items == action.items[:1]).all()
        assert (action.commands == action.commands[:1]).all()
        left = mask.copy()
        for phase in range(3):
            best = np.where(left, values[0, phase], -np.inf)
            item, command = int(action.items[0, phase]), int(action.commands[0, phase])
            assert best[item, command] == best.max()
            left[item] = False


def test_the_values_of_each_phase_are_those_of_its_own_set_after_the_picks() -> None:
    agent, seen = agent_of("isq-i"), circles(3)
    action, values = picked("isq-i", seen, epsilon=0.0)
    before = iterative.selections(jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), action))
    one = jit(agent.network.values)
    for phase in range(3):
        own = jax.tree.map(lambda leaf, k=phase: leaf[k], params_of("isq-i"))
        picks = jax.tree.map(lambda leaf, k=phase: leaf[k], before.picks)
        np.testing.assert_allclose(values[0, phase], one(own, seen, picks), rtol=1e-5, atol=1e-5)


def test_exploring_always_takes_every_legal_pair_as_often() -> None:
    mask = np.ones((4, 5), bool)
    mask[1, :4] = mask[3] = False  # 5 + 1 + 5 pairs
    action, _ = picked("isq-i", circles(legal=mask), epsilon=1.0)
    first = np.bincount(action.items[:, 0] * 5 + action.commands[:, 0], minlength=20)
    assert (first[~mask.ravel()] == 0).all()
    assert (abs(first[mask.ravel()] - PICKS / 11) < 65).all()  # 5 standard deviations
    # After item 1, each pair of items 0 and 2.
    after = action.items[:, 0] == 1
    second = np.bincount((action.items * 5 + action.commands)[after, 1], minlength=20)
    expected = after.sum() / 10
    assert (abs(second[[*range(5), *range(10, 15)]] - expected) < 5 * expected**0.5).all()


def test_each_phase_explores_for_itself() -> None:
    action, _ = picked("isq-i", circles(), epsilon=0.0)
    greedy = action.items[0] * 5 + action.commands[0]
    action, values = picked("isq-i", circles(), epsilon=0.3)
    pairs = action.items * 5 + action.commands
    strays_first = pairs[:, 0] != greedy[0]
    assert abs(strays_first.mean() - 0.3 * 19 / 20) < 0.052  # 5 standard deviations
    left = np.ones((PICKS, 20), bool)
    left.reshape(PICKS, 4, 5)[np.arange(PICKS), action.items[:, 0]] = False
    best = np.where(left, values[:, 1].reshape(PICKS, 20), -np.inf).argmax(axis=1)
    strays_second = pairs[:, 1] != best
    assert abs(strays_second.mean() - 0.3 * 14 / 15) < 0.052
    both = (strays_first & strays_second).mean()
    assert abs(both - strays_first.mean() * strays_second.mean()) < 0.032


@given(
    seed=st.integers(0, 2**31 - 1),
    epsilon=st.sampled_from([0.0, 0.5, 1.0]),
    name=st.sampled_from(["isq-u", "rsq", "vanilla"]),
)
def test_no_pick_is_ever_illegal(seed: int, epsilon: float, name: str) -> None:
    rng = np.random.default_rng(seed)
    mask, present = rng.random((4, 5)) < 0.2, rng.random(4) < 0.7
    seen = circles(seed, mask)._replace(present=jnp.asarray(present))
    action, _ = picked(name, seen, epsilon)
    able = present & mask.any(axis=1)
    number = min(3, int(able.sum()))
    made, rest = action.items[:, :number], action.items[:, number:]
    assert (rest == -1).all()
    assert (action.commands[:, number:] == 0).all()
    assert mask[made, action.commands[:, :number]].all()
    assert present[made].all()
    ordered = np.sort(made, axis=1)
    assert (np.diff(ordered, axis=1) > 0).all()


def test_picks_respect_what_a_world_forbids_after_earlier_ones() -> None:
    env = Shelf(num_items=4, num_select=3, sell_only=1)
    seen = env.observe(ShelfState(jnp.ones(4, bool), jnp.zeros((), jnp.int32)))
    action, _ = picked("isq-u", seen, epsilon=1.0, env=env)
    sold = (action.commands == 1) & (action.items >= 0)
    assert (sold.sum(axis=1) <= 1).all()
    assert sold[action.items == 0].all()
    assert (action.items >= 0).all()
    assert 0.5 < sold.any(axis=1).mean() < 1.0


def test_rsq_takes_items_at_random_and_their_best_commands_even_without_exploring() -> None:
    mask = np.ones((4, 5), bool)
    mask[1, :4] = mask[3] = False
    action, values = picked("rsq", circles(legal=mask), epsilon=0.0)
    first = np.bincount(action.items[:, 0], minlength=4)
    assert first[3] == 0
    assert (abs(first[:3] - PICKS / 3) < 106).all()  # each item, not each pair: 5 deviations
    second = np.bincount(action.items[action.items[:, 0] == 0, 1], minlength=4)
    assert second[0] == second[3] == 0
    assert abs(second[1] - second[2]) < 130
    for phase in range(3):
        rows = np.where(mask, values[:, phase], -np.inf)[np.arange(PICKS), action.items[:, phase]]
        assert (rows.argmax(axis=1) == action.commands[:, phase]).all()


def test_rsq_that_explores_takes_the_commands_at_random_too() -> None:
    action, _ = picked("rsq", circles(), epsilon=1.0)
    pairs = np.bincount(action.items[:, 0] * 5 + action.commands[:, 0], minlength=20)
    assert (abs(pairs - PICKS / 20) < 50).all()


def test_isq_i_1_only_ever_says_stay() -> None:
    env = Circle(num_items=4, num_context=1, num_select=3, commands=("up", "stay", "left"))
    seen = circles(legal=np.ones((4, 3), bool))
    for epsilon in (0.0, 1.0):
        action, _ = picked("isq-i-1", seen, epsilon, env)
        assert (action.commands == 1).all()
        assert (action.items >= 0).all()
    agent = agent_of("isq-i-1", env)
    assert agent.commands == (False, True, False)
    assert agent.open_pairs(seen, iterative.empty(3)).tolist() == [[False, True, False]] * 4


def test_isq_i_1_stays_in_a_world_that_has_its_commands_in_another_order() -> None:
    world = Circle(num_items=4, num_context=1, num_select=3, commands=("up", "right", "stay"))
    more = Circle(num_items=4, num_context=1, num_select=3, commands=("stay", "up", "right"))
    agent = agents.make("isq-i-1", world, shape=Shape(5, 1))
    learned = jit(agent.init)(jax.random.key(0)), jnp.arange(3)
    for place, command in ((world, 2), (more, 0)):
        seen = circles(legal=np.ones((4, 3), bool))
        action = jit(agent.actor(place))(learned, jax.random.key(1), None, seen)
        assert action.commands.tolist() == [command] * 3


def test_isq_i_1_is_refused_where_no_command_is_stay() -> None:
    with pytest.raises(SelectError, match="only gives the command 'stay', and this world has up"):
        agents.make("isq-i-1", Circle(commands=("up", "down")))
    with pytest.raises(SelectError, match="this world does not name its commands; take another"):
        agents.make("isq-i-1", Shelf())
    assert agents.make("isq-i-1", PredatorPrey()).commands == (True, False, False, False, False)


def test_an_actor_serves_a_world_of_other_sizes_and_its_rules() -> None:
    trained, shown = Shelf(4, 3), Shelf(6, 2, sell_only=2)
    act = jit(agent_of("isq-u", trained).actor(shown))
    seen = shown.observe(shown.reset(jax.random.key(0)))
    learned = params_of("isq-u", trained), jnp.zeros(2, jnp.int32)
    action = act(learned, jax.random.key(0), None, seen)
    assert action.items.shape == (2,)
    assert len(set(action.items.tolist())) == 2
    with pytest.raises(SelectError, match="item_features=3"):
        agent_of("isq-u", trained).actor(CIRCLE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "batch_size=0: must be at least 1"),
        ({"batch_size": 2.5}, "batch_size=2.5: must be a whole number, not float"),
        ({"channels": True}, "channels=True: must be a whole number"),
        ({"learning_rate": 0.0}, "learning_rate=0.0: must be more than 0 and finite"),
        ({"learning_rate": float("nan")}, "learning_rate=nan: must be more than 0"),
        ({"learning_rate": "1"}, "learning_rate='1': must be a number"),
        ({"adam_epsilon": float("inf")}, "adam_epsilon=inf: must be more than 0 and finite"),
        ({"discount": 1.5}, "discount=1.5: must be more than 0 and at most 1"),
        ({"epsilon_end": -0.1}, "epsilon_end=-0.1: must be more than 0 and at most 1"),
        ({"exploration_share": 2}, "exploration_share=2: must be more than 0 and at most 1"),
        ({"hidden": (8, 0)}, "hidden=0: must be at least 1"),
        ({"hidden": 8}, "hidden=8: must be a tuple of whole numbers"),
        ({"chunk": 300}, "chunk=300: must divide target_period=1000"),
        ({"num_envs": 7}, "num_envs=7: must divide chunk=250"),
        ({"replay_capacity": 1}, "replay_capacity=1: must be at least 2 × num_envs = 2"),
        (
            {"replay_capacity": 9, "num_envs": 5},
            "replay_capacity=9: must be at least 2 × num_envs = 10",
        ),
        ({"replay": 10}, "no setting 'replay': there are channels, layers, hidden, sums"),
    ],
)
def test_a_setting_out_of_range_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SelectError) as told:
        with_changes(PaperSettings, changes)
    assert message in str(told.value)


def test_settings_are_the_papers_unless_changed() -> None:
    settings = with_changes(PaperSettings, {"hidden": [8, 4], "discount": 1})
    assert settings.hidden == (8, 4)
    assert settings.discount == 1.0
    paper = PaperSettings()
    assert (paper.batch_size, paper.learning_rate, paper.adam_epsilon) == (64, 1e-3, 0.01)
    assert (paper.discount, paper.replay_capacity, paper.target_period) == (0.99, 50_000, 1000)
    assert (paper.channels, paper.layers, paper.epsilon_end) == (48, 2, 0.1)
