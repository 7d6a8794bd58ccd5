"""Statistics of few seeds, against numbers by hand and against SciPy."""

import math

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


def test_the_interval_of_a_mean_is_students() -> None:
    values = [0.2, 0.4, 0.1, 0.5]
    ours = statistics.mean(values)
    theirs = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert ours == pytest.approx((0.3, theirs.low, theirs.high))
    assert ours.high == pytest.approx(0.3 + 3.18245 * math.sqrt(0.1 / 3 / 4), abs=1e-5)


def test_the_interval_of_a_difference_is_welchs() -> None:
    ours, theirs = [0.8, 0.9, 0.7, 1.0], [0.5, 0.52, 0.49]
    told = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    gap = 0.85 - 1.51 / 3
    assert statistics.difference(ours, theirs) == pytest.approx((gap, told.low, told.high))


def test_a_share_of_a_sure_number_has_the_interval_of_the_mean_scaled() -> None:
    share, mean = (
        statistics.ratio([0.8, 0.9, 0.7], [0.5, 0.5, 0.5]),
        statistics.mean([1.6, 1.8, 1.4]),
    )
    assert share == pytest.approx(tuple(mean))
    wider = statistics.ratio([0.8, 0.9, 0.7], [0.45, 0.5, 0.55])
    assert wider.value == pytest.approx(1.6)
    # 0.00333 / 0.25 + 1.6² · 0.000833 / 0.25 is the variance; Student's t of 3.8 degrees is 2.83.
    assert wider.high - wider.value == pytest.approx(2.83 * math.sqrt(0.0218667), abs=1e-3)


def test_between_equals_better_is_said_of_one_in_forty() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(4000, 2, 4))
    said = np.mean([statistics.difference(*pair).low > 0 for pair in drawn])
    assert 0.015 < said < 0.03


def test_the_probability_of_improvement_is_the_mann_whitney_share() -> None:
    left, right = [0.5, 0.7, 0.9, 0.4], [0.45, 0.6, 0.7, 0.2]
    share = stats.mannwhitneyu(left, right).statistic / 16
    assert statistics.improvement([left], [right]).value == pytest.approx(share)
    assert share == 10.5 / 16  # ties count half


def test_worlds_count_alike_and_are_drawn_by_themselves() -> None:
    scores = [[1.0, 1.0], [3.0, 3.0, 3.0, 3.0]]
    rivals = [[2.0, 2.0], [1.5, 1.5]]
    assert statistics.improvement(scores, rivals) == Estimate(0.5, 0.5, 0.5)  # no seed crosses over
    assert statistics.interquartile([[1.0] * 4, [3.0] * 4]) == Estimate(2.0, 2.0, 2.0)


def test_an_interval_holds_the_value_and_is_the_same_every_time() -> None:
    scores = [[0.2, 0.4, 0.1, 0.3], [1.0, 1.2, 0.9, 1.4]]
    first, again = statistics.interquartile(scores), statistics.interquartile(scores)
    assert first == again
    assert first.low < first.value < first.high


def test_a_cost_that_grows_with_the_square_has_exponent_two() -> None:
    assert statistics.exponent([1, 2, 4, 8], [3.0, 12.0, 48.0, 192.0]) == pytest.approx(2.0)
