"""Joint actions (paper §2.1): the sets of K picks, which an IS-MDP replaces by K single picks.

Those that are allowed in some state are listed, items ascending; they have K picks, or fewer where
fewer items can be picked.
"""

import itertools
from math import comb

import numpy as np
from jaxtyping import Bool

from selectmdp.spec import SelectError

Picks = tuple[tuple[int, int], ...]
"""Pairs (item, command)."""

MAX_ENTRIES = 10_000_000
"""The most numbers that a table of transitions may hold: 80 MB."""
MAX_ACTIONS = 10_000
"""The most joint actions: they are listed one by one."""


def joint_picks(
    open_pairs: Bool[np.ndarray, "S N C"], num_select: int
) -> tuple[tuple[Picks, ...], Bool[np.ndarray, "S A"]]:
    """The joint actions, and which are allowed in a state: legal, and with no pick too few."""
    num_states, num_items, num_commands = open_pairs.shape
    num_picks = np.minimum(open_pairs.any(axis=2).sum(axis=1), num_select)
    sizes = sorted(set(num_picks.tolist()), reverse=True)
    check_size(num_states, sum(count_joint(num_items, size, num_commands) for size in sizes))
    joint = tuple(
        tuple(zip(items, commands, strict=True))
        for size in sizes
        for items in itertools.combinations(range(num_items), size)
        for commands in itertools.product(range(num_commands), repeat=size)
    )
    allowed = np.stack([num_picks == len(picks) for picks in joint], axis=1)
    for index, picks in enumerate(joint):
        for item, command in picks:
            allowed[:, index] &= open_pairs[:, item, command]
    kept = np.flatnonzero(allowed.any(axis=0))
    return tuple(joint[index] for index in kept), allowed[:, kept]


def received(
    joint: tuple[Picks, ...], num_items: int, num_commands: int
) -> Bool[np.ndarray, "A N C"]:
    """Which command each item receives in a joint action."""
    table = np.zeros((len(joint), num_items, num_commands), bool)
    for index, picks in enumerate(joint):
        for item, command in picks:
            table[index, item, command] = True
    return table


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
