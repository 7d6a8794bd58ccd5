"""How a claim is judged: differences between seeds are tested, not eyeballed.

"A over B" holds where the 95 % interval of the difference of means lies above 0. A claim about
several worlds or rivals holds in part where it holds for some of them, or where some were not run.
One seed has no interval, so from one nothing is judged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from selectmdp.report import statistics
from selectmdp.report.results import Results
from selectmdp.report.statistics import Estimate

Verdict = Literal["holds", "holds in part", "does not hold", "not judged"]
ENOUGH = 2
"""Seeds that a comparison needs of each side."""


@dataclass(frozen=True)
class Evidence:
    """One comparison that a verdict rests on."""

    what: str
    holds: bool
    estimate: Estimate
    probability: float | None = None
    """That a run of the first is better than one of the second."""
    least: float = -math.inf
    """From where on, and up to where, the number is as claimed."""
    most: float = math.inf

    @property
    def margin(self) -> float:
        """How far the number is inside the bounds; below 0: outside."""
        return min(self.estimate.value - self.least, self.most - self.estimate.value)


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
    """The mean of one above the other's; None: too few seeds."""
    if min(len(left), len(right)) < ENOUGH:
        return None
    gap = statistics.difference([left], [right])
    chance = statistics.improvement([left], [right]).value
    return Evidence(what, gap.low > 0, gap, chance, least=0.0)


def share(
    what: str,
    left: Sequence[float],
    right: Sequence[float],
    *,
    least: float = -math.inf,
    most: float = math.inf,
) -> Evidence | None:
    """The mean of one as a share of the other's, which is to lie between two bounds.

    None: too few seeds, or a seed that earns nothing or less, of which there is no share.
    """
    if min(len(left), len(right)) < ENOUGH or min(right) <= 0:
        return None
    part = statistics.ratio([left], [right])
    return Evidence(what, least <= part.value <= most, part, least=least, most=most)


def reached(what: str, scores: Sequence[float], level: float) -> Evidence | None:
    """The mean at least at a level; None: too few seeds."""
    if len(scores) < ENOUGH:
        return None
    ours = statistics.mean([scores])
    return Evidence(what, ours.value >= level, ours, least=level)


def measured(
    what: str, number: float, *, least: float = -math.inf, most: float = math.inf
) -> Evidence:
    """A number without an interval, which is to lie between two bounds."""
    return Evidence(
        what, least <= number <= most, Estimate(number, number, number), least=least, most=most
    )


def together(found: Sequence[Evidence | None], ours: str | None = None) -> Judged:
    """All of it, some of it, or none; nothing found is not judged."""
    evidence = tuple(each for each in found if each is not None)
    if not evidence:
        return Judged("not judged", "too few runs")
    count = sum(each.holds for each in evidence)
    verdict: Verdict = "holds in part" if count else "does not hold"
    if count == len(found):
        verdict = "holds"
    return Judged(verdict, ours or _told(evidence, count, len(found)), evidence)


def said(estimate: Estimate, digits: int = 3) -> str:
    """`0.120 [0.085, 0.150]`; without an interval where there is none."""
    value, low, high = (f"{number:.{digits}f}" for number in estimate)
    return value if low == high else f"{value} [{low}, {high}]"


def _told(evidence: Sequence[Evidence], count: int, wanted: int) -> str:
    """The number, or of several how many hold, and the one that does worst."""
    if wanted == 1:
        return said(evidence[0].estimate)
    worst = min(evidence, key=lambda each: (each.holds, each.margin))
    told = f"{count} of {wanted}"
    if len(evidence) < wanted:
        told += f" ({wanted - len(evidence)} not judged)"
    return f"{told}; worst {said(worst.estimate)} ({worst.what})"
