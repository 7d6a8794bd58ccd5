"""Few seeds, honest words: interquartile mean, bootstrap intervals, probability of improvement.

As recommended for reinforcement learning with few runs (Agarwal et al., NeurIPS 2021): the
bootstrap is stratified, each world's seeds are drawn anew by themselves.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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


def mean(scores: Scores, seed: int = 0) -> Estimate:
    """The mean over worlds and seeds, each world alike."""
    return _estimate(_mean, [scores], seed)


def difference(ours: Scores, theirs: Scores, seed: int = 0) -> Estimate:
    """By how much the mean of one is above the other's, on the same worlds."""
    return _estimate(lambda a, b: _mean(a) - _mean(b), [ours, theirs], seed)


def ratio(ours: Scores, theirs: Scores, seed: int = 0) -> Estimate:
    """The mean of one as a share of the other's."""
    return _estimate(lambda a, b: _mean(a) / _mean(b), [ours, theirs], seed)


def improvement(ours: Scores, theirs: Scores, seed: int = 0) -> Estimate:
    """How often a run of one beats a run of the other, ties half, over worlds."""
    return _estimate(_wins, [ours, theirs], seed)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """b of cost = a · size^b, by least squares of the logarithms."""
    slope, _ = np.polyfit(np.log(sizes), np.log(costs), 1)
    return float(slope)


def _mean(drawn: Drawn) -> npt.NDArray[np.float64]:
    return np.mean([values.mean(axis=1) for values in drawn], axis=0)


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
