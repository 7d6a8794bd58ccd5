"""The fast learner: λ-returns by numbers and by a slow oracle, and what it learns, exactly."""

from functools import cache, partial
from itertools import permutations, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probing
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probing import (
    ALL_PROBES,
    LEVELS,
    NEAR,
    furthest,
    jit,
    same,
    share_of_the_best,
    started,
    trained,
    values_by,
)
from worlds import Shelf, ShelfState

import selectmdp as sm
from selectmdp import agent as agents
from selectmdp import theory
from selectmdp.engines import Compiled, _added
from selectmdp.learners.base import Played
from selectmdp.learners.qlambda import (
    Aside,
    QLambda,
    State,
    at_last_pick,
    in_groups,
    lambda_returns,
)
from selectmdp.settings import FastSettings
from selectmdp.spec import SelectError
from selectmdp.theory import PROBES
from selectmdp.types import Action, Transition

programs = probing.programs
FEW: dict[str, Any] = {"channels": 8, "hidden": (8,), "num_envs": 4, "minibatch": 4, "chunk": 32}
LEARNS = FastSettings(
    channels=32,
    num_envs=16,
    rollout=8,
    minibatch=32,
    epochs=4,
    learning_rate=3e-3,
    discount=0.9,
    epsilon_end=0.3,
    averaging=0.2,
    chunk=256,
)


def qlambda(name: str, total_steps: int, env: Any, settings: FastSettings) -> QLambda:
    return QLambda(agents.make(name, env, shape=settings.shape), settings, total_steps)


def returns(
    rewards: Any,
    worth: Any,
    *,
    taken: Any = None,
    greedy: Any = None,
    discount: Any = None,
    cut: Any = None,
    promised: Any = None,
    lambda_steps: float = 0.5,
    lambda_phases: float = 0.5,
) -> Any:
    """Of one environment: rewards and worth are [T, K]."""
    rewards, worth = (np.asarray(each, np.float32) for each in (rewards, worth))
    length = len(rewards)

    def rows(given: Any, usual: Any, kind: Any = np.float32) -> Any:
        return jnp.asarray(np.asarray(usual if given is None else given, kind)[:, None])

    made = lambda_returns(
        taken=rows(taken, np.ones(rewards.shape), bool),
        rewards=rows(rewards, None),
        discount=rows(discount, np.full(length, 0.5)),
        cut=rows(cut, np.zeros(length), bool),
        promised=rows(promised, np.zeros(length)),
        aside=Aside(rows(worth, None), rows(greedy, np.ones(rewards.shape), bool)),
        lambda_steps=lambda_steps,
        lambda_phases=lambda_phases,
    )
    return np.asarray(made)[:, 0]


def test_a_return_runs_from_pick_to_pick_and_from_step_to_step() -> None:
    # Step 2: its last pick earns 4 + 0.5 · 20 = 14; its first sees the worth 6 of the last, and
    # half of what is beyond: 6 + 0.5 (14 − 6) = 10.
    # Step 1: its last pick earns 2 + 0.5 (8 + 0.5 (10 − 8)) = 6.5, where 8 is the worth of step 2;
    # its first 3 + 0.5 (6.5 − 3) = 4.75.
    made = returns([[0, 2], [0, 4]], [[1, 3], [8, 6]], promised=[0, 20])
    np.testing.assert_allclose(made, [[4.75, 6.5], [10.0, 14.0]])


def test_between_steps_and_between_phases_trust_is_set_apart() -> None:
    given = [[0, 2], [0, 4]], [[1, 3], [8, 6]]
    all_phases = returns(*given, promised=[0, 20], lambda_steps=0.0, lambda_phases=1.0)
    np.testing.assert_allclose(all_phases, [[6.0, 6.0], [14.0, 14.0]])
    all_steps = returns(*given, promised=[0, 20], lambda_steps=1.0, lambda_phases=0.0)
    np.testing.assert_allclose(all_steps, [[3.0, 5.0], [6.0, 14.0]])


def test_a_return_is_cut_where_a_later_pick_explored() -> None:
    given = [[0, 2], [0, 4]], [[1, 3], [8, 6]]
    made = returns(*given, promised=[0, 20], greedy=[[1, 1], [0, 1]])
    np.testing.assert_allclose(made, [[4.5, 6.0], [10.0, 14.0]])  # step 1 sees 8 alone
    made = returns(*given, promised=[0, 20], greedy=[[1, 0], [1, 0]])
    np.testing.assert_allclose(made, [[3.0, 5.5], [6.0, 14.0]])  # first picks see worth alone


def test_a_time_limit_stops_a_return_with_what_was_promised_and_a_terminal_with_nothing() -> None:
    given = [[0, 2], [0, 4]], [[1, 3], [8, 6]]
    made = returns(*given, promised=[10, 20], cut=[1, 0])
    np.testing.assert_allclose(made, [[5.0, 7.0], [10.0, 14.0]])
    made = returns(*given, promised=[10, 20], discount=[0, 0])
    np.testing.assert_allclose(made, [[2.5, 2.0], [5.0, 4.0]])


def test_a_pick_that_earns_before_the_last_adds_it_to_what_follows() -> None:
    # As without the 1, the 3 and the 5: 14 for the last pick, 3 + 6 + 0.5 (14 − 6) for the first of
    # step 2; step 1: 2 + 0.5 (8 + 0.5 (13 − 8)) and 1 + 3 + 0.5 (7.25 − 3).
    made = returns([[1, 2], [3, 4]], [[1, 3], [8, 6]], promised=[0, 20])
    np.testing.assert_allclose(made, [[6.125, 7.25], [13.0, 14.0]])


def test_where_nothing_is_promised_the_last_pick_learns_nothing() -> None:
    # The last pick's return is not known; the pick before it sees the promise 6 of that pick alone.
    made = returns([[0, 2], [0, 4]], [[1, 3], [8, 6]], promised=[0, np.nan])
    np.testing.assert_allclose(made, [[4.25, 5.5], [6.0, np.nan]])


def test_where_nothing_was_left_to_pick_a_return_passes_through() -> None:
    # Step 1 picks once: its reward lies on that pick. Step 2 picks nothing, earns 4 and promises
    # nothing: what follows it, 4 + 0.5 · 20, is seen whole.
    made = returns([[2, 0], [0, 4]], [[1, 99], [99, 99]], taken=[[1, 0], [0, 0]], promised=[0, 20])
    assert made[0, 0] == pytest.approx(2 + 0.5 * 14)


def test_a_steps_reward_lies_on_its_last_pick() -> None:
    items = jnp.asarray([[3, 1, 2], [3, 1, -1], [-1, -1, -1]])
    made = jax.vmap(at_last_pick)(items, jnp.asarray([5.0, 6.0, 7.0]))
    np.testing.assert_array_equal(made, [[0, 0, 5], [0, 6, 0], [0, 0, 7]])


def oracle(given: dict[str, Any], lambda_steps: float, lambda_phases: float) -> dict[Any, float]:
    """Forwards and by recursion: the return of each taken pick of one environment."""
    taken, rewards, worth = given["taken"], given["rewards"], given["worth"]
    length, num_select = taken.shape

    def after(t: int, k: int) -> tuple[float, Any, float, bool]:
        """Reward on the way, the next taken pick or None, its discount, and a promise instead."""
        earned, discount, step, phase = rewards[t, k], 1.0, t, k + 1
        while True:
            while phase < num_select:
                if taken[step, phase]:
                    return earned, (step, phase), discount, False
                earned += discount * rewards[step, phase]
                phase += 1
            discount *= given["discount"][step]
            if given["cut"][step] or step == length - 1:
                return earned + discount * given["promised"][step], None, 0.0, True
            step, phase = step + 1, 0

    def value(t: int, k: int) -> float:
        earned, place, discount, ends = after(t, k)
        if ends:
            return earned
        trust = lambda_phases if place[0] == t else lambda_steps
        trust = trust if given["greedy"][place] else 0.0
        return earned + discount * ((1 - trust) * worth[place] + trust * value(*place))

    return {place: value(*place) for place in np.ndindex(length, num_select) if taken[place]}


@given(seed=st.integers(0, 2**31 - 1), full=st.booleans(), marginal=st.booleans())
def test_returns_are_those_of_a_slow_oracle(seed: int, full: bool, marginal: bool) -> None:
    rng = np.random.default_rng(seed)
    taken = np.cumprod(rng.random((4, 3)) < (2.0 if full else 0.7), axis=1).astype(bool)
    items = jnp.where(jnp.asarray(taken), 0, -1)
    earned = jnp.asarray(rng.normal(size=4), jnp.float32)
    at_last = np.asarray(jax.vmap(at_last_pick)(items, earned))
    made_of = {
        "taken": taken,
        "rewards": rng.normal(size=(4, 3)) if marginal else at_last,
        "worth": rng.normal(size=(4, 3)),
        "greedy": rng.random((4, 3)) < 0.7,
        "discount": np.where(rng.random(4) < 0.2, 0.0, 0.9),
        "cut": rng.random(4) < 0.3,
        "promised": rng.normal(size=4),
    }
    made = returns(**made_of, lambda_steps=0.7, lambda_phases=0.95)
    for place, expected in oracle(made_of, 0.7, 0.95).items():
        assert made[place] == pytest.approx(expected, rel=1e-4, abs=1e-5), place


@pytest.mark.parametrize(("count", "sizes"), [(128, [64, 64]), (127, [64, 63]), (7, [7])])
def test_environments_act_in_groups_of_like_size(count: int, sizes: list[int]) -> None:
    seen: list[int] = []

    def whole(rows: Any) -> Any:
        seen.append(rows.shape[0])
        return 2 * rows

    @jax.custom_batching.custom_vmap
    def twice(number: Any) -> Any:
        return 2 * number

    twice.def_vmap(lambda size, batched, rows: (whole(rows), True))
    made = in_groups(twice, 50, jnp.arange(count))
    np.testing.assert_array_equal(made, 2 * np.arange(count))
    assert seen == sorted(set(sizes), reverse=True)  # each size is compiled once


def test_exploration_falls_in_a_line_over_a_tenth_of_the_training() -> None:
    learner = qlambda("isq-u", 1_000_000, sm.Circle(), FastSettings())
    epsilon = [float(learner.epsilon(jnp.asarray(s))) for s in (0, 50_000, 100_000, 900_000)]
    assert epsilon == pytest.approx([1.0, 0.5025, 0.005, 0.005], rel=1e-5)


@cache
def on_probes(name: str) -> tuple[Compiled, State]:
    """An engine, and the learner after 20,480 steps."""
    engine = Compiled(ALL_PROBES, qlambda(name, 20_480, ALL_PROBES, LEARNS), seed=0)
    return engine, trained(engine, started(engine), 80).learner


@cache
def probe_values(name: str) -> Any:
    engine, state = on_probes(name)
    return values_by(engine.learner.agent, state.average, state.phase_map)


def test_the_q_values_of_every_probe_are_reached() -> None:
    for probe in PROBES:
        assert furthest(probe_values("isq-u"), probe) < NEAR, probe


@pytest.mark.slow
def test_myopic_reaches_the_q_values_without_a_future() -> None:
    for probe in PROBES:
        assert furthest(probe_values("myopic"), probe, gamma=0.0) < NEAR, probe
        assert furthest(probe_values("myopic"), probe) > 0.3, probe


@pytest.mark.slow
def test_the_policy_is_a_moving_average_of_the_parameters() -> None:
    engine, state = on_probes("isq-u")
    played = play(engine)
    after, loss, learned = jit(engine.learner.learn)(jax.random.key(5), state, played, 20_480)
    assert learned
    assert np.isfinite(loss)
    old, new, average = (
        jax.tree.leaves(part)[0] for part in (state.average, after.params, after.average)
    )
    np.testing.assert_allclose(average, old + 0.2 * (new - old), rtol=1e-5, atol=1e-6)
    # A round is 128 steps: after the second, half of each.
    after = jit(engine.learner.learn)(jax.random.key(5), state, played, 256)[0]
    average = jax.tree.leaves(after.average)[0]
    np.testing.assert_allclose(average, (old + new) / 2, rtol=1e-5, atol=1e-6)
    assert engine.learner.policy(after) is after.average


def play(engine: Compiled) -> Played:
    """Rounds of two ages side by side, so that a time limit of 10 falls into the rollout."""
    running = started(engine)
    running = running._replace(ages=jnp.arange(16, dtype=jnp.int32) % 10)
    keys = jax.random.split(jax.random.key(3), 8)
    return jit(lambda running: jax.lax.scan(engine._step, running, keys))(running)[1][0]


def test_after_a_time_limit_the_observation_before_the_reset_is_looked_at() -> None:
    engine, state = on_probes("isq-u")
    played, agent = play(engine), engine.learner.agent
    assert 0.05 < float(played.steps.truncated.mean()) < 0.2
    worth = jit(jax.vmap(jax.vmap(partial(agent.first_worth, state.params, state.phase_map))))
    promised = jit(engine.learner._promised)(state, played.steps)
    looked = np.asarray(played.steps.truncated).copy()
    looked[-1] = True
    expected = np.where(looked, worth(played.steps.next_observation), 0.0)
    np.testing.assert_allclose(promised, expected, rtol=1e-4, atol=1e-4)


def test_what_acting_promised_is_the_worth_of_what_it_saw() -> None:
    engine, state = on_probes("isq-u")
    seen = jax.tree.map(lambda leaf: leaf[0], play(engine).steps.observation)
    _, aside = jit(engine.learner.act)(jax.random.key(0), state, seen, 0)
    first = partial(engine.learner.agent.first_worth, state.params, state.phase_map)
    np.testing.assert_allclose(aside.worth[:, 0], jit(jax.vmap(first))(seen), rtol=1e-4, atol=1e-4)
    assert not aside.greedy.any()  # at step 0 every pick explores
    assert (
        float(jit(engine.learner.act)(jax.random.key(0), state, seen, 20_480)[1].greedy.mean())
        > 0.4
    )


@cache
def on_levels(name: str, marginal: bool = False) -> tuple[Compiled, Any, State]:
    """An engine, its parameters after four chunks, and the learner after 12,800 steps."""
    settings = FastSettings(**{**vars(LEARNS), "marginal": marginal})
    world = Shaped(LEVELS) if marginal else LEVELS
    engine = Compiled(world, qlambda(name, 12_800, world, settings), seed=0)
    running = trained(engine, started(engine), 4)
    early = jax.tree.map(np.asarray, running.learner.params)
    return engine, early, trained(engine, running, 46).learner


def share_of(name: str, marginal: bool = False) -> float:
    engine, _, state = on_levels(name, marginal)
    return share_of_the_best(engine.learner.agent, (state.average, state.phase_map))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["isq-p", "isq-i"])
def test_a_tiny_world_is_solved(name: str) -> None:
    assert share_of(name) >= 0.99


@pytest.mark.slow
def test_one_set_for_both_phases_solves_it_too() -> None:
    """Means hide which phase it is; messages from each pick do not."""
    assert share_of("isq-u") >= 0.99


@pytest.mark.slow
def test_the_preset_solves_it_with_no_other_change_than_a_shorter_view() -> None:
    settings = FastSettings(discount=0.9)
    engine = Compiled(LEVELS, qlambda("isq-u", 49_152, LEVELS, settings), seed=0)
    state = trained(engine, started(engine), 12).learner
    assert share_of_the_best(engine.learner.agent, (state.average, state.phase_map)) >= 0.99


def test_a_run_compiles_once_across_splits_and_its_sets_part() -> None:
    engine, _, state = on_levels("isq-p")
    assert state.phase_map.tolist() == [0, 1]
    assert engine._chunk._cache_size() == 1
    first, second = (jax.tree.map(lambda leaf, row=row: leaf[row], state.params) for row in (0, 1))
    assert not same(first, second)


def test_at_a_split_nothing_changes_but_the_map() -> None:
    learner = on_levels("isq-p")[0].learner
    whole = on_levels("isq-p")[2]
    before = whole._replace(phase_map=jnp.zeros(2, jnp.int32))
    after = learner.between(before, 12_800)
    assert after.phase_map.tolist() == [0, 1]
    for old, new in zip(jax.tree.leaves(before[:3]), jax.tree.leaves(after[:3]), strict=True):
        if old.ndim:
            np.testing.assert_array_equal(new, np.stack([old[0], old[0]]))
        else:
            assert old == new
    assert learner.between(after, 12_800) is after


def test_the_same_seed_gives_the_same_parameters_and_another_seed_others() -> None:
    engine, early, _ = on_levels("isq-p")
    again = Compiled(LEVELS, engine.learner, seed=0)
    assert same(trained(again, started(again), 4).learner.params, early)
    other = started(Compiled(LEVELS, engine.learner, seed=1))
    assert not same(trained(engine, other, 4).learner.params, early)


class Shaped:
    """A tiny world that offers partial rewards, by any rule: 3 for item 0, 2 off for the others."""

    def __init__(self, world: theory.TinyWorld) -> None:
        self.world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)

    def partial_reward(self, key: Any, state: Any, action: Any) -> Any:
        """What all picks earn at the last, before it what they look like."""
        looks = jnp.cumsum(jnp.where(action.items == 0, 3.0, -2.0))
        return looks.at[-1].set(self.world.step(key, state, action)[1])


@pytest.mark.slow
def test_with_partial_rewards_the_same_is_learned() -> None:
    assert share_of("isq-i", marginal=True) >= 0.99


@pytest.mark.parametrize("num_select", [2, 3])
def test_partial_rewards_leave_the_best_policy_as_it_is(num_select: int) -> None:
    """By dynamic programming over the phases, paid what the engine pays each pick."""
    world = theory.random_world(3, num_states=3, num_items=4, num_select=num_select, num_commands=2)
    solution = theory.solve(world, 0.9)
    orders = product(permutations(range(4), num_select), product(range(2), repeat=num_select))
    items, commands = (np.array(part, np.int32) for part in zip(*orders, strict=True))
    paid_for = jit(jax.vmap(partial(_added, Shaped(world)), in_axes=(None, None, 0, 0)))
    picks = [tuple(zip(*pair, strict=True)) for pair in zip(items, commands, strict=True)]
    for state in range(world.num_states):
        rewards = np.array(
            [world.rewards[state, world.joint.index(tuple(sorted(each)))] for each in picks]
        )
        given = jax.random.key(0), state, Action(items, commands), rewards.astype(np.float32)
        paid = np.asarray(paid_for(*given), np.float64)
        assert np.abs(paid[:, :-1]).min() > 0.5  # every pick is paid something
        after = [
            solution.phase_q(state, each[:-1])[each[-1]] - reward
            for each, reward in zip(picks, rewards, strict=True)
        ]
        values: dict[Any, float] = {}
        for phase in reversed(range(num_select)):
            for each, part, rest in zip(picks, paid, after, strict=True):
                made, pick = each[:phase], each[phase]
                following = [
                    value for (so_far, _), value in values.items() if so_far == each[: phase + 1]
                ]
                values[made, pick] = part[phase] + (max(following) if following else rest)
        for made in {made for made, _ in values}:
            plain = solution.phase_q(state, made)
            shaped = {pick: value for (so_far, pick), value in values.items() if so_far == made}
            best = max(shaped, key=shaped.__getitem__)
            assert plain[best] == pytest.approx(np.nanmax(plain), abs=1e-4)
            earned = next(
                part[: len(made)].sum()
                for each, part in zip(picks, paid, strict=True)
                if each[: len(made)] == made
            )
            for pick, value in shaped.items():
                assert value == pytest.approx(plain[pick] - earned, abs=1e-4)


def hand_made(reward: float, discount: float) -> Transition:
    """One step [1, 1, …] of a shelf of four: items 3 and 0 picked; all are there afterwards."""
    shelf = Shelf(num_items=4, num_select=2)
    seen = shelf.observe(ShelfState(jnp.ones(4, bool), jnp.zeros((), jnp.int32)))
    step = Transition(
        observation=seen,
        action=Action(jnp.asarray([3, 0], jnp.int32), jnp.asarray([0, 1], jnp.int32)),
        reward=jnp.asarray(reward),
        discount=jnp.asarray(discount),
        truncated=jnp.zeros((), bool),
        next_observation=seen,
    )
    return jax.tree.map(lambda leaf: leaf[None, None], step)


@pytest.mark.parametrize("name", ["idqn", "myopic", "rsq", "isq-u"])
def test_what_is_learned_follows_the_algorithms_rule(name: str) -> None:
    shelf = Shelf(num_items=4, num_select=2)
    learner = qlambda(name, 96, shelf, FastSettings(**FEW))
    state = jit(learner.init)(jax.random.key(2), None)
    played = Played(
        hand_made(2.0, 0.5), Aside(jnp.full((1, 1, 2), 7.0), jnp.ones((1, 1, 2), bool)), None
    )
    first, second = np.asarray(jit(learner.targets)(state, played))[0, 0]
    seen = jax.tree.map(lambda leaf: leaf[0, 0], played.steps.next_observation)
    values, legal = jit(learner.agent.first_values)(state.params, state.phase_map, seen)
    worth = np.where(legal, values, -np.inf)
    if name == "idqn":  # each by what its own item promises next
        assert first == pytest.approx(2.0 + 0.5 * worth[3].max(), rel=1e-4)
        assert second == pytest.approx(2.0 + 0.5 * worth[0].max(), rel=1e-4)
        return
    ahead = {"myopic": 0.0, "rsq": worth.max(axis=1).mean(), "isq-u": worth.max()}[name]
    assert second == pytest.approx(2.0 + 0.5 * ahead, rel=1e-4)
    assert first == pytest.approx(7.0 + 0.95 * (second - 7.0), rel=1e-4)


def test_the_learning_rate_falls_to_nothing_at_the_last_update() -> None:
    learner = qlambda("isq-u", 96, SMALL["circle"], FastSettings(**FEW, epochs=2))
    optimiser, params = learner._optimiser(), {"weight": jnp.ones(3)}
    state, sizes = optimiser.init(params), []
    for _ in range(49):  # 96 steps, twice, in batches of 4
        change, state = optimiser.update({"weight": jnp.ones(3)}, state, params)
        sizes.append(float(jnp.abs(change["weight"]).max()))
    assert sizes[0] > 1e-3
    assert 0.0 < sizes[47] < 1e-4
    assert sizes[48] == 0.0


SMALL = {
    "circle": sm.Circle(num_items=6, num_context=2, num_select=3, time_limit=5),
    "predator-prey": sm.PredatorPrey(num_items=5, num_select=3, grid=5, time_limit=5),
}


@pytest.mark.parametrize(
    ("name", "world"),
    [
        ("sorting", "circle"),
        ("idqn", "circle"),
        pytest.param("isq-p", "predator-prey", marks=pytest.mark.slow),
        pytest.param("rsq", "predator-prey", marks=pytest.mark.slow),
        pytest.param("idqn-own", "predator-prey", marks=pytest.mark.slow),
    ],
)
def test_rows_of_all_kinds_learn_something(name: str, world: str) -> None:
    settings = FastSettings(**FEW, marginal=name == "isq-p")
    engine = Compiled(SMALL[world], qlambda(name, 96, SMALL[world], settings), seed=0)
    running = started(engine)
    first = jax.tree.map(np.asarray, running.learner.params)
    with probing.changed("jax_disable_most_optimizations", True):
        running, report = engine.run(running)
    assert np.isfinite(report.loss)
    assert report.updates == 1
    assert not same(first, running.learner.params)


@pytest.mark.parametrize("world", list(SMALL))
def test_what_picks_add_sums_up_to_the_reward(world: str) -> None:
    learner = qlambda("isq-u", 96, SMALL[world], FastSettings(**FEW, marginal=True))
    engine = Compiled(SMALL[world], learner, seed=0)
    keys = jax.random.split(jax.random.key(1), 8)
    played = jit(lambda run: jax.lax.scan(engine._step, run, keys))(started(engine))[1][0]
    assert played.marginal.shape == (8, 4, 3)
    np.testing.assert_allclose(
        played.marginal.sum(axis=2), played.steps.reward, rtol=1e-4, atol=1e-6
    )
    assert np.asarray(played.marginal)[..., :2].any()


@pytest.mark.parametrize(
    ("name", "world"), [("idqn", sm.Circle(num_items=6, num_select=3)), ("isq-u", LEVELS)]
)
def test_where_a_rule_or_a_world_knows_no_marginal_reward_the_whole_one_is_learned(
    name: str, world: Any
) -> None:
    learner = qlambda(name, 96, world, FastSettings(**FEW, marginal=True))
    engine = Compiled(world, learner, 0)
    running = engine.start()
    _, (played, _) = jax.eval_shape(engine._step, running, jax.random.key(0))
    assert played.marginal is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"minibatch": 7}, "minibatch=7: must divide num_envs × rollout = 1024"),
        ({"chunk": 1000}, "chunk=1000: must be a multiple of num_envs × rollout = 1024"),
        ({"lambda_steps": 1.5}, "lambda_steps=1.5: must be 0 or more than 0 and at most 1"),
        ({"lambda_phases": -0.1}, "lambda_phases=-0.1: must be 0"),
        ({"marginal": 1}, "marginal=1: must be True or False"),
    ],
)
def test_a_setting_out_of_range_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SelectError, match=said):
        FastSettings(**changes)
    assert FastSettings(lambda_phases=0.0).lambda_phases == 0.0
