"""Statistics of few seeds, against numbers by hand and against SciPy."""

import numpy as np
import pytest
from scipy import stats

from selectmdp.report import statistics
from selectmdp.report.statistics import Estimate


def test_the_interquartile_mean_of_eight_is_that_of_the_middle_four() -> None:
    assert statistics.iqm([8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0]) == (3 + 4 + 5 + 6) / 4


def test_a_value_cut_through_counts_by_the_part_inside() -> None:
    assert statistics.iqm([1.0, 2.0, 6.0]) == pytest.approx(
        (1 / 12 * 1 + 1 / 3 * 2 + 1 / 12 * 6) / 0.5
    )


@pytest.mark.parametrize("size", [4, 8, 20, 64])
def test_the_interquartile_mean_is_scipys_trimmed_mean(size: int) -> None:
    values = np.random.default_rng(size).normal(size=size)
    assert statistics.iqm(values) == pytest.approx(stats.trim_mean(values, 0.25), rel=1e-12)


def test_the_interval_of_a_mean_is_scipys_bootstrap_interval() -> None:
    values = np.random.default_rng(1).normal(size=12)
    ours = statistics.mean([list(values)])
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert ours.value == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.03)
    assert ours.high == pytest.approx(theirs.high, abs=0.03)


def test_the_probability_of_improvement_is_the_mann_whitney_share() -> None:
    left, right = [0.5, 0.7, 0.9, 0.4], [0.45, 0.6, 0.7, 0.2]
    share = stats.mannwhitneyu(left, right).statistic / 16
    assert statistics.improvement([left], [right]).value == pytest.approx(share)
    assert share == 10.5 / 16  # ties count half


def test_worlds_count_alike_and_are_drawn_by_themselves() -> None:
    scores = [[1.0, 1.0], [3.0, 3.0, 3.0, 3.0]]
    assert statistics.mean(scores) == Estimate(2.0, 2.0, 2.0)  # no seed crosses to another world
    assert statistics.difference(scores, [[0.5, 0.5], [1.5, 1.5]]) == Estimate(1.0, 1.0, 1.0)
    assert statistics.ratio(scores, [[0.5, 0.5], [1.5, 1.5]]) == Estimate(2.0, 2.0, 2.0)


def test_an_interval_holds_the_value_and_is_the_same_every_time() -> None:
    scores = [[0.2, 0.4, 0.1, 0.3], [1.0, 1.2, 0.9, 1.4]]
    first, again = statistics.interquartile(scores), statistics.interquartile(scores)
    assert first == again
    assert first.low < first.value < first.high


def test_a_cost_that_grows_with_the_square_has_exponent_two() -> None:
    assert statistics.exponent([1, 2, 4, 8], [3.0, 12.0, 48.0, 192.0]) == pytest.approx(2.0)
