"""Joint actions (paper §2.1): the sets of K picks, which an IS-MDP replaces by K single picks.

Those that are allowed in some state are listed, items ascending; they have K picks, or fewer where
fewer items can be picked or a pass is allowed.
"""

import itertools
from collections.abc import Callable
from math import comb
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from selectmdp.iterative import LegalAfter
from selectmdp.spec import SelectError
from selectmdp.types import Observation

Picks = tuple[tuple[int, int], ...]
"""Pairs (item, command)."""

MAX_ENTRIES = 10_000_000
"""The most numbers that a table of transitions may hold: 80 MB."""
MAX_ACTIONS = 10_000
"""The most joint actions: they are listed one by one."""


OpenAfter = Callable[[Picks], Bool[np.ndarray, "S N C"]]
"""From picks to the pairs that may be picked after them, in each state."""


def joint_picks(
    open_pairs: Bool[np.ndarray, "S N C"],
    num_select: int,
    open_after: OpenAfter | None = None,
    allow_pass: bool = False,
) -> tuple[tuple[Picks, ...], Bool[np.ndarray, "S A"]]:
    """The joint actions, and which are allowed in a state: legal, and with no pick too few.

    `open_after` is given where more than the item leaves with a pick; any order must do then.
    """
    num_states, num_items, num_commands = open_pairs.shape
    num_picks = np.minimum(open_pairs.any(axis=2).sum(axis=1), num_select)
    sizes = sorted(set(num_picks.tolist()), reverse=True)
    if open_after is not None or allow_pass:
        sizes = [*range(sizes[0], -1, -1)]
    check_size(num_states, sum(count_joint(num_items, size, num_commands) for size in sizes))
    joint = tuple(
        tuple(zip(items, commands, strict=True))
        for size in sizes
        for items in itertools.combinations(range(num_items), size)
        for commands in itertools.product(range(num_commands), repeat=size)
    )
    if open_after is None:
        whole = [(num_picks == len(picks)) | allow_pass for picks in joint]
        allowed = np.stack(whole, axis=1)
        for index, picks in enumerate(joint):
            for item, command in picks:
                allowed[:, index] &= open_pairs[:, item, command]
    else:
        allowed = _by_rule(joint, num_select, open_after, allow_pass)
    kept = np.flatnonzero(allowed.any(axis=0))
    return tuple(joint[index] for index in kept), allowed[:, kept]


def after_picks(
    rule: LegalAfter | None,
    items: Float[np.ndarray, "S N F"],
    context: Float[np.ndarray, "S U G"],
    present: Bool[np.ndarray, "S N"],
    legal: Bool[np.ndarray, "S N C"],
) -> OpenAfter:
    """What is left after picks in every state, by what it shows and a `legal_after`, if any."""
    open_pairs = legal & present[:, :, None]
    parts: Any = items, context, present, np.ones(context.shape[:2], bool), legal
    after = None if rule is None else jax.jit(jax.vmap(rule, in_axes=(0, None, None)))

    def left(picks: Picks) -> Bool[np.ndarray, "S N C"]:
        chosen, command = np.zeros(present.shape[1], bool), np.zeros(present.shape[1], np.int32)
        for item, given in picks:
            chosen[item], command[item] = True, given
        pairs = open_pairs & ~chosen[None, :, None]
        if after is None:
            return pairs
        return pairs & np.asarray(after(Observation(*parts), chosen, command))

    return left


def received(
    joint: tuple[Picks, ...], num_items: int, num_commands: int
) -> Bool[np.ndarray, "A N C"]:
    """Which command each item receives in a joint action."""
    table = np.zeros((len(joint), num_items, num_commands), bool)
    for index, picks in enumerate(joint):
        for item, command in picks:
            table[index, item, command] = True
    return table


def _by_rule(
    joint: tuple[Picks, ...], num_select: int, open_after: OpenAfter, allow_pass: bool
) -> Bool[np.ndarray, "S A"]:
    """Which joint actions can be picked one after the other, and are then whole."""
    left = {picks: open_after(picks) for picks in joint}
    reached: dict[Picks, np.ndarray] = {(): np.ones(len(left[()]), bool)}
    for picks in reversed(joint):  # the fewest picks first
        if picks:
            *before, (item, command) = picks
            reached[picks] = reached[tuple(before)] & left[tuple(before)][:, item, command]
    whole = {
        picks: allow_pass | (len(picks) == num_select) | ~left[picks].any(axis=(1, 2))
        for picks in joint
    }
    return np.stack([reached[picks] & whole[picks] for picks in joint], axis=1)


def count_joint(num_items: int, num_select: int, num_commands: int) -> int:
    """How many ways there are to pick K of N items and give each a command."""
    return int(comb(num_items, num_select) * num_commands**num_select)


def check_size(num_states: int, num_actions: int) -> None:
    """Refuse a world whose tables would not be tiny."""
    entries = num_states * num_actions * num_states
    if entries > MAX_ENTRIES or num_actions > MAX_ACTIONS:
        raise SelectError(
            f"{num_states} states with {num_actions} joint actions need {entries} transition "
            f"probabilities; at most {MAX_ENTRIES}, and {MAX_ACTIONS} joint actions, are tiny: "
            "take fewer states, items, picks or commands"
        )
