"""How many numbers there are to learn (paper §3.2): O(N²K), then O(K), then O(1), by counting.

The library's own networks are counted, without being made: `vanilla` is dense with a network for
each phase, `isq-i` shares weights among items, `isq-u` among phases as well.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from selectmdp import agent, tasks
from selectmdp.nets.base import count
from selectmdp.theory.plan import Plan, Progress, Verdict

GROWTH: Mapping[str, str] = {
    "vanilla": "O(N²K)",
    "isq-i": "O(K)",
    "isq-p": "1 … K sets",
    "isq-u": "O(1)",
}
"""How the parameters of an algorithm grow."""

EXPONENTS: Mapping[str, tuple[float, float]] = {
    "vanilla": (2.0, 1.0),
    "isq-i": (0.0, 1.0),
    "isq-u": (0.0, 0.0),
}
"""Of N and of K in the growth."""
ITEMS, PICKS = (200, 400), (1, 2)
"""Where the exponents are read off: a dense network's input has K rows too, few beside N."""
ALLOWED = 0.05


def check(plan: Plan, progress: Progress) -> Verdict:
    """The exponents of N and K between two sizes; another network's growth must not fit."""
    del plan
    rows = parameter_rows("circle", ITEMS, PICKS, tuple(EXPONENTS))
    progress(1, 1)
    found = {name: exponents(rows, name) for name in EXPONENTS}
    error = max(misfit(found[name], wanted) for name, wanted in EXPONENTS.items())
    crossed = min(
        misfit(found[name], wanted)
        for name in EXPONENTS
        for other, wanted in EXPONENTS.items()
        if name != other
    )
    return Verdict(
        statement="parameters: O(N²K), shared O(K), unified O(1) (§3.2)",
        checked="exponents of N and K in the number of parameters",
        holds=error <= ALLOWED < crossed,
        instances=len(rows),
        max_error=error,
        allowed=ALLOWED,
        details={
            "exponents": {name: {"N": n, "K": k} for name, (n, k) in found.items()},
            "rows": rows,
            "controls": {"the growth of another network": crossed},
        },
    )


def parameter_rows(
    task: str, num_items: Sequence[int], num_select: Sequence[int], names: Sequence[str]
) -> list[dict[str, Any]]:
    """The parameters of each algorithm for each N and K of a world."""
    rows = []
    for items in num_items:
        for picks in num_select:
            env = tasks.make(task, num_items=items, num_select=picks)
            for name in names:
                made = agent.make(name, env)
                learned = count(jax.eval_shape(made.init, jax.random.key(0)))
                rows.append({"algorithm": name, "N": items, "K": picks, "parameters": learned})
    return rows


def exponents(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[float, float]:
    """How the parameters grow with N and with K, as powers, from the first size to the last."""
    counts = {(row["N"], row["K"]): row["parameters"] for row in rows if row["algorithm"] == name}
    (low, few), (high, many) = min(counts), max(counts)
    by_items = math.log(counts[high, few] / counts[low, few]) / math.log(high / low)
    return by_items, math.log(counts[high, many] / counts[high, few]) / math.log(many / few)


def misfit(found: tuple[float, float], wanted: tuple[float, float]) -> float:
    """The larger difference of the two exponents."""
    return max(abs(one - other) for one, other in zip(found, wanted, strict=True))
