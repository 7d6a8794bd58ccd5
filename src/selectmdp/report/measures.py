"""Generalization, cost and parameters as data of the page (paper §5.3, appendix, §3.2)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from selectmdp.experiments.cost import ITEMS, PICKS
from selectmdp.experiments.figures import GENERALIZATION
from selectmdp.experiments.generalization import PAIRS
from selectmdp.experiments.store import Row
from selectmdp.report import statistics
from selectmdp.report.drawn import Triple, known_runs, run_of, student
from selectmdp.report.results import Results, published
from selectmdp.report.rules import DAY, PAPERS_DAY

GROWTH = {"vanilla": "O(N²K)", "isq-i": "O(K)", "isq-u": "O(1)"}
NETWORKS = {
    "pairs": "pairs in the fast preset’s network",
    "means": "means in the paper’s network",
    "sums": "sums in the paper’s network",
}
LINES = (("N", "K", 6), ("K", "N", 50))
"""Which size varies, which is fixed, and at what."""


def generalization_of(results: Results) -> dict[str, Any]:
    """Every pair of trained and played N with each network, the sweep over N, and the runs."""
    pairs = [(trained, played) for trained in PAIRS for played in PAIRS]
    played = {row["network"] for row in results.generalization}
    networks = [name for name in NETWORKS if name in played or not played]
    known = known_runs(*GENERALIZATION)
    return {
        "matrices": [
            {
                "network": network,
                "title": NETWORKS[network],
                "cells": [transfer(results, network, *pair) for pair in pairs],
            }
            for network in networks
        ],
        "sweep": [_sweep(results, network, n) for network in networks for n in PAIRS],
        "runs": [run_of(row, known) for row in results.finals["generalization"]],
    }


def cost_of(results: Results) -> list[dict[str, Any]]:
    """Milliseconds of a step over N and over K, for each preset that was measured."""
    lines = []
    for varies, fixed, value in LINES:
        rows = [row for row in results.cost if int(row[fixed]) == value]
        presets = dict.fromkeys(row["preset"] for row in rows)
        series = [
            _costs([row for row in rows if row["preset"] == each], varies) for each in presets
        ]
        lines.append(
            {
                "varies": varies,
                "fixed": f"{fixed} = {value}",
                "series": [
                    {"preset": each, **told} for each, told in zip(presets, series, strict=True)
                ],
                "published": [200, 1000 * DAY / PAPERS_DAY] if varies == "N" else None,
            }
        )
    return lines


def parameters_of() -> list[dict[str, Any]]:
    """How many numbers there are to learn over N and over K."""
    lines = []
    for varies, fixed, value in LINES:
        sizes = [(n, value) for n in ITEMS] if varies == "N" else [(value, k) for k in PICKS]
        along = [items if varies == "N" else picks for items, picks in sizes]
        series = [
            {
                "algorithm": name,
                "growth": growth,
                "points": [
                    [x, parameters(name, *size)] for x, size in zip(along, sizes, strict=True)
                ],
            }
            for name, growth in GROWTH.items()
        ]
        lines.append({"varies": varies, "fixed": f"{fixed} = {value}", "series": series})
    return lines


def parameters(algorithm: str, items: int, picks: int) -> int:
    """Of the paper's networks on circle selection, counted by hand: making them takes seconds."""
    features, commands, channels = 3, 5, 48
    if algorithm == "vanilla":
        inputs = items * features + picks * (features + commands)
        sizes = (inputs, 6 * inputs, 6 * inputs, items * commands)
        return picks * sum((rows + 1) * columns for rows, columns in pairwise(sizes))
    rows = (features, features + commands)  # of the unselected and of the selected
    first = sum((own + sum(rows) + 1) * channels for own in rows)
    second = 2 * (3 * channels + 1) * channels
    one = first + second + (3 * channels + 1) * commands
    return one if algorithm == "isq-u" else picks * one


def transfer(results: Results, network: str, trained: int, played: int) -> dict[str, Any]:
    """What a policy earns, and as a share of what is earned by one that was trained there."""
    ours = results.played(network, trained, played)
    at_home = results.played(network, played, played)
    random = statistics.average(results.random_at(played) or [0.0])
    part: Triple | None = None
    if ours and at_home and min(at_home) > random:  # else it is a share of nothing learned
        few = min(len(ours), len(at_home)) < 2
        share = sum(ours) / len(ours) / (sum(at_home) / len(at_home))
        part = [share, None, None] if few else list(statistics.ratio(ours, at_home))
    pair = "generalization", f"{trained}->{played}", "isq-p"
    return {
        "trained": trained,
        "played": played,
        "reward": student(ours) if ours else None,
        "share": part,
        "unlearned": bool(at_home) and min(at_home) <= random,
        "published": published().get(pair) if network == "means" else None,  # the paper's own
    }


def _sweep(results: Results, network: str, trained: int) -> dict[str, Any]:
    sizes = sorted({int(row["played_N"]) for row in results.generalization})
    played = {size: results.played(network, trained, size) for size in sizes}
    points = [[size, *student(scores)] for size, scores in played.items() if scores]
    return {"network": network, "trained": trained, "points": points}


def _costs(rows: Sequence[Row], varies: str) -> dict[str, Any]:
    """Points by size, and the power law through them where there are three."""
    best = {int(row[varies]): 1000 / float(row["steps_per_second"]) for row in rows}
    points = sorted(best.items())
    found = statistics.power_law(*zip(*points, strict=True)) if len(points) > 2 else None
    return {"points": points, "fit": found}
