"""How a claim is judged: differences between seeds are tested, not eyeballed.

"A over B" holds where the 95 % interval of the difference of means lies above 0. A claim about
several worlds or rivals holds in part where it holds for some of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from selectmdp.report import statistics
from selectmdp.report.results import Results
from selectmdp.report.statistics import Estimate

Verdict = Literal["holds", "holds in part", "does not hold", "not judged"]


@dataclass(frozen=True)
class Evidence:
    """One comparison that a verdict rests on."""

    what: str
    holds: bool
    estimate: Estimate
    probability: float | None = None
    """That a run of the first is better than one of the second."""


@dataclass(frozen=True)
class Judged:
    """A verdict, and what it rests on."""

    verdict: Verdict
    ours: str
    """Our number in words, with its interval."""
    evidence: tuple[Evidence, ...] = field(default=())


def over(
    results: Results, figure: str, ours: str, theirs: str, num_items: int | None = None
) -> Evidence | None:
    """One algorithm above another at the end of training; None: not both were run."""
    left = results.scores(figure, ours, num_items)
    right = results.scores(figure, theirs, num_items)
    place = figure if num_items is None else f"{figure}, N = {num_items}"
    return compared(f"{place}: {ours} over {theirs}", left, right)


def compared(what: str, left: Sequence[float], right: Sequence[float]) -> Evidence | None:
    """The mean of one above the other's; None: one of them is empty."""
    if not left or not right:
        return None
    gap = statistics.difference([left], [right])
    chance = statistics.improvement([left], [right]).value
    return Evidence(what, gap.low > 0, gap, chance)


def share(
    what: str,
    left: Sequence[float],
    right: Sequence[float],
    *,
    least: float = 0.0,
    most: float = float("inf"),
) -> Evidence | None:
    """The mean of one as a share of the other's, which is to lie between two bounds."""
    if not left or not right:
        return None
    part = statistics.ratio([left], [right])
    return Evidence(what, least <= part.value <= most, part)


def together(found: Sequence[Evidence | None], ours: str | None = None) -> Judged:
    """All of it, some of it, or none; nothing found is not judged."""
    evidence = tuple(each for each in found if each is not None)
    if not evidence:
        return Judged("not judged", "no runs")
    count = sum(each.holds for each in evidence)
    verdict: Verdict = "holds in part" if count else "does not hold"
    if count == len(evidence):
        verdict = "holds" if len(evidence) == len(found) else "holds in part"
    told = f"{count} of {len(evidence)} comparisons" if len(evidence) > 1 else ""
    failed = [each.what for each in evidence if not each.holds]
    if failed and count:
        told += f"; not: {', '.join(failed)}"
    return Judged(verdict, ours or told or said(evidence[0].estimate), evidence)


def said(estimate: Estimate, digits: int = 3) -> str:
    """`0.120 [0.085, 0.150]`."""
    value, low, high = (f"{number:.{digits}f}" for number in estimate)
    return f"{value} [{low}, {high}]"
