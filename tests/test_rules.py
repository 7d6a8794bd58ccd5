"""Rules for picks: what is best under them, exactly, and that both learners learn it."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probing
import pytest
from probing import jit, started, trained
from ruled import GAMMA, passing_world, prefixes, ruled_world

from selectmdp import agent as agents
from selectmdp import iterative, sharing, theory
from selectmdp.check import check_select_env
from selectmdp.engines import Compiled
from selectmdp.learners.dqn import DQN
from selectmdp.learners.qlambda import QLambda
from selectmdp.settings import FastSettings, PaperSettings
from selectmdp.spec import SelectError
from selectmdp.types import Action
from selectmdp.worlds import evaluate

programs = probing.programs
WORLDS = {"rules": ruled_world(), "pass": passing_world()}
NEAR = 0.06
"""How far a learned Q-value may be off, as a share of the world's largest."""
FAST = FastSettings(
    channels=24,
    num_envs=16,
    rollout=4,
    minibatch=32,
    epochs=4,
    learning_rate=3e-3,
    discount=GAMMA,
    epsilon_end=0.3,
    averaging=0.2,
    chunk=256,
)
PAPER = PaperSettings(
    channels=24,
    layers=2,
    batch_size=64,
    learning_rate=2e-3,
    discount=GAMMA,
    replay_capacity=4000,
    target_period=100,
    epsilon_end=0.5,
    num_envs=10,
    chunk=100,
)
LEARNERS: dict[str, tuple[Any, Any, int]] = {
    "fast": (QLambda, FAST, 12_800),
    "fast, of means": (QLambda, FastSettings(**{**vars(FAST), "pairs": False}), 12_800),
    "paper": (DQN, PAPER, 6000),
}


def in_phases(world: theory.TinyWorld, state: int, picks: Any, values: Any) -> float:
    """What a state is worth after some picks: pick by pick, with nothing read off joint actions."""
    left = np.argwhere(world.open_after(picks)[state]).tolist()
    whole = len(picks) == world.num_select
    each = [in_phases(world, state, (*picks, tuple(pair)), values) for pair in left * (not whole)]
    if not each or world.allow_pass:
        joint = world.joint.index(tuple(sorted(picks)))
        ahead = world.transitions[state, joint] @ values
        each.append(float(world.rewards[state, joint] + GAMMA * ahead))
    return max(each)


def test_the_world_of_rules_has_the_values_found_by_hand() -> None:
    solved = theory.solve(WORLDS["rules"], GAMMA)
    v0 = 100 / 7
    np.testing.assert_allclose(solved.values, [v0, 2 * v0 - 12, 16 + v0 / 2])
    x = -np.inf
    rest = v0 - 6  # what is to come after a team
    after = solved.phase_q(0, [(1, 1)])  # nobody else may keep the goal
    np.testing.assert_allclose(after - rest, [[4.5, x], [x, x], [4.0, x]])
    np.testing.assert_allclose(solved.phase_q(1)[:, 0], [2 * v0 - 12, *[5.5 + v0 / 2] * 2])
    with pytest.raises(SelectError, match="not legal"):
        solved.phase_q(1, [(0, 0), (2, 0)])  # 4 is more than the budget


def test_the_world_of_a_pass_has_the_values_found_by_hand() -> None:
    solved = theory.solve(WORLDS["pass"], GAMMA)
    np.testing.assert_allclose(solved.values, [4 / 3, 2 / 3])
    np.testing.assert_allclose(solved.phase_q(0)[:, 0], [4 / 3, 1 / 3, 5 / 6, 1 / 3])
    after = solved.phase_q(0, [(0, 0)])[:, 0]
    np.testing.assert_allclose(after, [-np.inf, 1 / 3, 5 / 6, 4 / 3])
    assert solved.best_action.items.tolist() == [[0, -1], [-1, -1]]


@pytest.mark.parametrize("name", WORLDS)
def test_the_values_of_single_picks_are_those_of_going_pick_by_pick(name: str) -> None:
    world = WORLDS[name]
    solved = theory.solve(world, GAMMA)
    count = 0
    for state, picks in prefixes(world):
        values = solved.phase_q(state, picks)
        for item, command in np.argwhere(np.isfinite(values)).tolist():
            if item == world.spec.num_items:
                continue
            found = in_phases(world, state, (*picks, (item, command)), solved.values)
            assert values[item, command] == pytest.approx(found)
            count += 1
        assert values.max() == pytest.approx(in_phases(world, state, picks, solved.values))
    assert count > 12


@cache
def learned(learner: str, name: str) -> tuple[agents.Agent, Any, Any]:
    kind, settings, steps = LEARNERS[learner]
    world = WORLDS[name]
    made = agents.make("isq-u", world, shape=settings.shape)
    engine = Compiled(world, kind(made, settings, steps), seed=0)
    running = trained(engine, started(engine), steps // settings.chunk)
    phase_map = sharing.as_array(engine.learner.phase_map(steps))
    return made, engine.learner.policy(running.learner), phase_map


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize(
    "learner",
    ["fast", *(pytest.param(each, marks=pytest.mark.slow) for each in ("paper", "fast, of means"))],
)
def test_rules_and_passes_are_learned(learner: str, name: str) -> None:
    world = WORLDS[name]
    made, params, phase_map = learned(learner, name)
    solved = theory.solve(world, GAMMA)

    @jit
    def values(state: Any, picks: Action, phase: Any) -> Any:
        own = sharing.of_phase(params, phase_map, phase)
        return made.network.values(own, world.observe(state), picks)

    errors = []
    for state, picks in prefixes(world):
        rows = np.array([*picks, *[(-1, 0)] * (2 - len(picks))], np.int32)
        found = np.asarray(values(state, Action(rows[:, 0], rows[:, 1]), len(picks)))
        expected = solved.phase_q(state, picks)
        legal = np.isfinite(expected)
        errors.append(np.abs(found - np.where(legal, expected, 0.0))[legal].max())
    assert max(errors) < NEAR * np.abs(solved.values).max()
    act = partial(made.actor(world), (params, phase_map))
    table = theory.table_of(world, act)
    np.testing.assert_allclose(theory.evaluate_policy(world, table, GAMMA), solved.values)


@pytest.mark.parametrize("name", WORLDS)
def test_random_actions_are_drawn_with_the_chances_of_the_model(name: str) -> None:
    world = WORLDS[name]
    chances = theory.random_policy(world)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (chances[~world.allowed] == 0).all()

    def drawn(key: Any, state: Any) -> Action:
        return iterative.random_action(key, world, world.observe(state))

    keys = jax.random.split(jax.random.key(0), 4000)
    for state in range(world.num_states):
        actions = jit(jax.vmap(drawn, in_axes=(0, None)))(keys, state)
        counts = np.zeros(len(world.joint))
        for items, commands in zip(*jax.tree.map(np.asarray, actions), strict=True):
            made = [pair for pair in zip(items, commands, strict=True) if pair[0] >= 0]
            counts[world.joint.index(tuple(sorted(made)))] += 1
        np.testing.assert_allclose(counts / 4000, chances[state], atol=0.03)


@pytest.mark.parametrize("name", WORLDS)
def test_the_best_policy_earns_what_the_model_expects_and_the_checks_pass(name: str) -> None:
    world = WORLDS[name]
    report = check_select_env(world)
    assert report.passed, str(report)
    solved = theory.solve(world, GAMMA)
    earned = evaluate(world, solved.act, episodes=8, steps=600).mean_reward
    expected = {"rules": (6 + 5 + 16) / 3, "pass": 0.5}[name]
    assert earned == pytest.approx(expected, rel=0.01)


def test_where_nothing_can_be_picked_there_is_nothing_promised() -> None:
    world = WORLDS["rules"]
    made = agents.make("isq-u", world, shape=FAST.shape)
    params = made.init(jax.random.key(0))
    phase_map = sharing.as_array((0, 0))
    worth = [
        float(jit(made.first_worth)(params, phase_map, world.observe(jnp.asarray(state))))
        for state in range(3)
    ]
    assert np.isfinite(worth).tolist() == [True, True, False]


def test_value_iteration_over_single_picks_refuses_what_it_does_not_know() -> None:
    for world in WORLDS.values():
        with pytest.raises(SelectError, match="take solve"):
            theory.solve_iterated(world, GAMMA)
