"""Items that come and go: a padded problem is the unpadded one, in values, picks, targets, losses.

Sums over more rows are added up in another order, so numbers agree to `CLOSE`; picks are the same.
"""

from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selectmdp import agent as agents
from selectmdp import sharing
from selectmdp.algorithms import Shape
from selectmdp.learners.base import Played
from selectmdp.learners.dqn import DQN
from selectmdp.learners.qlambda import QLambda
from selectmdp.learners.qlambda import State as Learning
from selectmdp.nets.isq import ISQ
from selectmdp.nets.per_item import PerItem
from selectmdp.settings import FastSettings, PaperSettings
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation, Transition

jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # runs few times
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
N, U, K, C = 5, 2, 3, 2
MORE_ITEMS, MORE_CONTEXT, BATCH = 4, 2, 6
CASES = [
    ("isq-i", False, False),
    ("isq-i", False, True),
    ("isq-u", True, False),
    ("isq-u", True, True),
    ("isq-p", True, True),
    ("eq", False, True),
    ("rsq", True, True),
    ("idqn", False, True),
    ("idqn", True, False),
    ("myopic", True, False),
]
"""Algorithm, whether its network is that of pairs, whether it may pass."""
EARLY = CASES[0], CASES[3], CASES[7]
LEARNED = [each if each in EARLY else pytest.param(*each, marks=pytest.mark.slow) for each in CASES]
"""The same, some only in the second tier."""

seeds = st.integers(0, 2**31 - 1)


def spec(padded: bool, allow_pass: bool) -> Spec:
    more, things = (MORE_ITEMS, MORE_CONTEXT) if padded else (0, 0)
    return Spec(N + more, 3, U + things, 2, K, C, allow_pass)


def one_keeper(observation: Observation, chosen: Any, command: Any) -> Any:
    """Command 1 may be given once."""
    free = ~(chosen & (command == 1)).any()
    return jnp.broadcast_to(jnp.stack([jnp.ones((), bool), free]), observation.legal.shape)


@cache
def agent(name: str, pairs: bool, allow_pass: bool, padded: bool) -> agents.Agent:
    env = SimpleNamespace(spec=spec(padded, allow_pass), legal_after=one_keeper)
    return agents.make(name, env, shape=Shape(8, pairs=pairs))


@cache
def params_of(made: agents.Agent) -> Any:
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(made.init, jax.random.key(0))
    return jax.tree.map(
        lambda leaf: jnp.asarray(0.4 * rng.normal(size=leaf.shape), leaf.dtype), shapes
    )


def observations(rng: Any, count: int) -> Observation:
    return Observation(
        items=rng.normal(size=(count, N, 3)).astype(np.float32),
        context=rng.normal(size=(count, U, 2)).astype(np.float32),
        present=rng.random((count, N)) < 0.8,
        context_present=rng.random((count, U)) < 0.8,
        legal=rng.random((count, N, C)) < 0.7,
    )


def places(rng: Any) -> tuple[Any, Any]:
    """Where the items and the things of the context go among the padding, in their order."""
    items = np.sort(rng.permutation(N + MORE_ITEMS)[:N])
    return items, np.sort(rng.permutation(U + MORE_CONTEXT)[:U])


def padded(rng: Any, seen: Observation, where: tuple[Any, Any]) -> Observation:
    """The same with rows in between that are absent, hold anything, and are legal or not."""
    items, things = where
    lead = seen.items.shape[:-2]
    wide = Observation(
        items=rng.normal(size=(*lead, N + MORE_ITEMS, 3)).astype(np.float32),
        context=rng.normal(size=(*lead, U + MORE_CONTEXT, 2)).astype(np.float32),
        present=np.zeros((*lead, N + MORE_ITEMS), bool),
        context_present=np.zeros((*lead, U + MORE_CONTEXT), bool),
        legal=rng.random((*lead, N + MORE_ITEMS, C)) < 0.5,
    )
    wide.items[..., items, :], wide.context[..., things, :] = seen.items, seen.context
    wide.present[..., items], wide.context_present[..., things] = seen.present, seen.context_present
    wide.legal[..., items, :] = seen.legal
    return wide


def moved(action: Action, items: Any) -> Action:
    """The same picks, where the items are now."""
    return Action(np.where(np.asarray(action.items) >= 0, items[action.items], -1), action.commands)


def random_actions(rng: Any, seen: Observation) -> Action:
    """Picks of present items, of which there may be fewer than K."""
    rows = np.full((len(seen.present), K), -1, np.int32)
    for row, present in zip(rows, seen.present, strict=True):
        there = rng.permutation(np.flatnonzero(present))[: rng.integers(0, K + 1)]
        row[: len(there)] = there
    commands = np.where(rows >= 0, rng.integers(0, C, rows.shape), 0)
    return Action(rows, commands.astype(np.int32))


@cache
def acting(made: agents.Agent) -> Any:
    phase_map = sharing.as_array(sharing.first_map(made.algorithm.sharing, K))
    params = params_of(made)
    return jit(lambda key, seen, epsilon: made.act(key, params, phase_map, seen, epsilon))


@pytest.mark.parametrize(("name", "pairs", "allow_pass"), CASES)
@settings(max_examples=10)
@given(seed=seeds, epsilon=st.sampled_from([0.0, 0.5]))
def test_values_and_picks_are_those_without_padding(
    name: str, pairs: bool, allow_pass: bool, seed: int, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    plain, wide = (agent(name, pairs, allow_pass, padded) for padded in (False, True))
    seen, where = observations(rng, 1), places(rng)
    seen = jax.tree.map(lambda leaf: leaf[0], seen)
    key = jax.random.key(seed)
    few = acting(plain)(key, seen, epsilon)
    many = acting(wide)(key, padded(rng, seen, where), epsilon)
    assert np.array_equal(moved(few.action, where[0]).items, many.action.items)
    assert np.array_equal(few.action.commands, many.action.commands)
    if name != "idqn":  # its worth is of one item
        np.testing.assert_allclose(few.worth, many.worth, **CLOSE)
    rows = [*where[0], *[N + MORE_ITEMS] * allow_pass]
    there = np.append(seen.present, np.ones(int(allow_pass), bool))
    taken = [item for item in few.action.items if item >= 0]
    there[taken] = False  # what is picked has no value that means anything
    np.testing.assert_allclose(few.values[:, there], many.values[:, rows][:, there], **CLOSE)


def transitions(rng: Any, steps: int, where: tuple[Any, Any]) -> tuple[Transition, Transition]:
    """Random steps, unpadded and padded."""
    seen, following = observations(rng, steps), observations(rng, steps)
    action = random_actions(rng, seen)
    plain = Transition(
        observation=seen,
        action=action,
        reward=rng.normal(size=steps).astype(np.float32),
        discount=(0.9 * (rng.random(steps) < 0.8)).astype(np.float32),
        truncated=rng.random(steps) < 0.3,
        next_observation=following,
    )
    wide = plain._replace(
        observation=padded(rng, seen, where),
        action=moved(action, where[0]),
        next_observation=padded(rng, following, where),
    )
    return plain, wide


@cache
def dqn_loss(made: agents.Agent) -> Any:
    learner = DQN(made, PaperSettings(batch_size=BATCH), 1000)
    state = SimpleNamespace(
        target=jax.tree.map(lambda leaf: 0.9 * leaf, params_of(made)),
        phase_map=sharing.as_array(learner.phase_map(0)),
    )

    def loss(params: Any, batch: Transition) -> Any:
        return learner.targets(state, batch), jax.value_and_grad(learner.loss)(params, state, batch)

    return jit(loss)


@cache
def fast_loss(made: agents.Agent) -> Any:
    changes = {"num_envs": BATCH, "rollout": 2, "minibatch": 2 * BATCH, "chunk": 2 * BATCH}
    learner = QLambda(made, FastSettings(**changes), 1000)
    phase_map = sharing.as_array(learner.phase_map(0))

    def loss(params: Any, steps: Transition, key: Any) -> Any:
        rows = jax.tree.map(lambda leaf: leaf.reshape(2, BATCH, *leaf.shape[1:]), steps)
        state = Learning(params, params, None, phase_map)
        # What was promised and explored is told by acting; the picks themselves were others.
        asides = [
            learner.act(key, state, jax.tree.map(lambda leaf, t=t: leaf[t], rows.observation), 10)
            for t in range(2)
        ]
        aside = jax.tree.map(lambda *each: jnp.stack(each), *(aside for _, aside in asides))
        target = learner.targets(state, Played(rows, aside, None))
        lesson = (steps.observation, steps.action, target.reshape(2 * BATCH, K))
        batch = SimpleNamespace(
            **dict(zip(("observation", "action", "target"), lesson, strict=True))
        )
        return target, jax.value_and_grad(learner.loss)(params, phase_map, batch)

    return jit(loss)


def compared(few: Any, many: Any, taken: Any) -> None:
    """Targets of what was chosen, losses and gradients; what is not known is so in both."""
    np.testing.assert_allclose(np.asarray(few[0])[taken], np.asarray(many[0])[taken], **CLOSE)
    assert np.isfinite(few[1][0])
    for left, right in zip(jax.tree.leaves(few[1]), jax.tree.leaves(many[1]), strict=True):
        np.testing.assert_allclose(left, right, **CLOSE)


@pytest.mark.parametrize(("name", "pairs", "allow_pass"), LEARNED)
@settings(max_examples=5)
@given(seed=seeds)
def test_what_the_papers_learner_learns_is_what_it_would_without_padding(
    name: str, pairs: bool, allow_pass: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    plain, wide = (agent(name, pairs, allow_pass, padded) for padded in (False, True))
    few, many = transitions(rng, BATCH, places(rng))
    params = params_of(plain)
    taken = np.asarray(plain.chose(few.action))
    compared(dqn_loss(plain)(params, few), dqn_loss(wide)(params, many), taken)


@pytest.mark.parametrize(("name", "pairs", "allow_pass"), LEARNED)
@settings(max_examples=5)
@given(seed=seeds)
def test_what_the_fast_learner_learns_is_what_it_would_without_padding(
    name: str, pairs: bool, allow_pass: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    plain, wide = (agent(name, pairs, allow_pass, padded) for padded in (False, True))
    few, many = transitions(rng, 2 * BATCH, places(rng))
    params, key = params_of(plain), jax.random.key(seed)
    taken = np.asarray(plain.chose(few.action)).reshape(2, BATCH, K)
    compared(fast_loss(plain)(params, few, key), fast_loss(wide)(params, many, key), taken)


@settings(max_examples=5)
@given(seed=seeds)
def test_an_item_with_a_network_of_its_own_keeps_it_among_padding(seed: int) -> None:
    rng, network = np.random.default_rng(seed), PerItem(ISQ(8))
    sets = params_of_items()
    seen, (where, things) = jax.tree.map(lambda leaf: leaf[0], observations(rng, 1)), places(rng)
    wide = padded(rng, seen, (where, things))
    nothing = Action(np.full(K, -1, np.int32), np.zeros(K, np.int32))
    few = network.values(jax.tree.map(lambda leaf: leaf[where], sets), seen, nothing)
    many = network.values(sets, wide, nothing)
    np.testing.assert_allclose(few[seen.present], many[where][seen.present], **CLOSE)


def params_of_items() -> Any:
    rng = np.random.default_rng(1)
    wide = spec(padded=True, allow_pass=False)
    shapes = jax.eval_shape(lambda key: PerItem(ISQ(8)).init(key, wide), jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype), shapes)
