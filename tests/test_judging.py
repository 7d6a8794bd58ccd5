"""Verdicts: the whole interval decides, and what the seeds do not tell is not told."""

import math

import pytest

from benchmarks import made_results
from selectmdp.experiments import cost, generalization, store
from selectmdp.experiments.figures import FIGURES
from selectmdp.report import rules
from selectmdp.report.claims import CLAIMS
from selectmdp.report.judging import FEW, Evidence, compared, measured, reached, share, together
from selectmdp.report.results import load
from selectmdp.report.statistics import Estimate

HIGH, LOW = [0.9, 0.91, 0.92, 0.93], [0.5, 0.51, 0.52, 0.53]
ABOUT = [0.6, 0.9, 1.1, 1.2]  # 0.95 [0.53, 1.37]


def between(low: float, high: float, least: float = 0.0, most: float = math.inf) -> Evidence:
    return Evidence("", Estimate((low + high) / 2, low, high), least=least, most=most)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.3, "holds"), (-0.1, 0.3, "undecided"), (-0.3, -0.1, "does not hold")],
)
def test_a_comparison_holds_by_its_whole_interval(low, high, verdict):
    assert between(low, high).verdict == verdict


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([between(1, 2), between(1, 2)], "holds"),
        ([between(1, 2), between(-2, -1)], "holds in part"),
        ([between(1, 2), FEW], "holds so far"),
        ([between(1, 2), *[between(-2, -1)] * 19], "does not hold"),
        ([between(1, 2), between(-1, 1), FEW], "holds in part"),
        ([between(1, 2), between(-2, -1), FEW], "holds in part"),
        ([between(-1, 1), between(-2, -1)], "does not hold"),
        ([between(-2, -1), FEW], "does not hold"),
        ([between(-1, 1), between(-1, 2)], "undecided"),
        ([between(-1, 1), FEW], "not judged"),
        ([FEW, FEW], "not judged"),
    ],
)
def test_a_claim_is_its_comparisons_together(found, verdict):
    assert together(found).verdict == verdict


def test_a_comparison_needs_three_seeds_of_each_side():
    assert compared("", HIGH, LOW[:2]) == FEW
    assert share("", HIGH[:2], LOW, least=1.0) == FEW
    assert reached("", HIGH[:2], 0.5) == FEW
    found = compared("", HIGH[:3], LOW[:3])
    assert isinstance(found, Evidence)
    assert (found.holds, found.probability) == (True, 1.0)


def test_a_share_must_lie_between_its_bounds_with_all_its_interval():
    part = share("", ABOUT, HIGH, least=0.8)
    assert isinstance(part, Evidence)
    assert part.estimate.value == pytest.approx(0.95 / 0.915)  # above 0.8, its interval not
    assert part.verdict == "undecided"
    four_times = share("", [3.6, 3.61, 3.62, 3.63], HIGH, least=0.8, most=1.25)
    assert isinstance(four_times, Evidence)
    assert four_times.verdict == "does not hold"  # not close


def test_where_there_is_no_share_the_reason_is_told():
    told = share("a / b", HIGH, [-0.01, *LOW])
    assert told == "no share of 0 or less, which a seed of the second earns (a / b)"
    judged = together([told, told])
    assert (judged.verdict, judged.ours, judged.lacking) == ("not judged", told, (told,))
    assert together([between(1, 2), FEW, told]).lacking == (FEW, told)


def test_a_level_is_reached_by_the_whole_interval():
    for scores, verdict in ((HIGH, "holds"), (ABOUT, "undecided"), (LOW, "does not hold")):
        found = reached("", scores, 0.83)
        assert isinstance(found, Evidence)
        assert found.verdict == verdict


def test_a_tie_is_no_advantage_and_no_defeat():
    for lack in (0.0, 0.05):
        found = compared("", [0.0] * 4, [0.0] * 4, lack=lack)
        assert isinstance(found, Evidence)
        assert found.verdict == "undecided"
    same = compared("", [0.5] * 4, [0.5] * 4, lack=0.05)
    assert isinstance(same, Evidence)
    assert same.verdict == "holds"  # no less than, by 5 %


def test_noise_does_not_make_one_no_worse_than_another():
    noisy = compared("", ABOUT, [1.0, 1.0, 1.1, 1.1], lack=0.05)
    assert isinstance(noisy, Evidence)
    assert noisy.least == pytest.approx(-0.0525)
    assert noisy.verdict == "undecided"
    little = compared("", [0.99, 0.99, 1.0, 1.0], [1.0, 1.0, 1.01, 1.01], lack=0.05)
    assert isinstance(little, Evidence)
    assert little.verdict == "holds"  # 1 % below, surely less than 5 %


def test_a_cost_that_was_not_measured_says_so(tmp_path):
    made_results.make_figure(tmp_path, FIGURES["4a"], {})
    told = rules.steps_a_day(load(tmp_path))
    assert (told.verdict, told.ours) == ("not judged", "not measured")
    assert together([measured("", 3.0, least=2.0)]).verdict == "holds"


def test_the_level_is_reached_by_the_one_that_is_published_best(tmp_path):
    levels = {("4b", 50, "isq-u"): 0.8, ("4b", 50, "isq-p"): 0.99}
    made_results.make_figure(tmp_path, FIGURES["4b"], levels)
    told = rules.published_levels(load(tmp_path))
    (evidence,) = told.evidence
    assert evidence.what == "4b: isq-u, published 0.83"
    assert evidence.estimate.value == pytest.approx(0.8)
    assert told.verdict == "does not hold"


@pytest.mark.parametrize(
    ("share", "verdict", "what"),
    [
        (1.0, "holds so far", "5b: first half of isq-p over isq-i"),
        (0.01, "not judged", "5b: first half of isq-p over isq-i, both as random"),
    ],
)
def test_how_fast_one_learns_is_not_told_by_noise_around_random(tmp_path, share, verdict, what):
    made_results.make_figure(tmp_path, FIGURES["5b"], {})
    path, random = tmp_path / "5b-curves.csv", 0.114
    flat = [
        {**row, "reward": f"{random + share * (float(row['reward']) - random):.5f}"}
        for row in store.read(path, store.CURVES)
    ]
    store.write(path, store.CURVES, flat)
    told = rules.faster_early(load(tmp_path))
    assert (told.verdict, told.evidence[0].what) == (verdict, what)
    assert told.evidence[0].estimate.low > 0  # of the noise as well


def test_cost_is_robust_up_to_the_root_of_n_and_in_part_up_to_n(tmp_path):
    made_results.make_cost(tmp_path)
    path = tmp_path / "cost.csv"
    rows = [row for row in store.read(path, cost.COLUMNS) if row["K"] == "6"]
    for exponent, verdict in ((0.4, "holds"), (0.9, "holds in part"), (1.2, "does not hold")):
        slow = [{**r, "steps_per_second": f"{1e6 / int(r['N']) ** exponent}"} for r in rows]
        store.write(path, cost.COLUMNS, slow)
        (claim,) = (each for each in CLAIMS if each.name == "cost-items")
        assert claim.judge(load(tmp_path)).verdict == verdict


def test_cost_is_judged_by_the_preset_that_was_measured_at_most_sizes(tmp_path):
    made_results.make_cost(tmp_path)
    rows = load(tmp_path).cost
    assert rules.judged_costs(rows)[0] == "paper"  # as many of both
    few = [row for row in rows if (row["preset"], row["N"]) != ("paper", "800")]
    assert rules.judged_costs(few)[0] == "fast"
    assert rules.judged_costs([row for row in rows if row["preset"] == "paper"])[0] == "paper"


def test_without_enough_runs_of_the_presets_network_the_papers_does_not_stand_in(tmp_path):
    made_results.make_generalization(tmp_path)
    path = tmp_path / "generalization.csv"
    rows = store.read(path, generalization.COLUMNS)
    judge = rules.transfer(50, 200, 1.03)
    few = [row for row in rows if row["network"] != "pairs" or row["seed"] == "0"]
    store.write(path, generalization.COLUMNS, few)
    told = judge(load(tmp_path))
    assert (told.verdict, told.lacking) == ("not judged", (FEW,))
    alone = [row for row in rows if row["network"] == "means"]
    store.write(path, generalization.COLUMNS, alone)  # as of --preset paper
    (evidence,) = judge(load(tmp_path)).evidence
    assert evidence.what == "means: 50 → 200 relative to 200 → 200"
    assert evidence.published == "1.03"
