"""What learners are judged by: probes with known Q-values as one world, and how to train on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from selectmdp import sharing, theory
from selectmdp.agent import Agent
from selectmdp.engines import Compiled, Running
from selectmdp.theory import PROBES
from selectmdp.types import Action

jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # runs few times
NEAR = 0.12
"""How far a learned Q-value may be off, as a share of the probe's largest."""
LEVELS = theory.level_world(7)
"""A tiny world in which chance and greed earn far less than the best."""


@pytest.fixture(scope="module", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two engines that are equal compile once."""
    with changed("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("programs"))):
        compilation_cache.reset_cache()
        yield
    compilation_cache.reset_cache()


@contextmanager
def changed(name: str, value: Any) -> Iterator[None]:
    """JAX configured in another way for a while."""
    before = jax.config.values[name]
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


def same(left: Any, right: Any) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


class AllProbes:
    """The probes as one world of eight states, so that a learner compiles once for all of them.

    An item shows its probe beside its features; what a probe does not have is absent, not legal
    or 0. Each probe keeps its own γ: a step gives it as a share of the learner's 0.9.
    """

    time_limit = 10

    def __init__(self) -> None:
        self.probes = {name: make() for name, make in PROBES.items()}
        self.places = [
            (name, state) for name, probe in self.probes.items() for state in states_of(probe)
        ]
        items, context = np.zeros((8, 4, 3 + 5)), np.zeros((8, 1, 1))
        present, legal = np.zeros((8, 4), bool), np.zeros((8, 4, 2), bool)
        for place, (name, state) in enumerate(self.places):
            world = self.probes[name].world
            num_items, features, num_context = (
                world.items[state].shape + world.context[state].shape[:1]
            )
            items[place, :num_items, :features] = world.items[state]
            items[place, :, 3 + list(PROBES).index(name)] = 1.0
            context[place, :num_context] = world.context[state]
            present[place, :num_items] = world.present[state]
            legal[place, :num_items, : world.spec.num_commands] = world.legal[state]
        given = {"num_commands": 2, "context": context, "present": present, "legal": legal}
        self.world = theory.tabulate(self.rule, items, 2, **given)
        self.spec, self.reset, self.observe = self.world.spec, self.world.reset, self.world.observe
        gammas = [self.probes[name].gamma for name, _ in self.places]
        self.shares = np.array(gammas, np.float32) / np.float32(0.9)

    def rule(self, place: int, picks: theory.Picks) -> tuple[float, Any]:
        name, state = self.places[place]
        world = self.probes[name].world
        joint = world.joint.index(picks)
        following = np.zeros(8)
        first = self.places.index((name, 0))
        following[first : first + world.num_states] = world.transitions[state, joint]
        return world.rewards[state, joint], following

    def step(self, key: Any, state: Any, action: Action) -> tuple[Any, Any, Any]:
        following, reward, _ = self.world.step(key, state, action)
        return following, reward, jnp.asarray(self.shares)[state]

    def answers(self, name: str, gamma: float | None = None) -> list[tuple[int, Any, Any]]:
        """(state, picks so far, Q-values) of a probe, at its own γ or at another."""
        probe = self.probes[name]
        answers = probe.answers
        if gamma is not None:
            found = theory.solve(probe.world, gamma)
            answers = [one._replace(values=found.phase_q(one.state, one.picks)) for one in answers]
        return [
            (self.places.index((name, one.state)), one.picks, np.asarray(one.values))
            for one in answers
        ]


def states_of(probe: theory.Probe) -> range:
    return range(probe.world.num_states)


ALL_PROBES = AllProbes()


def started(engine: Compiled) -> Running:
    """A fresh run; what runs once is compiled in haste."""
    with changed("jax_disable_most_optimizations", True):
        return engine.start()


def trained(engine: Compiled, running: Running, chunks: int) -> Running:
    for _ in range(chunks):
        running, _ = engine.run(running)
    return running


def values_by(agent: Agent, params: Any, phase_map: Any) -> Any:
    """(state, items, commands, phase) → values, by what an algorithm learned."""

    def values(place: Any, picks: Action, phase: Any) -> Any:
        own = sharing.of_phase(params, phase_map, phase)
        return agent.network.values(own, ALL_PROBES.observe(place), picks)

    return jit(values)


def furthest(values: Callable[..., Any], probe: str, gamma: float | None = None) -> float:
    """The largest error of a learned Q-value, as a share of the probe's largest Q-value."""
    errors, largest = [], 0.0
    for place, picks, expected in ALL_PROBES.answers(probe, gamma):
        items, commands = np.full(2, -1, np.int32), np.zeros(2, np.int32)
        for phase, pick in enumerate(picks):
            items[phase], commands[phase] = pick
        learned = np.asarray(values(place, Action(items, commands), len(picks)))
        legal = np.isfinite(expected)
        rows, columns = expected.shape
        errors.append(np.abs(learned[:rows, :columns] - expected)[legal].max())
        largest = max(largest, np.abs(expected[legal]).max())
    return float(max(errors) / largest)


def share_of_the_best(agent: Agent, learned: Any) -> float:
    """What a policy earns in the tiny world; the best is 1."""
    act = partial(agent.actor(LEVELS), learned)
    return theory.optimality(LEVELS, theory.table_of(LEVELS, act), 0.9)
