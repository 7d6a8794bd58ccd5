"""Tiny worlds (paper §2.1): by a rule of one's own, or random ones that a seed decides.

`level_world` and `symmetric_world` treat all items alike (§3.2), so that a network which ignores
their order can hold their optimum: the first by rules that a person could tell, the second by any.
`random_world` does not: there an item is its index, and anything may happen.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from selectmdp.iterative import LegalAfter
from selectmdp.spec import SelectError, Spec, check_count, check_seed
from selectmdp.theory.joint import Picks, after_picks, check_size, count_joint, joint_picks
from selectmdp.theory.tiny import TinyWorld

Rule = Callable[[int, Picks], tuple[float, int | Float[np.ndarray, " S"]]]
"""From a state and picks to the reward and the next state, or the probability of each."""


def tabulate(
    rule: Rule,
    items: Any,
    num_select: int,
    *,
    num_commands: int = 1,
    context: Any = None,
    present: Any = None,
    legal: Any = None,
    legal_after: LegalAfter | None = None,
    allow_pass: bool = False,
    time_limit: int = 100,
) -> TinyWorld:
    """The world in which `rule` holds and state s shows `items[s]`; a reset is uniform.

    Unless given there is no context, and all is present and legal.
    """
    items = np.array(items, np.float32)
    states, num_items = items.shape[:2]
    present = np.array(np.ones((states, num_items)) if present is None else present, bool)
    legal = np.array(np.ones((states, num_items, num_commands)) if legal is None else legal, bool)
    context = np.array(np.zeros((states, 0, 1)) if context is None else context, np.float32)
    after = None
    if legal_after is not None:
        after = after_picks(legal_after, items, context, present, legal)
    joint, allowed = joint_picks(legal & present[:, :, None], num_select, after, allow_pass)
    rewards, transitions = np.zeros(allowed.shape), np.zeros((*allowed.shape, states))
    for state, index in np.argwhere(allowed).tolist():
        rewards[state, index], following = rule(state, joint[index])
        surely = np.ndim(following) == 0
        transitions[state, index] = np.eye(states)[following] if surely else following
    return TinyWorld(
        items=items,
        context=context,
        present=present,
        legal=legal,
        num_select=num_select,
        rewards=rewards,
        transitions=transitions,
        start=np.full(states, 1 / states),
        time_limit=time_limit,
        allow_pass=allow_pass,
        legal_after=legal_after,
    )


def level_world(
    seed: int,
    num_items: int = 3,
    num_select: int = 2,
    num_commands: int = 2,
    levels: int = 3,
    time_limit: int = 100,
) -> TinyWorld:
    """N items, each on one of L levels, which is all that is seen of it (one-hot): Lᴺ states.

    A pick earns by its level and command, and each two picks earn by their levels together: nothing
    on level 0, most on the highest, never less than 0. Then every item moves to a level by chances
    of its own level and command, or of not being picked. So it pays to look ahead.
    """
    rng = np.random.default_rng(check_seed(seed))
    Spec(num_items, _at_least("levels", levels, 2), 0, 1, num_select, num_commands)
    check_size(levels**num_items, count_joint(num_items, num_select, num_commands))
    height = np.linspace(0.0, 1.0, levels) ** 2
    worth = rng.uniform(size=(levels, num_commands)) * height[:, None]
    together = rng.uniform(size=(levels, levels)) * np.outer(height, height)
    together = (together + together.T) / 2
    # Row 0 of the second axis is for an item that is not picked; 0.3 makes few levels likely.
    moves = rng.dirichlet(np.full(levels, 0.3), size=(levels, 1 + num_commands))
    states = np.array(list(product(range(levels), repeat=num_items)))

    def rule(state: int, picks: Picks) -> tuple[float, Float[np.ndarray, " S"]]:
        level = states[state]
        reward = sum(worth[level[item], command] for item, command in picks)
        for (one, _), (other, _) in combinations(picks, 2):
            reward += together[level[one], level[other]]
        received = np.zeros(num_items, int)
        for item, command in picks:
            received[item] = 1 + command
        return reward, reduce(np.multiply.outer, moves[level, received]).ravel()

    items = np.eye(levels)[states]
    return tabulate(rule, items, num_select, num_commands=num_commands, time_limit=time_limit)


def symmetric_world(
    seed: int,
    num_items: int = 3,
    num_select: int = 2,
    num_commands: int = 2,
    levels: int = 2,
    symmetric: bool = True,
) -> TinyWorld:
    """Items on levels as in `level_world`; any rewards and chances that treat all items alike.

    They are drawn as if an item were its index, from normal distributions, and then averaged over
    all orders of the items. Without `symmetric` they are left as drawn: one looks as the other.
    """
    rng = np.random.default_rng(check_seed(seed))
    Spec(num_items, _at_least("levels", levels, 2), 0, 1, num_select, num_commands)
    check_size(levels**num_items, count_joint(num_items, num_select, num_commands))
    looks = np.array(list(product(range(levels), repeat=num_items)))
    legal = np.ones((len(looks), num_items, num_commands), bool)
    joint, _ = joint_picks(legal, num_select)
    rewards = rng.normal(size=(len(looks), len(joint)))
    moves = rng.normal(size=(len(looks), len(joint), len(looks)))
    if symmetric:
        rewards, moves = _averaged(rewards, moves, looks, joint)
    # An average of many is close to 0: as drawn, the spread is 1, and 2 makes few states likely.
    chances = softmax(2.0 * moves / moves.std(), axis=2)
    return TinyWorld(
        items=np.eye(levels)[looks],
        context=np.zeros((len(looks), 0, 1)),
        present=legal[:, :, 0],
        legal=legal,
        num_select=num_select,
        rewards=rewards / rewards.std(),
        transitions=chances,
        start=np.full(len(looks), 1 / len(looks)),
    )


def random_world(
    seed: int,
    num_states: int = 6,
    num_items: int = 4,
    num_select: int = 2,
    num_commands: int = 2,
    legal_share: float = 1.0,
    time_limit: int = 100,
) -> TinyWorld:
    """Rewards from a normal distribution and arbitrary chances; a pair is legal by `legal_share`.

    So a state may have fewer than K items to pick, or none. The features of an item are its index
    and the state, both one-hot.
    """
    rng = np.random.default_rng(check_seed(seed))
    features = num_items + _at_least("num_states", num_states, 1)
    Spec(num_items, features, 0, 1, num_select, num_commands)
    check_size(num_states, count_joint(num_items, num_select, num_commands))
    if not 0.0 <= legal_share <= 1.0:
        raise SelectError(f"legal_share={legal_share}: must be within [0, 1]")
    which = np.broadcast_to(np.eye(num_items), (num_states, num_items, num_items))
    where = np.broadcast_to(np.eye(num_states)[:, None], (num_states, num_items, num_states))
    legal = rng.uniform(size=(num_states, num_items, num_commands)) < legal_share
    return tabulate(
        lambda state, picks: (rng.normal(), rng.dirichlet(np.full(num_states, 0.3))),
        np.concatenate([which, where], axis=2),
        num_select,
        num_commands=num_commands,
        legal=legal,
        time_limit=time_limit,
    )


def reordered(looks: Int[np.ndarray, "S N"], order: Sequence[int]) -> Int[np.ndarray, " S"]:
    """The state that each state becomes with its items in another order; `looks` tells it by."""
    places = {tuple(look): state for state, look in enumerate(looks.tolist())}
    return np.array([places[tuple(look)] for look in looks[:, order].tolist()])


def moved(picks: Picks, order: Sequence[int]) -> Picks:
    """The same picks, told by where their items stand in another order."""
    return tuple((order.index(item), command) for item, command in picks)


def _averaged(
    rewards: Float[np.ndarray, "S A"],
    moves: Float[np.ndarray, "S A S"],
    looks: Int[np.ndarray, "S N"],
    joint: tuple[Picks, ...],
) -> tuple[Float[np.ndarray, "S A"], Float[np.ndarray, "S A S"]]:
    """The mean of both tables over all orders of the items."""
    actions = {picks: index for index, picks in enumerate(joint)}
    orders = list(permutations(range(looks.shape[1])))
    sums = np.zeros_like(rewards), np.zeros_like(moves)
    for order in orders:
        states = reordered(looks, order)
        same = np.array([actions[tuple(sorted(moved(picks, order)))] for picks in joint])
        sums[0][...] += rewards[np.ix_(states, same)]
        sums[1][...] += moves[np.ix_(states, same, states)]
    return sums[0] / len(orders), sums[1] / len(orders)


def _at_least(name: str, value: int, least: int) -> int:
    if check_count(name, value) < least:
        raise SelectError(f"{name}={value}: must be at least {least}")
    return value
