"""A folder of results, as far as it can be read, and what the paper published beside it.

What is missing or damaged is told in a sentence each, and all the rest is there: a row in which a
number is no number, or which belongs to no figure, is left out.
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

from selectmdp import __version__
from selectmdp.experiments import cost, generalization, store
from selectmdp.experiments.figures import FIGURES, SEEDS, Figure
from selectmdp.experiments.store import Row
from selectmdp.spec import SelectError

COUNTS = ("N", "K", "seed", "steps", "step", "trained_N", "played_N", "episode_steps")
NUMBERS = ("mean_reward", "reward", "ci95", "random", "greedy", "seconds", "steps_per_second")
MAY_BE_EMPTY = ("ci95", "random", "greedy", "seconds")
ABOVE_0 = ("N", "K", "steps", "trained_N", "played_N", "episode_steps", "steps_per_second")


@dataclass(frozen=True)
class Results:
    """What `reproduce` kept in a folder."""

    folder: Path
    finals: dict[str, list[Row]] = field(default_factory=dict)
    """By figure."""
    curves: dict[str, list[Row]] = field(default_factory=dict)
    """Of runs that stand among the finals."""
    generalization: list[Row] = field(default_factory=list)
    cost: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What is missing or damaged, a sentence each."""

    def runs(self, figure: str, algorithm: str, num_items: int | None = None) -> list[Row]:
        """The finals of an algorithm by seed; in the figure's only world unless N is given."""
        rows = [
            row
            for row in self.finals.get(figure, [])
            if row["algorithm"] == algorithm and num_items in (None, int(row["N"]))
        ]
        return sorted(rows, key=lambda row: int(row["seed"]))

    def scores(self, figure: str, algorithm: str, num_items: int | None = None) -> list[float]:
        """The final reward of each seed."""
        return [float(row["mean_reward"]) for row in self.runs(figure, algorithm, num_items)]

    def curve(self, figure: str, run: str) -> list[tuple[int, float, float]]:
        """Step, seconds and reward of each evaluation of a run."""
        points = [
            (int(row["step"]), float(row["seconds"] or "nan"), float(row["reward"]))
            for row in self.curves.get(figure, [])
            if row["run"] == run
        ]
        return sorted(points)

    def early(self, figure: str, algorithm: str, share: float = 1 / 3) -> list[float]:
        """The mean of each seed's curve over the first share of its training."""
        means = []
        for run in self.runs(figure, algorithm):
            until = share * int(run["steps"])
            points = self.curve(figure, run["run"])
            first = [reward for step, _, reward in points if 0 < step <= until]
            if first:
                means.append(sum(first) / len(first))
        return means

    def played(self, network: str, trained: int, played: int) -> list[float]:
        """The reward of each seed's policy at another N."""
        return [
            float(row["mean_reward"])
            for row in self.generalization
            if row["network"] == network
            and (int(row["trained_N"]), int(row["played_N"])) == (trained, played)
        ]


def load(folder: Path) -> Results:
    """All that can be read of a results folder; what cannot is among the problems."""
    if not folder.is_dir():
        raise SelectError(f"{folder} is no folder: give one that `selectmdp reproduce` wrote")
    results = Results(folder)

    def rows(name: str, columns: tuple[str, ...]) -> list[Row]:
        found, fault = store.readable(folder / name, columns)
        wrong = [told for row in found for told in _not_numbers(row)]
        results.problems.extend([fault] if fault is not None else [])
        results.problems.extend(_left_out(name, wrong))
        return [row for row in found if not any(_not_numbers(row))]

    for name, figure in FIGURES.items():
        finals = rows(f"{name}-finals.csv", store.FINALS)
        results.finals[name] = _of_figure(figure, finals, results.problems)
        done = {row["run"] for row in results.finals[name]}
        curves = rows(f"{name}-curves.csv", store.CURVES)
        results.curves[name] = [row for row in curves if row["run"] in done]
        results.problems.extend(_missing(results, figure))
    results.generalization.extend(rows("generalization.csv", generalization.COLUMNS))
    results.cost.extend(rows("cost.csv", cost.COLUMNS))
    if not any([*results.finals.values(), results.generalization, results.cost]):
        told = "; ".join(fault for fault in results.problems if ": no runs" not in fault)
        raise SelectError(
            f"{folder} holds no results: `selectmdp reproduce all --out {folder}` makes them"
            + (f" ({told})" if told else "")
        )
    if not results.generalization:
        results.problems.append("generalization: no runs")
    if not results.cost:
        results.problems.append("cost: not measured")
    results.problems.extend(_other_versions(results))
    return results


def _not_numbers(row: Row) -> Iterator[str]:
    """What of a row should be a number and is none."""
    for name, text in row.items():
        if name not in COUNTS + NUMBERS or (not text and name in MAY_BE_EMPTY):
            continue
        try:
            number = int(text) if name in COUNTS else float(text)
            sound = math.isfinite(number) and (number > 0 or name not in ABOVE_0)
        except (ValueError, OverflowError):
            sound = False
        if not sound:
            yield f"{name} of {row.get('run', 'a row')} is {text!r}"


def _left_out(place: str, wrong: Sequence[str]) -> list[str]:
    """One sentence, however many rows there are."""
    if not wrong:
        return []
    more = f", and {len(wrong) - 1} more like it" if len(wrong) > 1 else ""
    return [f"{place}: {wrong[0]}{more}; left out, since that cannot be"]


def _of_figure(figure: Figure, rows: Sequence[Row], problems: list[str]) -> list[Row]:
    """The rows of a figure's algorithms and worlds, each run once."""
    kept: dict[str, Row] = {}
    wrong = []
    for row in rows:
        known = (figure.name, row["N"], row["algorithm"]) in published()
        if not known or row["task"] != figure.task:
            place = f"{row['algorithm']} on {row['task']} with N = {row['N']}"
            wrong.append(f"{row['run']} is {place}, which is not of this figure")
        elif row["run"] in kept:
            wrong.append(f"{row['run']} stands there twice")
        else:
            kept[row["run"]] = row
    problems.extend(_left_out(f"{figure.name}-finals.csv", wrong))
    return list(kept.values())


def _missing(results: Results, figure: Figure) -> list[str]:
    """Which runs of a figure are not there; a whole figure that is missing is one sentence."""
    name, seeds = figure.name, len(SEEDS["standard"])
    finals = results.finals[name]
    if not finals:
        return [f"figure {name}: no runs"]
    sentences = []
    for world in figure.worlds:
        num_items = world.get("num_items")
        place = f"figure {name}" + (f", N = {num_items}" if len(figure.worlds) > 1 else "")
        counts = {each: len(results.runs(name, each, num_items)) for each in figure.algorithms}
        if max(counts.values()) < seeds and len(set(counts.values())) == 1:
            sentences.append(
                f"{place}: every algorithm has {max(counts.values())} of {seeds} seeds"
            )
            continue
        short = [f"{each} has {count}" for each, count in counts.items() if count < seeds]
        if short:
            sentences.append(f"{place}: of {seeds} seeds {', '.join(short)}")
    drawn = {row["run"] for row in results.curves[name]}
    bare = [row["run"] for row in finals if row["run"] not in drawn]
    if bare:
        sentences.append(f"figure {name}: no curve of {len(bare)} of {len(finals)} runs")
    for what in ("steps", "preset"):
        found = sorted({row[what] for row in finals})
        if len(found) > 1:
            sentences.append(f"figure {name}: runs of several {what}: {', '.join(found)}")
    return sentences


def _other_versions(results: Results) -> list[str]:
    rows = [row for finals in results.finals.values() for row in finals]
    others = sorted({row["selectmdp"] for row in rows} - {__version__})
    told = ", ".join(others)
    return [f"some runs were made with selectmdp {told}; this is {__version__}"] if others else []


@cache
def published() -> dict[tuple[str, str, str], float]:
    """What the paper's figures show at the end of training, by (figure, N, algorithm)."""
    text = files("selectmdp.experiments").joinpath("published.csv").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    told: dict[tuple[str, str, str], float] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        told[row["figure"], row["N"], row["algorithm"]] = float(row["value"])  # the last is final
    return told
