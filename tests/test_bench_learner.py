"""The learner's benchmark has its shape; its fast path computes what the definition says."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from selectmdp import agent, iterative, sharing
from selectmdp.algorithms import Shape
from selectmdp.bench import learner
from selectmdp.envs import Circle
from selectmdp.types import Action, Observation, Transition


@pytest.fixture
def tiny(monkeypatch):
    for name, value in {"ITEMS": (5,), "PICKS": 2, "BATCH": 4, "CHANNELS": 4}.items():
        monkeypatch.setattr(learner, name, value)


@pytest.mark.slow
def test_the_benchmark_gives_json_of_every_measurement(tiny, monkeypatch):
    monkeypatch.setattr(learner, "updates", lambda *size: lambda: None)
    monkeypatch.setattr(learner, "act_ms", lambda *case: 1.0)
    monkeypatch.setattr(learner, "training_row", lambda *case: {"ratio": 4.0})
    seen = []
    result = json.loads(json.dumps(learner.measure(1e-3, lambda *step: seen.append(step))))
    assert seen == [(done, 7) for done in range(1, 8)]
    assert [row["sharing"] for row in result["updates"]] == ["I", "U"]
    for row in result["updates"]:
        assert row["fraction_of_peak"] == pytest.approx(row["gflops"] / row["peak_gflops"])
    assert len(result["growth"]["items"]["update_ms"]) == 5
    assert result["growth"]["picks"]["sizes"] == [2, 4, 6, 8, 12]
    assert result["training"] == [{"ratio": 4.0}]


@pytest.mark.slow
def test_what_is_measured_learns_from_a_full_replay(tiny):
    _, _, running = learner.filled(5, 2, "isq-u", capacity=100)
    rings = running.learner.replay
    assert rings.filled.tolist() == [101]
    assert rings.step.all()
    np.testing.assert_array_equal(rings.items[:, 0], rings.items[:, 50])
    _, losses = learner.updates(5, 2, "isq-u")()
    assert losses.shape == (10,)
    assert jnp.isfinite(losses).all()


def test_an_update_nominally_takes_413_million_operations():
    assert learner.nominal_flops(50, 6) == 4 * 2 * 50 * (3 * 48 + 48 * 48 + 48 * 5) * 6 * 64


def test_a_replay_of_50_000_steps_at_200_items_takes_less_than_150_megabytes():
    assert learner.replay_bytes(200, 50_000) < 150e6


@pytest.mark.parametrize("num_context", [0, 3])
@pytest.mark.parametrize(
    "name", ["isq-i", "isq-u", "idqn", pytest.param("isq-p", marks=pytest.mark.slow)]
)
def test_all_phases_of_a_batch_are_what_one_state_and_phase_after_the_other_gives(
    name, num_context
):
    env = Circle(num_items=6, num_context=num_context, num_select=3)
    here = agent.make(name, env, shape=Shape(4, hidden=(8,)))
    params = _shaken(here.init(jax.random.key(0)))
    kind = here.algorithm.sharing
    phase_map = jnp.asarray((0, 0, 2) if kind == "progressive" else sharing.first_map(kind, 3))
    batch = _batch(env)
    taken = (batch.action.items >= 0).T

    def one_by_one(params):
        return jnp.stack([_phase(here, params, phase_map, batch, phase) for phase in range(3)])

    def at_once(params):
        return here.picked_values(params, phase_map, batch.observation, batch.action)

    def total(values):
        return lambda params: jnp.where(taken, jnp.square(values(params)), 0.0).sum()

    slow, slow_gradient = jax.jit(jax.value_and_grad(total(one_by_one)))(params)
    fast, fast_gradient = jax.jit(jax.value_and_grad(total(at_once)))(params)
    np.testing.assert_allclose(fast, slow, rtol=1e-5)
    for left, right in zip(*map(jax.tree.leaves, (fast_gradient, slow_gradient)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_select", [1, 3])
@pytest.mark.parametrize("name", ["isq-i", "isq-u", "eq-local", "vanilla"])
def test_what_follows_is_the_next_phase_and_after_the_last_the_next_step(name, num_select):
    env = Circle(num_items=6, num_context=2, num_select=num_select)
    here = agent.make(name, env, shape=Shape(4))
    params = _shaken(here.init(jax.random.key(0)))
    phase_map = jnp.asarray(sharing.first_map(here.algorithm.sharing, num_select))
    batch = _batch(env)
    following = jax.jit(here.following)(params, phase_map, batch)
    for slot in range(num_select):
        phase = (slot + 1) % num_select
        seen = batch.observation if phase else batch.next_observation
        own = sharing.of_phase(params, phase_map, jnp.asarray(phase))

        def one(observation, action, own=own, phase=phase):
            made = jax.tree.map(lambda rows: rows[phase], iterative.selections(action))
            values = here.network.values(own, observation, made.picks)
            return values, here.open_pairs(observation, made)

        values, legal = jax.vmap(one)(seen, batch.action)
        np.testing.assert_array_equal(following.legal[:, slot], legal)
        np.testing.assert_allclose(
            jnp.where(legal, following.values[:, slot], 0.0),
            jnp.where(legal, values, 0.0),
            rtol=1e-5,
            atol=1e-5,
        )


def _phase(here, params, phase_map, batch, phase):
    own = sharing.of_phase(params, phase_map, jnp.asarray(phase))

    def one(observation, action):
        made = jax.tree.map(lambda rows: rows[phase], iterative.selections(action))
        return here.network.value(
            own, observation, made.picks, action.items[phase], action.commands[phase]
        )

    return jax.vmap(one)(batch.observation, batch.action)


def _shaken(params):
    """Biases that are not 0."""
    return jax.tree.map(
        lambda leaf: leaf + 0.1 * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), params
    )


def _batch(env):
    """Four steps with absent items, illegal pairs, and all, some, one or no picks made."""
    rng, spec, size = np.random.default_rng(0), env.spec, 4
    num_items, num_select = spec.num_items, spec.num_select

    def observation():
        present = rng.random((size, num_items)) < 0.7
        present[:, :num_select] = True
        return Observation(
            items=jnp.asarray(rng.normal(size=(size, num_items, spec.item_features)), jnp.float32),
            context=jnp.asarray(
                rng.normal(size=(size, spec.num_context, spec.context_features)), jnp.float32
            ),
            present=jnp.asarray(present),
            context_present=jnp.asarray(rng.random((size, spec.num_context)) < 0.6),
            legal=jnp.asarray(rng.random((size, num_items, spec.num_commands)) < 0.7),
        )

    items = np.stack([rng.permutation(num_select) for _ in range(size)]).astype(np.int32)
    items[1, num_select - 1 :] = -1
    items[2, 1:] = -1
    items[3] = -1
    commands = rng.integers(0, spec.num_commands, items.shape)
    return Transition(
        observation=observation(),
        action=Action(jnp.asarray(items), jnp.asarray(np.where(items < 0, 0, commands), jnp.int32)),
        reward=jnp.ones(size),
        discount=jnp.full(size, 0.99),
        truncated=jnp.zeros(size, bool),
        next_observation=observation(),
    )
