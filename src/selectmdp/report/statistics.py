"""Few seeds, honest words: what a verdict may rest on, and what a table shows beside it.

Interquartile means and probabilities of improvement have the bootstrap's intervals (Agarwal et al.,
NeurIPS 2021), stratified: each world's seeds are drawn anew by themselves. Of four seeds those are
too short: between equals, "better" would be said three times as often as it should. So a verdict
rests on Student's and Welch's intervals, which are made for few.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

Scores = Sequence[Sequence[float]]
"""One row for each world, one number for each seed."""
Drawn = list[npt.NDArray[np.float64]]
"""For each world [R, seeds]: R draws of its seeds, looked at together."""

RESAMPLES = 5000
LEVEL = 0.95


class Estimate(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


def iqm(values: npt.ArrayLike) -> float:
    """The mean of the middle half; a value that is cut through counts by the part inside."""
    return float(_iqm([np.asarray(values, np.float64).reshape(1, -1)])[0])


def interquartile(scores: Scores, seed: int = 0) -> Estimate:
    """The interquartile mean over worlds and seeds."""
    return _estimate(_iqm, [scores], seed)


def average(values: Sequence[float]) -> float:
    """The mean alone."""
    return float(np.mean(values))


def mean(values: Sequence[float]) -> Estimate:
    """The mean over seeds (Student)."""
    return _around(average(values), [_Part.of(values)])


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """By how much the mean of one is above the other's, whose seeds may spread more (Welch)."""
    gap = average(ours) - average(theirs)
    return _around(gap, [_Part.of(ours), _Part.of(theirs)])


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """The mean of one as a share of the other's: Welch's, by the slopes of a quotient."""
    home = average(theirs)
    share = average(ours) / home
    return _around(share, [_Part.of(ours, 1 / home), _Part.of(theirs, share / home)])


def improvement(ours: Scores, theirs: Scores, seed: int = 0) -> Estimate:
    """How often a run of one beats a run of the other, ties half, over worlds."""
    return _estimate(_wins, [ours, theirs], seed)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """b of cost = a · size^b."""
    return power_law(sizes, costs)[1]


def power_law(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """a and b of cost = a · size^b, by least squares of the logarithms."""
    slope, level = np.polyfit(np.log(sizes), np.log(costs), 1)
    return float(np.exp(level)), float(slope)


class _Part(NamedTuple):
    """What one side's seeds add to a variance, and how freely they tell it."""

    variance: float
    freedom: int

    @classmethod
    def of(cls, values: Sequence[float], slope: float = 1.0) -> "_Part":
        """Of the mean of some values, times a slope."""
        return cls(slope**2 * float(np.var(values, ddof=1)) / len(values), len(values) - 1)


def _around(value: float, parts: Sequence[_Part]) -> Estimate:
    """The 95 % interval by Student's t, its freedom as Welch and Satterthwaite have it."""
    variance = sum(part.variance for part in parts)
    if variance == 0.0:
        return Estimate(value, value, value)
    freedom = variance**2 / sum(part.variance**2 / part.freedom for part in parts)
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * math.sqrt(variance)
    return Estimate(value, value - half, value + half)


def _iqm(drawn: Drawn) -> npt.NDArray[np.float64]:
    ordered = np.sort(np.concatenate(drawn, axis=1), axis=1)
    edges = np.arange(ordered.shape[1] + 1) / ordered.shape[1]
    inside = np.clip(edges[1:], 0.25, 0.75) - np.clip(edges[:-1], 0.25, 0.75)
    return ordered @ inside / 0.5


def _wins(ours: Drawn, theirs: Drawn) -> npt.NDArray[np.float64]:
    shares = []
    for left, right in zip(ours, theirs, strict=True):
        gaps = left[:, :, None] - right[:, None]
        shares.append(((gaps > 0) + 0.5 * (gaps == 0)).mean(axis=(1, 2)))
    return np.mean(shares, axis=0)


def _estimate(
    statistic: Callable[..., npt.NDArray[np.float64]], groups: Sequence[Scores], seed: int
) -> Estimate:
    """The statistic, and its percentile interval when each world's seeds are drawn anew."""
    rng = np.random.default_rng(seed)
    whole = [[np.asarray([row], np.float64) for row in scores] for scores in groups]
    again = [[rng.choice(row[0], (RESAMPLES, row.size)) for row in scores] for scores in whole]
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(statistic(*again), [tail, 100 - tail])
    return Estimate(float(statistic(*whole)[0]), float(low), float(high))
