"""Checks of an environment in JAX on an episode of random legal picks."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from selectmdp.check.numpy_probe import NumpyProbe
from selectmdp.check.probe import JaxProbe, Trail
from selectmdp.check.report import NotChecked, Wrong, close
from selectmdp.envs.base import offers, picks_of
from selectmdp.interop.spaces import check_action
from selectmdp.iterative import choose, empty, legal, random_action, selections
from selectmdp.spec import SelectError
from selectmdp.types import Action, Observation

EPISODES = 16
"""How many episodes are played to the time limit."""
LONGEST = 20_000
"""A time limit beyond this is not played to."""


def seeds(probe: JaxProbe) -> str:
    """The same key gives the same episode, another key another."""
    first = _seen(probe.trail)
    if not (_equal(first, _seen(probe.play(probe.seed))) and _traces_alike(probe, first)):
        raise Wrong(
            "the same key gave two different episodes: draw every chance from the key that reset "
            "and step are given (jax.random), not from NumPy, and keep nothing in the environment"
        )
    others = (probe.play(probe.seed + other) for other in (1, 2, 3))
    if all(_equal(first, _seen(other)) for other in others):
        return (
            "the same key gives the same episode. Note: so do other keys; if the world is not "
            "meant to be deterministic, use the key in reset and step"
        )
    return "the same key gives the same episode, another key another"


def finite(probe: JaxProbe) -> str:
    """No NaN and no infinity, padding included: 0 × NaN is NaN."""
    trail = probe.trail
    for name, values in (
        ("observation.items", trail.observation.items),
        ("observation.context", trail.observation.context),
        ("observation.items", trail.next_observation.items),
        ("observation.context", trail.next_observation.context),
        ("reward", trail.reward),
        ("discount", trail.discount),
    ):
        bad = ~np.isfinite(np.asarray(values, np.float64))
        if bad.any():
            step, *place = np.argwhere(bad)[0].tolist()
            raise Wrong(
                f"{name}{place or ''} is {np.asarray(values)[bad][0]} at step {step + 1}: look for "
                "a division by 0, a root or a logarithm there; put 0 where an item is absent"
            )
    return f"no NaN or infinity in {probe.steps} steps"


def discount(probe: JaxProbe) -> str:
    """A discount is within [0, 1]."""
    values = np.asarray(probe.trail.discount)
    bad = (values < 0) | (values > 1)
    if bad.any():
        raise Wrong(
            f"the discount is {values[bad][0]} at step {int(bad.argmax()) + 1}: give 0 at a true "
            "terminal, 1 (or γ) otherwise"
        )
    return f"within [0, 1] in {probe.steps} steps"


def legal_mask(probe: JaxProbe) -> str:
    """Something is legal at some time."""
    env, nothing = probe.env, empty(probe.env.spec.num_select)

    def open_pairs(observation: Observation) -> Bool[Array, "N C"]:
        return legal(observation, nothing, offers(env, "legal_after"))

    possible = np.asarray(jax.jit(jax.vmap(open_pairs))(probe.trail.observation)).any(axis=(1, 2))
    if not possible.any():
        raise Wrong(
            f"in none of {probe.steps} steps was any pair legal, so nothing can ever be picked: "
            "set legal (and present) where a pair may be chosen"
        )
    return f"something was legal in {int(possible.sum())} of {probe.steps} steps"


def legal_after(probe: JaxProbe) -> str:
    """Picks only ever remove pairs, and their order does not matter."""
    rule = offers(probe.env, "legal_after")
    if rule is None:
        raise NotChecked("the environment offers no legal_after")

    def masks(observation: Observation, action: Action) -> Bool[Array, "K+1 N C"]:
        stacked = selections(action)
        return jax.vmap(lambda selection: legal(observation, selection, rule))(stacked)

    def legal_in_order(observation: Observation, action: Action) -> Bool[Array, " K"]:
        def phase(selection: Any, pick: Action) -> tuple[Any, Array]:
            fine = legal(observation, selection, rule)[pick.items, pick.commands]
            return choose(selection, *pick), fine | (pick.items < 0)

        return jax.lax.scan(phase, empty(probe.env.spec.num_select), action)[1]

    observations, actions = probe.trail.observation, probe.trail.action
    stacked = np.asarray(jax.jit(jax.vmap(masks))(observations, actions))
    back = stacked[:, 1:] & ~stacked[:, :-1]
    if back.any():
        step, pick, item, command = np.argwhere(back)[0].tolist()
        raise Wrong(
            f"legal_after made item {item} with command {command} legal again after pick {pick} of "
            f"step {step + 1}: picks may only remove pairs"
        )
    backwards = jax.tree.map(lambda part: part[:, ::-1], actions)
    fine = np.asarray(jax.jit(jax.vmap(legal_in_order))(observations, backwards))
    if not fine.all():
        step = int((~fine.all(axis=1)).argmax())
        picks = picks_of(jax.tree.map(lambda part: part[step], actions))
        raise Wrong(
            f"the picks {picks} of step {step + 1} are legal in this order and not backwards: "
            "legal_after must depend on what was picked, not on what was picked first"
        )
    return "picks only remove pairs, and are as legal backwards"


def partial_reward(probe: JaxProbe) -> str:
    """Entry k is the reward of a step with the first k picks, under the same key."""
    offered = offers(probe.env, "partial_reward")
    if offered is None:
        raise NotChecked("the environment offers no partial_reward")
    num_select = probe.env.spec.num_select
    trail = probe.trail
    partial = np.asarray(jax.jit(jax.vmap(offered))(trail.key, trail.state, trail.action))
    shape = partial.shape[1:]
    if shape != (num_select,):
        raise Wrong(f"partial_reward has shape {shape}: give one number a pick, ({num_select},)")

    def rewards(key: Key[Array, ""], state: Any, action: Action) -> Float[Array, " K"]:
        def first(count: Array) -> Float[Array, ""]:
            kept = jnp.where(jnp.arange(num_select) < count, action.items, -1)
            reward: Array = probe.env.step(key, state, Action(kept, action.commands))[1]
            return reward

        return jax.vmap(first)(jnp.arange(num_select) + 1)

    expected = np.asarray(jax.jit(jax.vmap(rewards))(trail.key, trail.state, trail.action))
    wrong = ~close(partial, expected)
    if wrong.any():
        step, pick = np.argwhere(wrong)[0].tolist()
        whole = "the step's" if pick == num_select - 1 else "that of a step with these picks only,"
        raise Wrong(
            f"partial_reward with {pick + 1} of {num_select} picks is {partial[step, pick]} at "
            f"step {step + 1}, but {whole} reward under the same key is {expected[step, pick]}: "
            "use the same draws, and leave out the later picks"
        )
    return "entry k is the reward of a step with the first k picks under the same key"


def greedy(probe: JaxProbe) -> str:
    """What the heuristic picks is legal: of illegal picks a world may make anything."""
    offered, rule, spec = (offers(probe.env, name) for name in ("greedy", "legal_after", "spec"))
    if offered is None:
        raise NotChecked("the environment offers no greedy")
    trail = probe.trail
    keys = jax.random.split(jax.random.fold_in(probe.key, 1), probe.steps)
    actions = jax.device_get(jax.jit(jax.vmap(offered))(keys, trail.state))
    after = None if rule is None else jax.jit(rule)
    for step in range(probe.steps):
        seen, picks = jax.tree.map(lambda leaf: leaf[step], (trail.observation, actions))  # noqa: B023
        mask = np.asarray(seen.legal & seen.present[:, None])
        try:
            check_action(spec, mask, picks, after and partial(after, seen))
        except SelectError as error:
            raise Wrong(f"greedy at step {step + 1}: {error}") from error
    return f"greedy picks are legal in {probe.steps} steps"


def learning_reward(probe: JaxProbe | NumpyProbe) -> str:
    """One finite number of every reward: what is not finite is not learned from."""
    offered = offers(probe.env, "learning_reward")
    if offered is None:
        raise NotChecked("the environment offers no learning_reward")
    trail = probe.trail
    rewards = trail.reward if isinstance(trail, Trail) else [each.reward for each in trail]
    for number, reward in enumerate(np.asarray(rewards, np.float32), start=1):
        with np.errstate(all="ignore"):  # told below
            made = np.asarray(offered(reward))
        if made.shape != () or made.dtype.kind not in "fiu" or not np.isfinite(made):
            raise Wrong(
                f"learning_reward makes {made} of the reward {reward} of step {number}: give one "
                "finite number for whatever a step may earn"
            )
    return f"learning_reward makes a number of each reward in {probe.steps} steps"


def time_limit(probe: JaxProbe) -> str:
    """No terminal waits at the time limit: that end is a truncation, made at the edge."""
    offered = offers(probe.env, "time_limit")
    if offered is None:
        raise NotChecked("the environment offers no time_limit")
    limit = int(offered)
    if limit > LONGEST:
        raise NotChecked(f"time_limit={limit} is too long to play to; make one with a shorter one")
    keys = jax.random.split(probe.key, EPISODES)
    ended = np.asarray(jax.jit(jax.vmap(lambda key: _terminals(probe, key, limit)))(keys))
    lasted = ~ended[:, :-1].any(axis=1)
    if lasted.sum() < EPISODES // 2:
        raise NotChecked(f"most random episodes end before step {limit}, the time limit")
    if ended[lasted, -1].all():
        raise Wrong(
            f"the discount is 0 at step {limit}, the time limit, in every episode: that end is a "
            "truncation, so keep the discount; or drop time_limit if the end is real"
        )
    return f"step {limit}, the time limit, is no terminal"


def _traces_alike(probe: JaxProbe, first: list[np.ndarray[Any, Any]]) -> bool:
    """Traced again it is the same program; or at least, run, the same episode."""
    chance, again = probe.chance(probe.seed), probe.fresh_player()
    if again.lower(*chance).as_text() == probe.player.lower(*chance).as_text():
        return True
    return _equal(first, _seen(again(*chance)))


def _terminals(probe: JaxProbe, key: Key[Array, ""], length: int) -> Bool[Array, " T"]:
    env = probe.env

    def one(state: Any, step_key: Key[Array, ""]) -> tuple[Any, Array]:
        act_key, world_key = jax.random.split(step_key)
        action = random_action(act_key, env, env.observe(state))
        state, _, discount = env.step(world_key, state, action)
        return state, discount == 0

    reset_key, key = jax.random.split(key)
    return jax.lax.scan(one, env.reset(reset_key), jax.random.split(key, length))[1]


def _seen(trail: Any) -> list[np.ndarray[Any, Any]]:
    parts = (trail.observation, trail.action, trail.reward, trail.discount, trail.next_observation)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(parts)]


def _equal(left: list[np.ndarray[Any, Any]], right: list[np.ndarray[Any, Any]]) -> bool:
    return all(
        np.array_equal(a, b, equal_nan=np.issubdtype(a.dtype, np.floating))
        for a, b in zip(left, right, strict=True)
    )
