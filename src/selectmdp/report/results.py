"""A folder of results, as far as it can be read, and what the paper published beside it.

What is missing or damaged is told in a sentence each (`gaps`), and all the rest is there: a row in
which a number is no number, or which belongs to no figure, is left out (`rows`).
"""

import csv
import io
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from selectmdp.experiments import cost, generalization, store
from selectmdp.experiments.figures import FIGURES, GENERALIZATION
from selectmdp.experiments.store import Row
from selectmdp.report import gaps, rows
from selectmdp.spec import SelectError


@dataclass(frozen=True)
class Results:
    """What `reproduce` kept in a folder."""

    folder: Path
    finals: dict[str, list[Row]] = field(default_factory=dict)
    """By figure; those of `generalization` are in no other."""
    curves: dict[str, list[Row]] = field(default_factory=dict)
    """Of runs that stand among the finals."""
    cut: dict[str, list[str]] = field(default_factory=dict)
    """Runs whose curve is not whole, by figure."""
    generalization: list[Row] = field(default_factory=list)
    cost: list[Row] = field(default_factory=list)
    paper: "Results | None" = None
    """Of the paper's own preset: one figure, and in its curves runs that are under way as well."""
    problems: list[str] = field(default_factory=list)
    """What is missing or damaged, a sentence each."""

    def runs(self, figure: str, algorithm: str, num_items: int | None = None) -> list[Row]:
        """The finals of an algorithm by seed; in the figure's only world unless N is given."""
        found = [
            row
            for row in self.finals.get(figure, [])
            if row["algorithm"] == algorithm and num_items in (None, int(row["N"]))
        ]
        return sorted(found, key=lambda row: int(row["seed"]))

    def scores(self, figure: str, algorithm: str, num_items: int | None = None) -> list[float]:
        """The final reward of each seed."""
        return [float(row["mean_reward"]) for row in self.runs(figure, algorithm, num_items)]

    def references(self, figure: str, name: str) -> list[float]:
        """What `random` or `greedy` earned beside each run that played it."""
        return [float(row[name]) for row in self.finals.get(figure, []) if row[name]]

    def random_at(self, num_items: int) -> list[float]:
        """What `random` earned beside each run of the worlds in which generalization is shown."""
        every = [row for figure in GENERALIZATION for row in self.finals.get(figure.name, [])]
        every += self.finals.get("generalization", [])
        return [
            float(row["random"]) for row in every if row["random"] and int(row["N"]) == num_items
        ]

    def curve(self, figure: str, run: str) -> list[tuple[int, float, float]]:
        """Step, seconds and reward of each evaluation of a run."""
        points = [
            (int(row["step"]), float(row["seconds"] or "nan"), float(row["reward"]))
            for row in self.curves.get(figure, [])
            if row["run"] == run
        ]
        return sorted(points)

    def early(self, figure: str, algorithm: str, share: float = 1 / 2) -> list[float]:
        """The mean of each seed's curve, if it is whole, over the first share of its training."""
        means = []
        for run in self.runs(figure, algorithm):
            if run["run"] in self.cut.get(figure, []):
                continue
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
    problems = results.problems

    def read(name: str, columns: tuple[str, ...]) -> list[Row]:
        return rows.read(folder / name, columns, problems)

    def keep(name: str, finals: list[Row]) -> None:
        done = {row["run"] for row in finals}
        curves = [row for row in read(f"{name}-curves.csv", store.CURVES) if row["run"] in done]
        results.finals[name], results.curves[name] = finals, curves
        results.cut[name] = gaps.cut_curves(finals, curves)

    for name, figure in FIGURES.items():
        place = f"{name}-finals.csv"
        finals = rows.of_figure(name, place, read(place, store.FINALS), problems)
        keep(name, finals)
        problems.extend(gaps.of_figure(figure, finals, results.curves[name]))
    place = "generalization.csv"
    played = rows.of_generalization(place, read(place, generalization.COLUMNS), problems)
    results.generalization.extend(played)
    place = "generalization-finals.csv"
    finals = rows.of_networks(place, read(place, store.FINALS), problems)
    keep("generalization", finals)
    results.cost.extend(read("cost.csv", cost.COLUMNS))
    if not any([*results.finals.values(), results.generalization, results.cost]):
        told = "; ".join(fault for fault in problems if ": no runs" not in fault)
        raise SelectError(
            f"{folder} holds no results: `selectmdp reproduce all --out {folder}` makes them"
            + (f" ({told})" if told else "")
        )
    problems.extend(gaps.of_generalization(results.generalization))
    every = [row for each in results.finals.values() for row in each]
    problems.extend(gaps.of_networks(played, every, finals, results.curves["generalization"]))
    problems.extend(gaps.of_cost(results.cost))
    finals, curves = rows.of_paper(folder / "paper", problems)
    problems.extend(gaps.of_paper(finals, curves, every))
    problems.extend(gaps.of_versions(every))
    if not finals and not curves:
        return results
    paper = Results(folder / "paper", {rows.PAPERS: finals}, {rows.PAPERS: curves})
    return replace(results, paper=paper)


@cache
def published() -> dict[tuple[str, str, str], float]:
    """What the paper's figures show at the end of training, by (figure, N, algorithm)."""
    text = files("selectmdp.experiments").joinpath("published.csv").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    told: dict[tuple[str, str, str], float] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        told[row["figure"], row["N"], row["algorithm"]] = float(row["value"])  # the last is final
    return told


def published_of(figure: str, algorithm: str, num_items: int | None = None) -> float:
    """One of them; in the figure's only world unless N is given."""
    return next(
        value
        for (name, size, each), value in published().items()
        if (name, each) == (figure, algorithm) and num_items in (None, int(size))
    )
