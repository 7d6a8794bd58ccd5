"""Writes `docs/which-algorithm.md`: advice that is measured, from the CSV files of `reproduce`.

`make docs` runs it, and a test holds the committed page against `results/`. A comparison says
something only where its 95 % interval leaves out 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from cells import markdown

from selectmdp.experiments.figures import FIGURES, Figure
from selectmdp.experiments.generalization import NETWORKS
from selectmdp.report import results, statistics
from selectmdp.report.judging import ENOUGH
from selectmdp.report.measures import transfer
from selectmdp.report.results import Results
from selectmdp.spec import SelectError

PAGE = Path(__file__).parent / "which-algorithm.md"
RESULTS = Path(__file__).parent.parent / "results"
HEAD = """# Which algorithm when

What `selectmdp train` takes by itself is `isq-u` with `--preset fast`. What each name stands for is
on [the page of the method](method.md#what-it-is-compared-with); why there are two presets, on
[that of the fast one](fast.md).

This page is made from the CSV files in `results/` by `make docs`, and those are made by

    selectmdp reproduce all --budget standard --out results

Rewards are means of a step over the episodes of an evaluation, in the unit of their world. Square
brackets are 95 % intervals of the mean over seeds (Student's, Welch's). *No difference seen* is
what it says: the interval of the difference has 0 in it, and with few seeds that is often so.
Minutes are those of a shared machine, and rough.
"""
NONE_YET = """
No run is in yet, so there is nothing to advise from.
"""
UNDECIDED = "no difference seen"
TOO_FEW = f"A comparison needs {ENOUGH} seeds of each side; none has them yet.\n"


class Choice(NamedTuple):
    """A question, answered by one algorithm against another wherever both ran."""

    question: str
    first: str
    second: str
    why: str


CHOICES = (
    Choice(
        "One parameter set for all phases, or one for each?",
        *("isq-u", "isq-i"),
        "`isq-u` has one set for all phases, `isq-i` has K of them.",
    ),
    Choice(
        "Begin with one set and end with K?",
        *("isq-p", "isq-u"),
        "`isq-p` splits its set on the way, until each phase has its own.",
    ),
    Choice(
        "Must a network ignore the order of items?",
        *("isq-i", "sorting"),
        "`sorting` has a dense network on sorted items; its size, and so its N, is fixed.",
    ),
    Choice(
        "Is sorting better than nothing?",
        *("sorting", "vanilla"),
        "`vanilla` has a dense network on the items as they come.",
    ),
    Choice(
        "Does it pay to look beyond this step?",
        *("isq-i", "myopic"),
        "`myopic` learns the reward of this step alone.",
    ),
    Choice(
        "Must a pick see the picks before it?",
        *("isq-i", "idqn"),
        "`idqn` takes all K picks from one table of values.",
    ),
    Choice(
        "Must an item see the items that are left?",
        *("isq-i", "eq"),
        "`eq` sees the picks and the context, not the other items.",
    ),
    Choice(
        "Must it be learned which item to pick?",
        *("isq-i", "rsq"),
        "`rsq` draws the items and learns the commands.",
    ),
    Choice(
        "Do the commands count?",
        *("isq-i", "isq-i-1"),
        "`isq-i-1` gives one command only.",
    ),
)


def page(folder: Path = RESULTS) -> str:
    """The whole page, by what is in the folder."""
    try:
        found = results.load(folder)
    except SelectError:
        return HEAD + NONE_YET
    answers = {choice: _compared(found, choice) for choice in CHOICES}
    answers = {choice: rows for choice, rows in answers.items() if rows}
    questions = [_question(choice, rows) for choice, rows in answers.items()]
    worlds = [each for figure in FIGURES.values() for each in _table(found, figure)]
    parts = [HEAD, "## Questions\n", _in_short(answers) if answers else TOO_FEW]
    parts += [*questions, *_other_sizes(found)]
    parts += ["## All of it, by world\n", *worlds]
    return "\n".join(parts).rstrip() + "\n"


def _worlds(figure: Figure) -> Iterator[tuple[str, int | None]]:
    """Each world of a figure: what it is called, and its N where the figure has several."""
    if len(figure.worlds) == 1:
        yield figure.title, None
        return
    for world in figure.worlds:
        yield figure.title.replace("N circles", f"{world['num_items']}"), world["num_items"]


def _compared(found: Results, choice: Choice) -> list[tuple[str, ...]]:
    """A row for each world in which both have seeds enough; the last cell tells what to take."""
    rows = []
    for figure in FIGURES.values():
        for title, size in _worlds(figure):
            names = choice.first, choice.second
            ours, theirs = (found.scores(figure.name, name, size) for name in names)
            if min(len(ours), len(theirs)) < ENOUGH:
                continue
            gap = statistics.difference(ours, theirs)
            means = [f"{np.mean(scores):z.3f}" for scores in (ours, theirs)]
            told = f"{_signed(gap.value)} [{_signed(gap.low)}, {_signed(gap.high)}]"
            better = f"`{names[gap.value < 0]}`"
            take = UNDECIDED if gap.low <= 0 <= gap.high else better
            rows.append((title, *means, told, take))
    return rows


def _in_short(answers: Mapping[Choice, list[tuple[str, ...]]]) -> str:
    """A line for each question: in how many worlds which answer."""
    lines = []
    for choice, rows in answers.items():
        taken = [row[-1] for row in rows]
        names = f"`{choice.first}`", f"`{choice.second}`", UNDECIDED
        counts = [f"{name} in {taken.count(name)}" for name in names if name in taken]
        lines.append((choice.question, ", ".join(counts)))
    return markdown(("question", "take, in how many worlds"), lines)


def _question(choice: Choice, rows: list[tuple[str, ...]]) -> str:
    names = ("world", f"`{choice.first}`", f"`{choice.second}`", "difference", "take")
    return f"### {choice.question}\n\n{choice.why}\n\n" + markdown(names, rows)


def _table(found: Results, figure: Figure) -> Iterator[str]:
    """Every algorithm in a world, the best first, between what random and greedy earn."""
    for title, size in _worlds(figure):
        rows = []
        for name in figure.algorithms:
            runs = found.runs(figure.name, name, size)
            if runs:
                minutes = [float(run["seconds"]) / 60 for run in runs if run["seconds"]]
                told = f"{sum(minutes) / len(minutes):.0f}" if minutes else ""
                rows.append((name, [float(run["mean_reward"]) for run in runs], told))
        if not rows:
            continue
        rows.sort(key=lambda row: -np.mean(row[1]))
        cells = [
            (f"`{name}`", _mean(scores), str(len(scores)), told) for name, scores, told in rows
        ]
        first = found.runs(figure.name, rows[0][0], size)[0]
        known = [name for name in ("greedy", "random") if first[name]]
        cells += [(name, f"{float(first[name]):.3f}", "", "") for name in known]
        steps = f"{int(first['steps']):,} steps of the {first['preset']} preset, in {first['unit']}"
        yield f"### {title}\n\n{steps}.\n"
        yield markdown(("algorithm", "reward", "seeds", "minutes"), cells)


def _other_sizes(found: Results) -> Iterator[str]:
    """What policies earn at an N that they did not learn at."""
    rows = []
    for network in NETWORKS:
        for trained, played in ((50, 200), (200, 50)):
            scores = found.played(network, trained, played)
            home = found.played(network, played, played)
            if min(len(scores), len(home)) >= ENOUGH:
                share = transfer(found, network, trained, played)["share"]
                parts = [f"{part:.0%}".replace("%", " %") for part in share or ()]
                told = "{} [{}, {}]".format(*parts) if parts else "not learned there"
                rows.append((network, str(trained), str(played), _mean(scores), told))
    if rows:
        yield "### Will it play at another N?\n"
        yield "`isq-p` in circle selection, K = 6, beside one that learned at that N.\n"
        yield markdown(("network of", "learned at N", "played at N", "reward", "of home"), rows)


def _mean(scores: Sequence[float]) -> str:
    if len(scores) < 2:
        return f"{scores[0]:.3f}"
    told = statistics.mean(scores)
    return f"{told.value:z.3f} [{told.low:z.3f}, {told.high:z.3f}]"


def _signed(number: float) -> str:
    return f"{number:+z.3f}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
