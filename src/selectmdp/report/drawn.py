"""The figures as data of the page: curves with intervals over seeds, finals, who beats whom."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any, get_args

import numpy as np

from selectmdp import tasks
from selectmdp.config import TrainConfig
from selectmdp.experiments.figures import Budget, Figure
from selectmdp.experiments.jobs import arguments, name_of
from selectmdp.experiments.store import SIZES, Row
from selectmdp.learners.presets import PRESETS
from selectmdp.report import statistics
from selectmdp.report.results import Results, published
from selectmdp.report.rows import worlds
from selectmdp.trainer import GLANCE_EPISODES, GLANCE_STEPS

Known = Mapping[tuple[str, str, str], tuple[Budget, TrainConfig]]
"""(run, preset, steps) → the budget and config that make it."""
Triple = list[float | None]
"""A number and the ends of its 95 % interval; null where one seed has none."""


def figure_of(results: Results, figure: Figure) -> dict[str, Any]:
    """All that the page shows of a figure; algorithms without runs stand there as published."""
    finals = results.finals[figure.name]
    known = known_runs(figure)
    budget, preset = made_with(finals, known) or ("standard", "fast")
    sizes = sorted(int(size) for name, size, each in published() if name == figure.name)
    return {
        "name": figure.name,
        "title": figure.title,
        "note": figure.note,
        "unit": unit_of(figure),
        "world": next(iter(worlds(figure.name).values())),
        "steps": sorted({int(row["steps"]) for row in finals}),
        "published_steps": figure.full,
        "evaluations": _evaluations(finals),
        "budget": budget,
        "preset": preset,
        "command": reproduce_command(results, figure.name, budget, preset),
        "worlds": [_world(results, figure, size) for size in dict.fromkeys(sizes)],
        "runs": [run_of(row, known) for row in finals],
    }


def unit_of(figure: Figure) -> str:
    """What a reward counts there, whether or not there are runs."""
    return str(tasks.describe(tasks.make(figure.task, **figure.worlds[0]))["unit"])


def student(values: Sequence[float]) -> Triple:
    """Mean and Student's t interval over seeds; of one seed there is none."""
    return list(statistics.mean(values)) if len(values) > 1 else [float(values[0]), None, None]


def curve_of(curves: Sequence[Sequence[tuple[int, float, float]]]) -> list[list[float | None]]:
    """(step, minutes, mean, low, high) over seeds, at the steps that all of them have."""
    by_step = [
        {step: (seconds, reward) for step, seconds, reward in each} for each in curves if each
    ]
    if not by_step:
        return []
    points = []
    for step in sorted(set.intersection(*(set(each) for each in by_step))):
        seconds, rewards = zip(*(each[step] for each in by_step), strict=True)
        minutes = float(np.mean(seconds)) / 60
        points.append([step, minutes if np.isfinite(minutes) else None, *student(rewards)])
    return points


def references_of(rows: Sequence[Row]) -> dict[str, float]:
    """What random and greedy earned beside some runs, as far as they were played."""
    return {
        reference: float(np.mean([float(row[reference]) for row in rows if row[reference]]))
        for reference in ("random", "greedy")
        if any(row[reference] for row in rows)
    }


def reproduce_command(results: Results, what: str, budget: str, preset: str) -> str:
    """What to type to make an experiment again."""
    made = ["--budget", budget, "--preset", preset, "--out", str(results.folder)]
    return f"selectmdp reproduce {what} {shlex.join(made)}"


def _evaluations(finals: Sequence[Row]) -> dict[str, list[int]] | None:
    """Episodes, and steps of each, behind a point of a curve and behind a final reward."""
    counts = Counter((row["episodes"], row["episode_steps"]) for row in finals)
    if not counts:
        return None
    ((episodes, steps), _) = counts.most_common(1)[0]
    glance = [GLANCE_EPISODES, min(GLANCE_STEPS, int(steps))]
    return {"curve": glance, "final": [int(episodes), int(steps)]}


def _world(results: Results, figure: Figure, size: int) -> dict[str, Any]:
    name = figure.name
    scores = [results.scores(name, each, size) for each in figure.algorithms]
    rows = [row for row in results.finals[name] if int(row["N"]) == size]
    return {
        "N": size,
        "references": references_of(rows),
        "series": [_series(results, name, each, size) for each in figure.algorithms],
        "improvement": _improvements(scores),
    }


def _series(results: Results, figure: str, algorithm: str, size: int) -> dict[str, Any]:
    scores = results.scores(figure, algorithm, size)
    runs = [row["run"] for row in results.runs(figure, algorithm, size)]
    return {
        "algorithm": algorithm,
        "published": published()[figure, str(size), algorithm],
        "seeds": len(scores),
        "mean": student(scores) if scores else None,
        "iqm": _interval(statistics.interquartile([scores]), scores) if scores else None,
        "curve": curve_of([results.curve(figure, run) for run in runs]),
    }


def _improvements(scores: Sequence[Sequence[float]]) -> list[list[Triple | None]]:
    """How often a run of one beats a run of the other, for each pair; of the other way the rest."""
    count = len(scores)
    table: list[list[Triple | None]] = [[None] * count for _ in range(count)]
    for row, column in combinations(range(count), 2):
        ours, theirs = scores[row], scores[column]
        if ours and theirs:
            won = _interval(statistics.improvement([ours], [theirs]), ours, theirs)
            value, low, high = (None if each is None else 1 - each for each in won)
            table[row][column], table[column][row] = won, [value, high, low]
    return table


def _interval(estimate: statistics.Estimate, *scores: Sequence[float]) -> Triple:
    few = any(len(each) < 2 for each in scores)
    return [estimate.value, None, None] if few else list(estimate)


def run_of(row: Row, known: Known) -> dict[str, Any]:
    """All that the page shows of a run, with the command that makes it."""
    found = known.get((row["run"], row["preset"], row["steps"]))
    software = [f"{name} {row[name]}" for name in ("selectmdp", "jax", "numpy", "python")]
    return {
        **{name: row[name] for name in ("run", "algorithm", "machine", "preset", "settings")},
        **{name: row[name] for name in ("dynamics", *SIZES.values())},
        **{name: int(row[name]) for name in ("seed", "steps")},
        "reward": float(row["mean_reward"]),
        "ci95": float(row["ci95"]) if row["ci95"] else None,
        "seconds": float(row["seconds"]) if row["seconds"] else None,
        "versions": ", ".join(software),
        "command": None if found is None else _typed(found[1]),
    }


def _typed(config: TrainConfig) -> str:
    return "selectmdp " + shlex.join([*arguments(config), "--out", f"runs/{name_of(config)}"])


def known_runs(*figures: Figure) -> Known:
    """The runs that `reproduce` would make of some figures, whatever the budget."""
    return {
        (name_of(config), preset, str(config.steps)): (budget, config)
        for budget, preset in product(get_args(Budget), PRESETS)
        for figure in figures
        for config in figure.configs(budget, preset)
    }


def made_with(rows: Sequence[Row], known: Known) -> tuple[str, str] | None:
    """The budget and preset that most of the runs have; None: no run is known."""
    keys = [(row["run"], row["preset"], row["steps"]) for row in rows]
    made = Counter((known[key][0], key[1]) for key in keys if key in known)
    return made.most_common(1)[0][0] if made else None
