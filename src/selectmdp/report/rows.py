"""Which rows of a results folder count: of the figure's own world, of one length, each seed once.

What does not count is told, a sentence for each kind of fault, and left out.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from selectmdp import tasks
from selectmdp.config import TrainConfig
from selectmdp.experiments import store
from selectmdp.experiments.figures import FIGURES, GENERALIZATION, ISQ
from selectmdp.experiments.generalization import network
from selectmdp.experiments.store import Row
from selectmdp.learners.presets import PRESETS

COUNTS = (
    *("N", "K", "seed", "steps", "step", "trained_N", "played_N", "episodes", "episode_steps"),
)
NUMBERS = ("mean_reward", "reward", "ci95", "random", "greedy", "seconds", "steps_per_second")
MAY_BE_EMPTY = ("ci95", "random", "greedy", "seconds")
ABOVE_0 = (
    *("N", "K", "steps", "trained_N", "played_N", "episodes", "episode_steps"),
    "steps_per_second",
)

PAPERS, PAPERS_N = "4b", "50"
"""The figure, and its N, whose world the paper's own preset is run in."""

Key = tuple[str, ...]


def read(path: Path, columns: Sequence[str], problems: list[str]) -> list[Row]:
    """The whole rows of a file whose numbers are numbers."""
    rows, fault = store.readable(path, columns)
    problems += [] if fault is None else [fault]
    problems += _left_out(path.name, [told for row in rows for told in _not_numbers(row)])
    return [row for row in rows if not any(_not_numbers(row))]


def of_figure(figure: str, place: str, rows: Sequence[Row], problems: list[str]) -> list[Row]:
    """The finals of a figure's algorithms in its own worlds, each seed once."""
    return _finals(place, rows, worlds(figure), "algorithm", problems)


def of_networks(place: str, rows: Sequence[Row], problems: list[str]) -> list[Row]:
    """The finals of policies that were trained for generalization alone, each seed once."""
    return _finals(place, rows, networks(), "settings", problems)


def of_generalization(place: str, rows: Sequence[Row], problems: list[str]) -> list[Row]:
    """The plays of policies that were trained for it, each once."""
    policies = {(network, str(size)) for network, size in trained()}
    known = [row for row in rows if (row["network"], row["trained_N"]) in policies]
    strange = [
        f"{row['run']} has {row['network']} and was trained at N = {row['trained_N']}, which is "
        "not of this experiment"
        for row in rows
        if row not in known
    ]
    alike = _of_one_kind(place, known, "trained_N", problems)
    kept, doubled = _once(alike, ("network", "trained_N", "played_N", "seed"))
    problems += _left_out(place, [*doubled, *strange])
    return kept


def of_paper(folder: Path, problems: list[str]) -> tuple[list[Row], list[Row]]:
    """Finals of the paper's own preset, and curves, also of runs that are under way."""

    def known(name: str, columns: Sequence[str]) -> list[Row]:
        rows = read(folder / name, columns, problems)
        ours = [
            row
            for row in rows
            if (row["algorithm"] in ISQ, row["N"], row.get("preset", "paper"))
            == (True, PAPERS_N, "paper")
        ]
        others = [
            f"{row['run']} is not of benchmarks/paper.toml" for row in rows if row not in ours
        ]
        problems.extend(_left_out(f"paper/{name}", others))
        return ours

    place = "sweep-finals.csv"
    finals = of_figure(PAPERS, f"paper/{place}", known(place, store.FINALS), problems)
    done = {row["run"] for row in finals}
    curves = [row for row in known("sweep-curves.csv", store.CURVES) if row["run"] in done]
    under_way = [row for row in known("progress.csv", store.CURVES) if row["run"] not in done]
    return finals, curves + under_way


def trained() -> Counter[tuple[str, int]]:
    """How many runs generalization wants of each network trained at each N."""
    return Counter(
        (network(config), int(config.options["num_items"]))
        for figure in GENERALIZATION
        for config in figure.configs("standard", "fast")
    )


@cache
def worlds(figure: str) -> dict[tuple[str, str], Row]:
    """What each run of a figure has in the columns of its world, by N and algorithm."""
    rows = [_told_of(config) for config in FIGURES[figure].configs("smoke", "fast")]
    return {(row["N"], row["algorithm"]): row for row in rows}


@cache
def networks() -> dict[tuple[str, str], Row]:
    """The same of each run that is made for generalization alone, by N and settings."""
    configs = [
        config
        for preset in PRESETS
        for figure in GENERALIZATION
        for config in figure.configs("smoke", preset)
    ]
    rows = [_told_of(config) for config in configs if config.settings]
    return {(row["N"], row["settings"]): row for row in rows}


def _told_of(config: TrainConfig) -> Row:
    told = tasks.describe(tasks.make(config.task, **config.options))
    return {
        "task": config.task,
        "dynamics": str(told["dynamics"]),
        **{short: tasks.told_items(told[name]) for name, short in store.SIZES.items()},
        "algorithm": config.algorithm,
        "settings": store.told_settings(config.settings),
    }


def _finals(
    place: str,
    rows: Sequence[Row],
    wanted: Mapping[tuple[str, str], Row],
    name: str,
    problems: list[str],
) -> list[Row]:
    """Those whose world is the one of their N and algorithm, or settings."""
    told = [(row, _strange(wanted.get((row["N"], row[name])), row)) for row in rows]
    known = [row for row, fault in told if fault is None]
    kept, doubled = _once(_of_one_kind(place, known, "N", problems), ("N", name, "seed"))
    strange = [f"{row['run']} {fault}" for row, fault in told if fault is not None]
    problems += _left_out(place, [*doubled, *strange])
    return kept


def _left_out(place: str, wrong: Sequence[str]) -> list[str]:
    """One sentence, however many rows there are."""
    return [f"{place}: {first(wrong)}; left out, since that cannot be"] if wrong else []


def first(told: Sequence[str]) -> str:
    """Of many alike the first, and how many more."""
    return told[0] + (f", and {len(told) - 1} more like it" if len(told) > 1 else "")


def _not_numbers(row: Row) -> Iterator[str]:
    """What of a row should be a number and is none."""
    for name, text in row.items():
        if name not in COUNTS + NUMBERS or (not text and name in MAY_BE_EMPTY):
            continue
        try:
            number = int(text) if name in COUNTS else float(text)
            is_sound = math.isfinite(number) and (number > 0 or name not in ABOVE_0)
        except (ValueError, OverflowError):
            is_sound = False
        if not is_sound:
            yield f"{name} of {row.get('run', 'a row')} is {text!r}"


def _strange(world: Row | None, row: Row) -> str | None:
    """In what a run is not of the figure; None: it is."""
    if world is None or row["task"] != world["task"]:
        place = f"{row['algorithm']} on {row['task']} with N = {row['N']}"
        return f"is {place}, which is not of this figure"
    other = [name for name in world if row[name] != world[name]]
    if not other:
        return None
    has, wanted = (", ".join(f"{name} = {of[name]!r}" for name in other) for of in (row, world))
    return f"has {has} where this figure has {wanted}"


def _of_one_kind(place: str, rows: Sequence[Row], size: str, problems: list[str]) -> list[Row]:
    """At each size the rows of those steps and that preset that most have there."""
    counts: dict[str, Counter[Key]] = {}
    for row in rows:
        counts.setdefault(row[size], Counter())[_kind(row)] += 1
    for number, kinds in counts.items():
        (most, _), *others = kinds.most_common()
        if others:
            told = ", ".join(f"{count} of {_told(kind)}" for kind, count in others)
            problems.append(
                f"{place}, {size} = {number}: most rows are of {_told(most)}; left out {told}"
            )
    return [row for row in rows if _kind(row) == counts[row[size]].most_common(1)[0][0]]


def _kind(row: Row) -> Key:
    return row["steps"], row["preset"]


def _told(kind: Key) -> str:
    steps, preset = kind
    return f"{int(steps):,} steps by preset {preset}"


def _once(rows: Sequence[Row], key: Key) -> tuple[list[Row], list[str]]:
    """The first row of each key, since a seed is one seed, and what is said of others."""
    kept: dict[Key, Row] = {}
    doubled = []
    for row in rows:
        first = kept.setdefault(tuple(row[name] for name in key), row)
        if first is not row:
            renamed = row["run"] != first["run"]
            told = (
                f"is seed {row['seed']} as {first['run']} is" if renamed else "stands there twice"
            )
            doubled.append(f"{row['run']} {told}")
    return list(kept.values()), doubled
