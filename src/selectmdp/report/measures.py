"""Generalization, cost and parameters as data of the page (paper §5.3, appendix, §3.2)."""

from collections.abc import Sequence
from typing import Any

from selectmdp import parameters
from selectmdp.experiments.cost import ITEMS, PICKS
from selectmdp.experiments.generalization import PAIRS
from selectmdp.experiments.store import Row
from selectmdp.report import statistics
from selectmdp.report.drawn import Triple, student
from selectmdp.report.results import Results, published
from selectmdp.report.rules import DAY, PAPERS_DAY

NETWORKS = ("means", "sums")
LINES = (("N", "K", 6), ("K", "N", 50))
"""Which size varies, which is fixed, and at what."""


def generalization_of(results: Results) -> dict[str, Any]:
    """Every pair of trained and played N with means and with sums, and the sweep over N."""
    pairs = [(trained, played) for trained in PAIRS for played in PAIRS]
    return {
        "matrices": [
            {"network": network, "cells": [_cell(results, network, *pair) for pair in pairs]}
            for network in NETWORKS
        ],
        "sweep": [_sweep(results, network, n) for network in NETWORKS for n in PAIRS],
    }


def cost_of(results: Results) -> list[dict[str, Any]]:
    """Milliseconds of a step over N and over K, for each preset that was measured."""
    lines = []
    for varies, fixed, value in LINES:
        rows = [row for row in results.cost if int(row[fixed]) == value]
        presets = dict.fromkeys(row["preset"] for row in rows)
        series = [_costs([row for row in rows if row["preset"] == each], varies) for each in presets]
        lines.append(
            {
                "varies": varies,
                "fixed": f"{fixed} = {value}",
                "series": [{"preset": each, **told} for each, told in zip(presets, series, strict=True)],
                "published": [200, 1000 * DAY / PAPERS_DAY] if varies == "N" else None,
            }
        )
    return lines


def parameters_of() -> list[dict[str, Any]]:
    """How many numbers there are to learn over N and over K, of the paper's networks."""
    lines = []
    for varies, fixed, value in LINES:
        sizes = [(n, value) for n in ITEMS] if varies == "N" else [(value, k) for k in PICKS]
        rows = parameters.counts("circle", sizes, ("vanilla", "isq-i", "isq-u"))
        lines.append(
            {
                "varies": varies,
                "fixed": f"{fixed} = {value}",
                "series": [
                    {
                        "algorithm": name,
                        "growth": parameters.GROWTH[name],
                        "points": [
                            [row[varies], row["parameters"]]
                            for row in rows
                            if row["algorithm"] == name
                        ],
                    }
                    for name in dict.fromkeys(row["algorithm"] for row in rows)
                ],
            }
        )
    return lines


def _cell(results: Results, network: str, trained: int, played: int) -> dict[str, Any]:
    """What a policy earns, and as a share of what is earned by one that was trained there."""
    ours = results.played(network, trained, played)
    at_home = results.played(network, played, played)
    part: Triple | None = None
    if ours and at_home and min(at_home) > 0:
        found = statistics.ratio([ours], [at_home])
        part = [found.value, None, None] if min(len(ours), len(at_home)) < 2 else list(found)
    pair = "generalization", f"{trained}->{played}", "isq-p"
    return {
        "trained": trained,
        "played": played,
        "reward": student(ours) if ours else None,
        "share": part,
        "published": published().get(pair) if network == "means" else None,
    }


def _sweep(results: Results, network: str, trained: int) -> dict[str, Any]:
    sizes = sorted({int(row["played_N"]) for row in results.generalization})
    played = {size: results.played(network, trained, size, whole=False) for size in sizes}
    points = [[size, *student(scores)] for size, scores in played.items() if scores]
    return {"network": network, "trained": trained, "points": points}


def _costs(rows: Sequence[Row], varies: str) -> dict[str, Any]:
    """Points by size, and the power law through them where there are three."""
    best = {int(row[varies]): 1000 / float(row["steps_per_second"]) for row in rows}
    points = sorted(best.items())
    found = statistics.power_law(*zip(*points, strict=True)) if len(points) > 2 else None
    return {"points": points, "fit": found}
