"""Exact dynamic programming on Select-MDPs so small that they can be written down (paper §2).

And with it, and with small networks, what the paper states: `verify` checks it all.
"""

from selectmdp.theory.iterated import IteratedSolution, solve_iterated
from selectmdp.theory.joint import Picks
from selectmdp.theory.plan import Plan, Verdict
from selectmdp.theory.probes import PROBES, Answer, Probe
from selectmdp.theory.solve import (
    Policy,
    Solution,
    evaluate_policy,
    optimality,
    random_policy,
    solve,
    table_of,
)
from selectmdp.theory.tiny import TinyWorld
from selectmdp.theory.verify import verify
from selectmdp.theory.worlds import level_world, random_world, symmetric_world, tabulate

__all__ = [
    "PROBES",
    "Answer",
    "IteratedSolution",
    "Picks",
    "Plan",
    "Policy",
    "Probe",
    "Solution",
    "TinyWorld",
    "Verdict",
    "evaluate_policy",
    "level_world",
    "optimality",
    "random_policy",
    "random_world",
    "solve",
    "solve_iterated",
    "symmetric_world",
    "table_of",
    "tabulate",
    "verify",
]
