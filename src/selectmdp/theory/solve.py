"""What is best in a tiny Select-MDP, exactly: the judge of learners (paper §2, eq. 1).

Policy iteration over joint actions in float64 gives the values of an S-MDP. The IS-MDP's Q-values
follow without another equation: between phases the discount is 1 and the reward 0, so a pick is
worth the best joint action that holds it and the picks before it; γ is inside that one's value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from selectmdp.envs.base import picks_of
from selectmdp.references import Actor
from selectmdp.spec import SelectError, check_count
from selectmdp.theory.joint import Picks
from selectmdp.theory.tiny import TinyWorld
from selectmdp.types import Action, Observation

Policy = Action | Float[np.ndarray, "S A"]
"""The picks in every state, [S, K] each, in any order; or the chance of every joint action."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The optimum of a world under a discount γ."""

    world: TinyWorld
    gamma: float
    values: Float[np.ndarray, " S"]
    action_values: Float[np.ndarray, "S A"]
    """Optimal value of each joint action; −∞ where it is not allowed."""
    best_action: Action
    """The best picks in every state, [S, K] each, items ascending; the first of equals."""

    def phase_q(
        self, state: int, picks: Sequence[tuple[int, int]] = ()
    ) -> Float[np.ndarray, "rows C"]:
        """Optimal value of each (item, command) after these picks; −∞ where it is not legal.

        Where a pass is allowed one more row begins with its value, as in a network.
        """
        world = self.world
        if check_count("state", state) >= world.num_states:
            raise SelectError(f"state={state}: this world has {world.num_states} states")
        held, completes = world.received, world.allowed[state].copy()
        for item, command in picks:
            if not (0 <= item < held.shape[1] and 0 <= command < held.shape[2]):
                raise SelectError(f"picks={tuple(picks)}: there is no pair {(item, command)}")
            completes &= held[:, item, command]
        chosen = [item for item, _ in picks]
        if not completes.any() or len(set(chosen)) < len(chosen):
            raise SelectError(f"picks={tuple(picks)} are not legal in state {state}")
        values = np.where(completes, self.action_values[state], -np.inf)
        best = np.where(held, values[:, None, None], -np.inf).max(axis=0)
        best[chosen] = -np.inf
        if not world.allow_pass or len(chosen) == world.num_select:
            return best
        passing = np.full((1, best.shape[1]), -np.inf)
        passing[0, 0] = self.action_values[state, world.joint.index(tuple(sorted(picks)))]
        return np.concatenate([best, passing])

    def act(self, key: Key[Array, ""], state: Int[Array, ""], observation: Observation) -> Action:
        """The best action as a policy that `evaluate` can play."""
        del key, observation
        return Action(self.best_action.items[state], self.best_action.commands[state])


def solve(world: TinyWorld, gamma: float, tolerance: float = 1e-10) -> Solution:
    """The optimum by policy iteration.

    Two values within `tolerance` (relative to the largest value, if that is above 1) are equal.
    """
    check_gamma(gamma)
    states = np.arange(world.num_states)
    chosen = np.where(world.allowed, world.rewards, -np.inf).argmax(axis=1)
    while True:
        values = _settled(world.rewards[states, chosen], world.transitions[states, chosen], gamma)
        ahead = world.rewards + gamma * (world.transitions @ values)
        action_values = np.where(world.allowed, ahead, -np.inf)
        best, margin = action_values.max(axis=1), tolerance * max(1.0, np.abs(values).max())
        better = best > action_values[states, chosen] + margin
        if not better.any():
            break
        chosen = np.where(better, action_values.argmax(axis=1), chosen)
    first = (action_values >= best[:, None] - margin).argmax(axis=1)
    return Solution(
        world=world,
        gamma=gamma,
        values=best,
        action_values=action_values,
        best_action=_stacked(world, [world.joint[index] for index in first]),
    )


def evaluate_policy(world: TinyWorld, policy: Policy, gamma: float) -> Float[np.ndarray, " S"]:
    """The exact value of every state under a policy: one linear system."""
    check_gamma(gamma)
    chances = _chances(world, policy)
    rewards = (chances * world.rewards).sum(axis=1)
    return _settled(rewards, np.einsum("sa,sat->st", chances, world.transitions), gamma)


def optimality(world: TinyWorld, policy: Policy, gamma: float) -> float:
    """The policy's expected return from a reset, as a share of the best possible.

    1 is the optimum and 0 is to earn nothing, so it needs rewards that are not negative. Picking
    blindly is not 0 but `optimality(world, random_policy(world), gamma)`.
    """
    best = float(world.start @ solve(world, gamma).values)
    if (world.rewards < 0).any() or best <= 0:
        raise SelectError(
            f"optimality is a share of what can be earned, and here the least reward is "
            f"{world.rewards.min():g} and the best return {best:g}: compare "
            "evaluate_policy(…) with solve(…).values instead"
        )
    return float(world.start @ evaluate_policy(world, policy, gamma)) / best


def random_policy(world: TinyWorld) -> Float[np.ndarray, "S A"]:
    """The chance of each joint action if every pick is any legal pair, as in `random_action`.

    A pass, where it is allowed, is as likely as each of them.
    """
    # Chances of the *sets* picked so far: those of the orders that lead to a set add up.
    never = np.zeros(world.num_states)
    reached: dict[frozenset[tuple[int, int]], np.ndarray] = {frozenset(): never + 1}
    passed: dict[frozenset[tuple[int, int]], np.ndarray] = {}
    for _ in range(world.num_select):
        after: dict[frozenset[tuple[int, int]], np.ndarray] = {}
        for picks, chance in reached.items():
            left = world.open_after(tuple(picks))
            count = left.sum(axis=(1, 2)) + world.allow_pass
            if world.allow_pass:
                passed[picks] = passed.get(picks, never) + chance / count
            after[picks] = after.get(picks, never) + np.where(count == 0, chance, 0.0)
            for item, command in np.argwhere(left.any(axis=0)).tolist():
                share = np.where(left[:, item, command], chance / np.maximum(count, 1), 0.0)
                following = picks | {(item, command)}
                after[following] = after.get(following, never) + share
        reached = after
    columns = [
        reached.get(frozenset(picks), never) + passed.get(frozenset(picks), never)
        for picks in world.joint
    ]
    return np.stack(columns, axis=1)


def table_of(world: TinyWorld, actor: Actor, seed: int = 0) -> Action:
    """What a policy picks in every state, [S, K] each: asked once, so it should not be random."""
    keys = jax.random.split(jax.random.key(seed), world.num_states)

    def asked(key: Key[Array, ""], state: Int[Array, ""]) -> Action:
        return actor(key, state, world.observe(state))

    return jax.jit(jax.vmap(asked))(keys, jnp.arange(world.num_states, dtype=jnp.int32))


def _settled(
    rewards: Float[np.ndarray, " S"], moves: Float[np.ndarray, "S S"], gamma: float
) -> Float[np.ndarray, " S"]:
    """The values v = r + γ P v of a Markov chain with rewards."""
    return np.linalg.solve(np.eye(len(rewards)) - gamma * moves, rewards)


def _chances(world: TinyWorld, policy: Policy) -> Float[np.ndarray, "S A"]:
    if isinstance(policy, Action):
        return _certain(world, policy)
    chances = np.asarray(policy, np.float64)
    if chances.shape != world.allowed.shape:
        raise SelectError(f"policy has shape {chances.shape}: must be {world.allowed.shape}")
    sums = np.where(world.allowed, chances, 0.0).sum(axis=1)
    if (chances < 0).any() or not np.allclose(sums, 1.0, rtol=0.0, atol=1e-6):
        raise SelectError(
            "policy: in some state these are no chances of allowed joint actions; "
            "they must sum to 1 and be 0 where world.allowed is False"
        )
    return chances


def _certain(world: TinyWorld, policy: Action) -> Float[np.ndarray, "S A"]:
    items, commands = np.asarray(policy.items), np.asarray(policy.commands)
    shape = (world.num_states, world.num_select)
    if items.shape != shape or commands.shape != shape:
        raise SelectError(f"policy has picks of shape {items.shape}: must be {shape}")
    places = {picks: index for index, picks in enumerate(world.joint)}
    chances = np.zeros(world.allowed.shape)
    for state in range(world.num_states):
        picks = picks_of(Action(policy.items[state], policy.commands[state]))
        index = places.get(tuple(sorted(picks)))
        if index is None or not world.allowed[state, index]:
            raise SelectError(f"policy: the picks {picks} are not legal in state {state}")
        chances[state, index] = 1.0
    return chances


def _stacked(world: TinyWorld, rows: Sequence[Picks]) -> Action:
    """Picks of every state as one action, [S, K] each; −1 where there are fewer than K."""
    missing = (-1, 0)
    pairs = [[*picks, *[missing] * (world.num_select - len(picks))] for picks in rows]
    items, commands = np.moveaxis(np.array(pairs, np.int32), 2, 0)
    return Action(jnp.asarray(items), jnp.asarray(commands))


def check_gamma(gamma: float) -> None:
    """Refuse a discount under which values need not exist."""
    if not 0.0 <= gamma < 1.0:
        raise SelectError(f"gamma={gamma}: must be at least 0 and less than 1")
