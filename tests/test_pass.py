"""Up to K: a pass is one more choice in every phase, has a value of its own, and ends the picks."""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from gymnasium.vector.utils import batch_space
from hypothesis import given, settings
from hypothesis import strategies as st
from ruled import passing_world

import selectmdp as sm
from selectmdp import agent as agents
from selectmdp import iterative, replay, sharing
from selectmdp.algorithms import ALGORITHMS, Shape
from selectmdp.engines import blank
from selectmdp.interop.gymnasium import SelectGymEnv
from selectmdp.interop.iterative_select import IterativeSelect
from selectmdp.interop.spaces import SelectSpace
from selectmdp.interop.vector import SelectVectorEnv
from selectmdp.learners.qlambda import at_last_pick
from selectmdp.nets.dense import Dense, by_features
from selectmdp.nets.isq import ISQ
from selectmdp.nets.pairwise import Pairwise
from selectmdp.nets.per_item import PerItem
from selectmdp.policy import Policy
from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation, Transition

haste = tiny.haste
jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # runs few times
MAY, MUST = Spec(5, 3, 2, 2, 3, 2, allow_pass=True), Spec(5, 3, 2, 2, 3, 2)
NETWORKS: dict[str, Any] = {
    "isq": ISQ(6),
    "eq": ISQ(6, 2, ("selected", "context")),
    "eq-local": ISQ(6, 2, ()),
    "idqn": ISQ(6, selected=False),
    "pairs": Pairwise(10),
    "pairs, eq-local": Pairwise(10, sources=()),
    "pairs, idqn": Pairwise(10, selected=False),
    "each item its own": PerItem(ISQ(6)),
    "dense": Dense((16,)),
    "sorting": Dense((16,), by_features),
}
IN_ANY_ORDER = [name for name in NETWORKS if name not in ("each item its own", "dense")]
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
seeds = st.integers(0, 2**31 - 1)


@cache
def params_of(name: str, spec: Spec = MAY) -> Any:
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(lambda key: NETWORKS[name].init(key, spec), jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(0.4 * rng.normal(size=leaf.shape)), shapes)


@cache
def values_of(name: str) -> Any:
    return jit(partial(NETWORKS[name].values, params_of(name)))


def scene(seed: int, num_picked: int) -> tuple[Observation, Action]:
    rng = np.random.default_rng(seed)
    seen = Observation(
        items=rng.normal(size=(5, 3)).astype(np.float32),
        context=rng.normal(size=(2, 2)).astype(np.float32),
        present=rng.permutation(5) < 4,
        context_present=rng.random(2) < 0.7,
        legal=rng.random((5, 2)) < 0.7,
    )
    items, commands = np.full(3, -1, np.int32), np.zeros(3, np.int32)
    items[:num_picked] = rng.permutation(np.flatnonzero(seen.present))[:num_picked]
    commands[:num_picked] = rng.integers(0, 2, num_picked)
    return seen, Action(items, commands)


# The value of a pass


@pytest.mark.parametrize("name", IN_ANY_ORDER)
@settings(max_examples=8)
@given(seed=seeds, num_picked=st.integers(0, 2), order=st.permutations(range(5)))
def test_the_order_of_the_items_does_not_change_what_a_pass_is_worth(
    name: str, seed: int, num_picked: int, order: list[int]
) -> None:
    seen, picks = scene(seed, num_picked)
    moved = seen._replace(
        items=seen.items[order], present=seen.present[order], legal=seen.legal[order]
    )
    place = np.argsort(order)
    there = Action(np.where(picks.items >= 0, place[picks.items], -1), picks.commands)
    plain, turned = values_of(name)(seen, picks), values_of(name)(moved, there)
    assert plain.shape == (6, 2)
    np.testing.assert_allclose(plain[5, 0], turned[5, 0], **CLOSE)


@pytest.mark.parametrize("name", NETWORKS)
@settings(max_examples=5)
@given(seed=seeds, num_picked=st.integers(0, 2))
def test_the_value_of_item_minus_1_is_that_of_the_pass(
    name: str, seed: int, num_picked: int
) -> None:
    seen, picks = scene(seed, num_picked)
    single = NETWORKS[name].value(params_of(name), seen, picks, jnp.asarray(-1), jnp.asarray(0))
    np.testing.assert_allclose(single, values_of(name)(seen, picks)[5, 0], **CLOSE)


@settings(max_examples=5)
@given(seed=seeds)
def test_phases_of_a_batch_at_once_have_the_values_of_one_at_a_time(seed: int) -> None:
    scenes = [scene(seed + phase, phase) for phase in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves)[:, None], *scenes)
    sets = jax.tree.map(lambda leaf: leaf[None], params_of("isq"))
    together = NETWORKS["isq"].stacked_values(sets, *stacked)
    passes = Action(jnp.full((3, 1), -1), jnp.zeros((3, 1), jnp.int32))
    alone = NETWORKS["isq"].stacked_value(sets, *stacked, passes)
    for phase, (seen, picks) in enumerate(scenes):
        expected = values_of("isq")(seen, picks)
        left = np.append(~np.isin(np.arange(5), picks.items), True)
        np.testing.assert_allclose(together[phase, 0][left], expected[left], **CLOSE)
        np.testing.assert_allclose(alone[phase, 0], expected[5, 0], **CLOSE)


@pytest.mark.parametrize("name", [name for name in NETWORKS if "its own" not in name])
def test_a_pass_changes_no_parameter_and_no_value_of_a_pair(name: str) -> None:
    network, key = NETWORKS[name], jax.random.key(3)
    with_pass, without = network.init(key, MAY), network.init(key, MUST)
    if isinstance(network, Dense):  # one more output of the last layer
        assert with_pass[-1]["bias"].shape == (11,)
        return
    del with_pass["pass"]
    assert jax.tree.structure(with_pass) == jax.tree.structure(without)
    same = jax.tree.map(np.array_equal, with_pass, without)
    assert all(jax.tree.leaves(same))
    seen, picks = scene(1, 1)
    pairs = network.values(without, seen, picks)
    np.testing.assert_array_equal(network.values(network.init(key, MAY), seen, picks)[:5], pairs)


def test_a_policy_with_a_pass_serves_no_world_without_and_the_reverse() -> None:
    for trained, shown in ((MAY, MUST), (MUST, MAY)):
        for name in ("isq", "pairs", "dense"):
            with pytest.raises(SelectError, match="allow_pass"):
                NETWORKS[name].check(trained, shown)
    with pytest.raises(SelectError, match="allow_pass=1: must be True or False"):
        Spec(5, 3, 2, 2, 3, 2, allow_pass=1)  # type: ignore[arg-type]


# Picks


def made(name: str, pairs: bool = False, spec: Spec = MAY) -> Policy:
    env = SimpleNamespace(spec=spec, command_names=("stay", "go"))
    return tiny_policy(name, env, pairs)


def tiny_policy(name: str, env: Any, pairs: bool) -> Policy:
    agent = agents.make(name, env, shape=Shape(8, hidden=(16,), pairs=pairs))
    rng = np.random.default_rng(5)
    shapes = jax.eval_shape(agent.init, jax.random.key(0))
    params = jax.tree.map(
        lambda leaf: jnp.asarray(rng.normal(0.0, 0.5, leaf.shape), jnp.float32), shapes
    )
    first = sharing.first_map(agent.algorithm.sharing, env.spec.num_select)
    return Policy(agent, params, first, {})


def states(seed: int, count: int = 40) -> Observation:
    return jax.tree.map(
        lambda *leaves: np.stack(leaves), *(scene(seed + i, 0)[0] for i in range(count))
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_picks_end_with_the_first_pass_and_each_is_the_best_choice(name: str) -> None:
    policy = made(name)
    picks = policy.select(states(0), q_values=True)
    ended = picks.items < 0
    assert (ended[:, 1:] >= ended[:, :-1]).all()
    assert ended.any()
    assert not ended.all()
    assert picks.q_values.shape == (40, 3, 6, 2)
    for items, commands, values in zip(*picks[:2], picks.q_values, strict=True):
        passed = False
        for item, command, now in zip(items, commands, values, strict=True):
            assert np.isinf(now[5, 1])  # the pass has no commands
            assert np.isfinite(now).any() == (not passed)
            if not passed and name != "rsq":
                assert now[item, command] == now.max()
            passed |= item < 0


def test_where_nothing_is_legal_the_pass_is() -> None:
    seen = scene(0, 0)[0]._replace(legal=np.zeros((5, 2), bool))
    picks = made("isq-u", pairs=True).select(seen, q_values=True)
    assert picks.items.tolist() == [-1, -1, -1]
    assert np.isfinite(picks.q_values).sum(axis=(1, 2)).tolist() == [1, 0, 0]
    assert made("isq-u").q_values(seen).shape == (6, 2)


def test_an_exploring_pick_passes_as_often_as_it_takes_any_pair() -> None:
    policy, seen = made("isq-u"), scene(0, 0)[0]._replace(present=np.ones(5, bool))
    seen = jax.tree.map(jnp.asarray, seen._replace(legal=np.ones((5, 2), bool)))
    phase_map = sharing.as_array(policy.phase_map)

    def first(key: Any) -> Any:
        return policy.agent.act(key, policy.params, phase_map, seen, 1.0).action.items[0]

    items = np.asarray(jit(jax.vmap(first))(jax.random.split(jax.random.key(0), 6000)))
    counts = np.bincount(items + 1, minlength=6) / 6000
    np.testing.assert_allclose(counts, [1 / 11, *[2 / 11] * 5], atol=0.02)


def test_phases_of_a_step_with_a_pass_in_numbers() -> None:
    seen, _ = scene(0, 0)
    step = Transition(
        observation=seen,
        action=Action(np.array([3, -1, -1]), np.array([1, 0, 0])),
        reward=jnp.asarray(2.0),
        discount=jnp.asarray(0.5),
        truncated=jnp.asarray(False),
        next_observation=seen._replace(items=seen.items + 7),
    )
    phases = iterative.expand(step, allow_pass=True)
    assert phases.taken.tolist() == [True, True, False]
    assert phases.last.tolist() == [False, True, False]
    assert phases.reward.tolist() == [0.0, 2.0, 0.0]
    assert phases.discount.tolist() == [1.0, 0.5, 1.0]
    assert phases.next_observation.items[1].tolist() == (seen.items + 7).tolist()
    forced = iterative.expand(step)
    assert forced.taken.tolist() == [True, False, False]
    assert forced.reward.tolist() == [2.0, 0.0, 0.0]
    for items, expected in (
        ([3, -1, -1], [0.0, 2.0, 0.0]),
        ([-1, -1, -1], [2.0, 0.0, 0.0]),
        ([3, 1, 0], [0.0, 0.0, 2.0]),
    ):
        rewards = at_last_pick(jnp.asarray(items), jnp.asarray(2.0), allow_pass=True)
        assert rewards.tolist() == expected


def test_a_step_that_passes_at_once_is_remembered() -> None:
    step = blank(jax.tree.map(jnp.asarray, scene(0, 0)[0]), 3)._replace(discount=jnp.ones(()))
    empty = replay.init(4, step)
    assert int(replay.add(empty, step, allow_pass=True).filled) == 1
    assert int(replay.add(empty, step).filled) == 0


# At the edges


@pytest.mark.parametrize("pairs", [False, True], ids=["isq", "pairwise"])
@pytest.mark.parametrize("name", ["isq-i", "isq-u", "eq", "eq-local", "idqn"])
def test_an_exported_policy_passes_where_it_does_here(name: str, pairs: bool) -> None:
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    from selectmdp.export import model

    policy = made(name, pairs)
    graph = model.made(policy)
    onnx.checker.check_model(graph, full_check=True)
    running = onnxruntime.InferenceSession(graph.SerializeToString())
    passes = 0
    for seed in (0, 100):
        seen = states(seed)._asdict()
        items, commands, values = running.run(None, seen)
        picks = policy.select(seen, q_values=True)
        np.testing.assert_array_equal(items, picks.items)
        np.testing.assert_array_equal(commands, picks.commands)
        np.testing.assert_allclose(values, picks.q_values, **CLOSE)
        passes += int((items[:, -1] < 0).sum())
    assert passes > 0


def test_a_space_allows_a_pass_and_nothing_after_it() -> None:
    space, plain = SelectSpace(MAY, seed=0), SelectSpace(MUST)
    given = {"items": np.array([2, -1, -1]), "commands": np.array([1, 0, 0])}
    assert given in space
    assert given not in plain
    assert {**given, "items": np.array([-1, -1, -1])} in space
    with pytest.raises(SelectError, match=r"items\[1\]=-1 passes and ends the picks"):
        space.check({**given, "items": np.array([2, -1, 3])})
    assert space != plain
    assert repr(space) == "SelectSpace(up to 3 of 5, 2 commands)"
    picks = [space.sample() for _ in range(2000)]
    assert all(each in space for each in picks)
    ended = np.mean([np.stack([each["items"] < 0 for each in picks])], axis=1)[0]
    np.testing.assert_allclose(ended, [1 / 11, 1 / 11 + 10 / 11 / 9, 0.29], atol=0.03)
    weighed = space.sample(probability=np.ones((5, 2)))
    assert (weighed["items"] >= 0).all()
    many = batch_space(space, 3)
    many.seed(0)
    assert many.sample() in many


def test_one_pick_a_step_has_one_more_action() -> None:
    walk = IterativeSelect(passing_world())
    assert walk.action_space.n == 4
    walk.reset(seed=0)
    while walk.unwrapped.state != 0:
        walk.step(3)
    assert walk.action_masks().tolist() == [True] * 4
    assert walk.step(0)[1] == 0.0
    assert walk.action_masks().tolist() == [False, True, True, True]
    seen, reward, *_ = walk.step(3)
    assert (reward, int(seen["phase"])) == (1.0, 0)
    assert walk.step(3)[1] == 0.0
    assert walk.unwrapped.state == 0  # who rests in state 1 is in state 0 next
    with pytest.raises(SelectError, match="from 0 to 3"):
        walk.step(4)


def test_many_environments_pass_each_for_itself() -> None:
    worlds = SelectVectorEnv(passing_world(), 3)
    worlds.reset(seed=0)
    items = np.array([[0, -1], [-1, -1], [1, 2]])
    worlds.step({"items": items, "commands": np.zeros((3, 2), int)})
    with pytest.raises(SelectError, match="environment 1"):
        worlds.step({"items": np.array([[0, 1], [-1, 2], [0, 1]]), "commands": items * 0})


@pytest.mark.slow
def test_a_training_learns_to_pass_and_its_policy_comes_back(tmp_path: Path) -> None:
    world = passing_world()
    result = sm.train(
        world,
        out=tmp_path / "run",
        steps=3000,
        evaluations=1,
        episodes=2,
        settings={
            "channels": 16,
            "num_envs": 8,
            "rollout": 8,
            "minibatch": 32,
            "chunk": 1000 // 64 * 64,
            "discount": 0.5,
        },
    )
    assert result.evaluation.mean_reward > result.references["random"].mean_reward
    policy = sm.load(tmp_path / "run")
    assert policy.spec == world.spec
    assert policy.spec.allow_pass
    seen = jax.tree.map(np.asarray, world.observe(jnp.asarray(1)))
    assert policy.select(seen).items.shape == (2,)
    base = SelectGymEnv(world)
    base.reset(seed=0)
    assert base.action_space.sizes == replace(world.spec)
