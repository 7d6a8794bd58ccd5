"""A folder of results, as far as it can be read, and what the paper published beside it."""

import csv
import io
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

from selectmdp.experiments import cost, generalization, store
from selectmdp.experiments.figures import FIGURES, SEEDS, Figure
from selectmdp.experiments.store import Row
from selectmdp.spec import SelectError


@dataclass(frozen=True)
class Results:
    """What `reproduce` kept in a folder."""

    folder: Path
    finals: dict[str, list[Row]] = field(default_factory=dict)
    """By figure."""
    curves: dict[str, list[Row]] = field(default_factory=dict)
    generalization: list[Row] = field(default_factory=list)
    cost: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What is missing or damaged, a sentence each."""

    def sizes(self, figure: str) -> list[int]:
        """The N of a figure's worlds, as far as there are runs."""
        return sorted({int(row["N"]) for row in self.finals.get(figure, [])})

    def scores(self, figure: str, algorithm: str, num_items: int | None = None) -> list[float]:
        """The final reward of each seed; of the figure's only world unless N is given."""
        rows = [
            row
            for row in self.finals.get(figure, [])
            if row["algorithm"] == algorithm and num_items in (None, int(row["N"]))
        ]
        return [float(row["mean_reward"]) for row in sorted(rows, key=lambda row: int(row["seed"]))]

    def early(self, figure: str, algorithm: str, share: float = 1 / 3) -> list[float]:
        """The mean of each seed's curve over the first share of its training."""
        by_run: dict[str, list[tuple[float, float]]] = {}
        for row in self.curves.get(figure, []):
            if row["algorithm"] == algorithm:
                point = float(row["step"]), float(row["reward"])
                by_run.setdefault(row["run"], []).append(point)
        means = []
        for points in by_run.values():
            last = max(step for step, _ in points)
            first = [reward for step, reward in points if 0 < step <= share * last]
            if first:
                means.append(sum(first) / len(first))
        return means

    def played(self, network: str, trained: int, played: int, *, whole: bool = True) -> list[float]:
        """The reward of each seed's policy at another N; over whole episodes, or the sweep's."""
        rows = [
            row
            for row in self.generalization
            if (row["network"], row["trained_N"], row["played_N"])
            == (network, str(trained), str(played))
            and (int(row["episode_steps"]) > generalization.SWEEP_STEPS) == whole
        ]
        return [float(row["mean_reward"]) for row in rows]


def load(folder: Path) -> Results:
    """All that can be read of a results folder; what cannot is among the problems."""
    if not folder.is_dir():
        raise SelectError(f"{folder} is no folder: give one that `selectmdp reproduce` wrote")
    results = Results(folder)

    def rows(name: str, columns: tuple[str, ...]) -> list[Row]:
        found, fault = store.readable(folder / name, columns)
        if fault is not None:
            results.problems.append(fault)
        return found

    for name, figure in FIGURES.items():
        results.finals[name] = rows(f"{name}-finals.csv", store.FINALS)
        results.curves[name] = rows(f"{name}-curves.csv", store.CURVES)
        results.problems.extend(_missing(results, figure))
    results.generalization.extend(rows("generalization.csv", generalization.COLUMNS))
    results.cost.extend(rows("cost.csv", cost.COLUMNS))
    if not results.generalization:
        results.problems.append("generalization: no runs")
    if not results.cost:
        results.problems.append("cost: not measured")
    if not any([*results.finals.values(), results.generalization, results.cost]):
        raise SelectError(
            f"{folder} holds no results: `selectmdp reproduce all --out {folder}` makes them"
        )
    return results


def _missing(results: Results, figure: Figure) -> list[str]:
    """Which runs of a figure are not there; a whole figure that is missing is one sentence."""
    if not results.finals[figure.name]:
        return [f"figure {figure.name}: no runs"]
    sentences = []
    seeds = len(SEEDS["standard"])
    for world in figure.worlds:
        num_items = world.get("num_items")
        for algorithm in figure.algorithms:
            count = len(results.scores(figure.name, algorithm, num_items))
            if count < seeds:
                place = f"figure {figure.name}" + (f", N = {num_items}" if num_items else "")
                sentences.append(f"{place}: {algorithm} has {count} of {seeds} seeds")
    return sentences


@cache
def published() -> dict[tuple[str, str, str], float]:
    """What the paper's figures show at the end of training, by (figure, N, algorithm)."""
    text = files("selectmdp.experiments").joinpath("published.csv").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    told: dict[tuple[str, str, str], float] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        told[row["figure"], row["N"], row["algorithm"]] = float(row["value"])  # the last is final
    return told
