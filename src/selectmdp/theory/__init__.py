"""Exact dynamic programming on Select-MDPs so small that they can be written down (paper §2)."""

from selectmdp.theory.joint import Picks
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
from selectmdp.theory.worlds import level_world, random_world, tabulate

__all__ = [
    "PROBES",
    "Answer",
    "Picks",
    "Policy",
    "Probe",
    "Solution",
    "TinyWorld",
    "evaluate_policy",
    "level_world",
    "optimality",
    "random_policy",
    "random_world",
    "solve",
    "table_of",
    "tabulate",
]
