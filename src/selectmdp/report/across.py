"""Every algorithm over all worlds with several picks at once, as data of the page.

Rewards of different worlds are made alike: 0 is what random earns there, 1 what greedy earns.
"""

from itertools import product
from typing import Any

from selectmdp.experiments.figures import BASELINES, ISQ
from selectmdp.report import statistics
from selectmdp.report.judging import ENOUGH
from selectmdp.report.results import Results
from selectmdp.report.rules import MANY

NAMES = (*ISQ, *BASELINES)
RIVAL = "isq-i"
"""What each is compared with."""


def across(results: Results) -> dict[str, Any] | None:
    """Interquartile means over worlds and seeds, best first; None: no world has all of them."""
    scaled = {figure: {name: _scaled(results, figure, name) for name in NAMES} for figure in MANY}
    worlds = [
        figure
        for figure, each in scaled.items()
        if min(len(seeds) for seeds in each.values()) >= ENOUGH
    ]
    if not worlds:
        return None
    scores = {name: [scaled[figure][name] for figure in worlds] for name in NAMES}
    rows: list[dict[str, Any]] = [
        {
            "algorithm": name,
            "iqm": list(statistics.interquartile(scores[name])),
            "better": None
            if name == RIVAL
            else list(statistics.improvement(scores[name], scores[RIVAL])),
            "won": _won(scores[name], scores[RIVAL]),
        }
        for name in NAMES
    ]
    rows.sort(key=lambda row: -row["iqm"][0])
    return {"worlds": worlds, "rival": RIVAL, "rows": rows}


def _won(ours: statistics.Scores, theirs: statistics.Scores) -> list[int]:
    """How many pairs of runs in one world the first wins, of how many."""
    pairs = [
        pair for left, right in zip(ours, theirs, strict=True) for pair in product(left, right)
    ]
    return [sum(mine > other for mine, other in pairs), len(pairs)]


def _scaled(results: Results, figure: str, algorithm: str) -> list[float]:
    """Each seed's reward between random (0) and greedy (1) of its world, where both are known."""
    scaled = []
    for row in results.runs(figure, algorithm):
        if row["random"] and row["greedy"] and float(row["greedy"]) > float(row["random"]):
            names = ("mean_reward", "random", "greedy")
            reward, random, greedy = (float(row[name]) for name in names)
            scaled.append((reward - random) / (greedy - random))
    return scaled
