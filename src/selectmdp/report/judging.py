"""How a claim is judged: differences between seeds are tested, not eyeballed.

A comparison claims that a number lies between two bounds, "A over B" that their difference is above
0. It holds where the number's whole 95 % interval lies between them, it is contrary where the whole
interval lies outside, and else the seeds do not tell. A claim about several worlds or rivals does
not hold where more of them are contrary than hold, and holds in part where it holds for some. It
holds so far where all that was run holds and something was not run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from selectmdp.report import statistics
from selectmdp.report.results import Results, published_of
from selectmdp.report.statistics import Estimate

Verdict = Literal[
    "holds", "holds so far", "holds in part", "does not hold", "undecided", "not judged"
]
ENOUGH = 3
"""Seeds that a comparison needs of each side."""
FEW = "too few runs"
"""Why there is no comparison; where there is another reason, it is said in a sentence."""


@dataclass(frozen=True)
class Evidence:
    """One comparison that a verdict rests on."""

    what: str
    estimate: Estimate
    probability: float | None = None
    """That a run of the first is better than one of the second."""
    least: float = -math.inf
    """From where on, and up to where, the number is as claimed."""
    most: float = math.inf
    tells: bool = True
    """False: it is noise, whatever its interval."""
    kind: str = ""
    """What the number is: a difference, a share, a mean."""
    published: str | None = None
    """What the published numbers have there, in words."""

    @property
    def holds(self) -> bool:
        """Whether all of the interval is as claimed."""
        return self.tells and self.least < self.estimate.low and self.estimate.high < self.most

    @property
    def is_contrary(self) -> bool:
        """Whether none of it is."""
        outside = self.estimate.high < self.least or self.most < self.estimate.low
        return self.tells and outside

    @property
    def verdict(self) -> Verdict:
        """Of this comparison alone."""
        return "holds" if self.holds else "does not hold" if self.is_contrary else "undecided"

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
    lacking: tuple[str, ...] = field(default=())
    """Why some of it was not judged."""


def over(
    results: Results,
    figure: str,
    ours: str,
    theirs: str,
    num_items: int | None = None,
    *,
    word: str = "over",
    lack: float = 0.0,
) -> Evidence | str:
    """One algorithm above another at the end of training."""
    place = figure if num_items is None else f"{figure}, N = {num_items}"
    left, right = (results.scores(figure, name, num_items) for name in (ours, theirs))
    found = compared(f"{place}: {ours} {word} {theirs}", left, right, lack)
    first, second = (published_of(figure, name, num_items) for name in (ours, theirs))
    gap = f"{first - second:.3f}".replace("-", "−")
    return _beside(found, f"{gap} = {first:g} − {second:g}")


def part_of(
    results: Results,
    figure: str,
    ours: str,
    theirs: str,
    num_items: int | None = None,
    *,
    where: str = "",
    least: float = -math.inf,
    most: float = math.inf,
) -> Evidence | str:
    """One algorithm as a share of another at the end of training."""
    place = f"{figure}{where}" if num_items is None else f"{figure}, N = {num_items}"
    left, right = (results.scores(figure, name, num_items) for name in (ours, theirs))
    found = share(f"{place}: {ours} / {theirs}", left, right, least=least, most=most)
    first, second = (published_of(figure, name, num_items) for name in (ours, theirs))
    return _beside(found, f"{first / second:.3f} = {first:g} / {second:g}")


def compared(
    what: str, left: Sequence[float], right: Sequence[float], lack: float = 0.0
) -> Evidence | str:
    """The mean of one above the other's, of which a share may lack; a text: why there is none."""
    if min(len(left), len(right)) < ENOUGH:
        return FEW
    gap = statistics.difference(left, right)
    chance = statistics.improvement([left], [right]).value
    least = -lack * abs(statistics.mean(right).value)
    return Evidence(what, gap, chance, least=least, kind="difference")


def share(
    what: str,
    left: Sequence[float],
    right: Sequence[float],
    *,
    least: float = -math.inf,
    most: float = math.inf,
) -> Evidence | str:
    """The mean of one as a share of the other's, which is to lie between two bounds."""
    if min(len(left), len(right)) < ENOUGH:
        return FEW
    if min(right) <= 0:
        return f"no share of 0 or less, which a seed of the second earns ({what})"
    return Evidence(what, statistics.ratio(left, right), least=least, most=most, kind="share")


def reached(what: str, scores: Sequence[float], level: float) -> Evidence | str:
    """The mean at least at a published level."""
    if len(scores) < ENOUGH:
        return FEW
    mean = statistics.mean(scores)
    return Evidence(what, mean, least=level, kind="mean", published=f"{level:g}")


def measured(
    what: str, number: float, *, least: float = -math.inf, most: float = math.inf
) -> Evidence:
    """A number without an interval, which is to lie between two bounds."""
    return Evidence(what, Estimate(number, number, number), least=least, most=most)


def together(found: Sequence[Evidence | str], ours: str | None = None) -> Judged:
    """All of it, some of it, or none; a text says why something was not judged."""
    evidence = tuple(each for each in found if isinstance(each, Evidence))
    lacking = tuple(dict.fromkeys(each for each in found if isinstance(each, str)))
    if not evidence:
        return Judged("not judged", "; ".join(lacking), lacking=lacking)
    count = sum(each.holds for each in evidence)
    verdict: Verdict = "undecided"
    if count == len(evidence):
        verdict = "holds" if count == len(found) else "holds so far"
    elif sum(each.is_contrary for each in evidence) > count:
        verdict = "does not hold"
    elif count:
        verdict = "holds in part"
    elif len(evidence) < len(found):
        verdict = "not judged"
    return Judged(verdict, ours or _told(evidence, count, len(found)), evidence, lacking)


def said(estimate: Estimate, kind: str = "", digits: int = 3) -> str:
    """`difference 0.120 [0.085, 0.150]`; without an interval where there is none."""
    value, low, high = (f"{number:.{digits}f}" for number in estimate)
    told = value if low == high else f"{value} [{low}, {high}]"
    return f"{kind} {told}" if kind else told


def _beside(found: Evidence | str, published: str) -> Evidence | str:
    return found if isinstance(found, str) else replace(found, published=published)


def _told(evidence: Sequence[Evidence], count: int, wanted: int) -> str:
    """The number, or of several how many hold, and the one that does worst."""
    if wanted == 1:
        return said(evidence[0].estimate, evidence[0].kind)
    worst = min(evidence, key=lambda each: (each.holds, not each.is_contrary, each.margin))
    against = sum(each.is_contrary for each in evidence)
    counts = {
        "contrary": against,
        "undecided": len(evidence) - count - against,
        "not judged": wanted - len(evidence),
    }
    others = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    told = f"{count} of {wanted}" + (f" ({others})" if others else "")
    return f"{told}; worst {said(worst.estimate, worst.kind)} ({worst.what})"
