"""How many numbers each way to share has to learn (paper §3.2), over N and K.

A dense network has O(N²) for each phase, an I-shared one a fixed number for each phase, a
U-shared one a fixed number; P-sharing begins as U and ends as I.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import jax

from selectmdp import agent, tasks
from selectmdp.nets.base import count

GROWTH = {"vanilla": "O(N²K)", "isq-i": "O(K)", "isq-p": "1 … K sets", "isq-u": "O(1)"}
"""How the parameters of an algorithm grow."""


def counts(
    task: str, sizes: Iterable[tuple[int, int]], algorithms: Sequence[str] = tuple(GROWTH)
) -> list[dict[str, Any]]:
    """For each (N, K) and algorithm, with the paper's networks; nothing is allocated."""
    rows = []
    for items, picks in sizes:
        env = tasks.make(task, num_items=items, num_select=picks)
        for name in algorithms:
            shapes = jax.eval_shape(agent.make(name, env).init, jax.random.key(0))
            rows.append({"algorithm": name, "N": items, "K": picks, "parameters": count(shapes)})
    return rows
