"""The rule of each claim: which runs are compared, and by what (the table is in `claims`)."""

import math
from collections.abc import Callable
from dataclasses import replace

from selectmdp.experiments.figures import BASELINES, ISQ
from selectmdp.experiments.generalization import PAIRS
from selectmdp.experiments.store import Row
from selectmdp.report import statistics
from selectmdp.report.judging import (
    Evidence,
    Judged,
    compared,
    measured,
    over,
    part_of,
    reached,
    said,
    share,
    together,
)
from selectmdp.report.results import Results, published_of

MANY = ("4b", "4c", "5a", "5b", "5c")
HUNTS = ("5a", "5b", "5c")
LEAVES = 0.1
"""Share of the way from random to the end, from which on something was learned."""
CLOSE = 0.8, 1.25
"""From what share of another on, and up to what."""
DAY = 24 * 60 * 60
PAPERS_DAY = 1.16e6
"""Steps a day of ISQ-I at N = 200, K = 6, as the paper says."""


def over_dense(results: Results) -> Judged:
    """In figure 4a, where N is not small."""
    rivals = ("vanilla", "sorting")
    return together([over(results, "4a", "isq-i", r, n) for n in (20, 50) for r in rivals])


def sorting_over_vanilla(results: Results) -> Judged:
    """There too."""
    return together([over(results, "4a", "sorting", "vanilla", n) for n in (20, 50)])


def close_at_5(results: Results) -> Judged:
    """In figure 4a, where it is."""
    least, most = CLOSE
    return together(
        [
            part_of(results, "4a", name, "isq-i", 5, least=least, most=most)
            for name in ("vanilla", "sorting")
        ]
    )


def vanilla_fails(results: Results) -> Judged:
    """By what share of ISQ-I it earns."""
    return together([part_of(results, "4a", "vanilla", "isq-i", n, most=0.5) for n in (20, 50)])


def beats_baselines(name: str, *but: tuple[str, str]) -> Callable[[Results], Judged]:
    """In every figure with several picks, each baseline by itself; without (figure, baseline)."""
    pairs = [(f, rival) for f in MANY for rival in BASELINES if (f, rival) not in but]

    def judge(results: Results) -> Judged:
        return together([over(results, figure, name, rival) for figure, rival in pairs])

    return judge


def unified_below_random(results: Results) -> Judged:
    """Where all predators are picked and one parameter set serves all ten phases."""
    return together([over(results, "5c", "rsq", "isq-u")])


def over_one_command(results: Results) -> Judged:
    """In both figures that have it."""
    return together([over(results, f, name, "isq-i-1") for f in ("4b", "4c") for name in ISQ])


def faster_early(results: Results) -> Judged:
    """By the mean of the curve over the first half of the training, in which P-sharing splits."""
    return together([_early(results, figure) for figure in MANY])


def _early(results: Results, figure: str) -> Evidence | str:
    names = ("isq-p", "isq-i")
    what = f"{figure}: first half of isq-p over isq-i"
    found = compared(what, results.early(figure, names[0]), results.early(figure, names[1]))
    if isinstance(found, str) or any(_left_random(results, figure, name) for name in names):
        return found
    return replace(found, what=f"{what}, both as random", tells=False)


def _left_random(results: Results, figure: str, name: str) -> bool:
    """Whether the first half is, on average, a tenth of the way from random to the end."""
    random = statistics.average(results.references(figure, "random") or [0.0])
    early = statistics.average(results.early(figure, name))
    end = statistics.average(results.scores(figure, name))
    return early - random > LEAVES * abs(end - random)


def progressive_at_the_end(results: Results) -> Judged:
    """At least as good: 5 % may lack."""
    return together(
        [
            over(results, figure, "isq-p", "isq-u", word="no less than", lack=0.05)
            for figure in HUNTS
        ]
    )


def random_items(results: Results) -> Judged:
    """By what share of ISQ-I it earns, with K = N and with K far below."""
    least, most = CLOSE
    near = part_of(results, "5c", "rsq", "isq-i", where=" (K = N)", least=least, most=most)
    far = [
        part_of(results, figure, "rsq", "isq-i", where=" (K ≪ N)", most=0.5)
        for figure in ("4b", "4c")
    ]
    return together([near, *far])


def transfer(trained: int, played: int, level: float) -> Callable[[Results], Judged]:
    """What a policy earns elsewhere, of what one earns that was trained there; 5 % may lack.

    Judged by the fast preset's network, with the paper's beside it; where results are of the
    paper's preset there is only that.
    """

    def shown(results: Results, network: str) -> Evidence | str:
        return share(
            f"{network}: {trained} → {played} relative to {played} → {played}",
            results.played(network, trained, played),
            results.played(network, played, played),
            least=level - 0.05,
        )

    def judge(results: Results) -> Judged:
        papers = shown(results, "means")
        if isinstance(papers, Evidence):
            papers = replace(papers, published=f"{level:g}")  # it is of this network
        if not any(row["network"] == "pairs" for row in results.generalization):
            return together([papers])
        found = shown(results, "pairs")
        if isinstance(found, str) or isinstance(papers, str):
            return together([found])
        told = f"{said(found.estimate, 'share')}; the paper's network {said(papers.estimate)}"
        return replace(together([found], told), evidence=(found, papers))

    return judge


def means_over_sums(results: Results) -> Judged:
    """The paper's network with each, played where it was not trained."""
    return together(
        [
            compared(
                f"{trained} → {played}: means over sums",
                results.played("means", trained, played),
                results.played("sums", trained, played),
            )
            for trained, played in (PAIRS, PAIRS[::-1])
        ]
    )


def means_are_stable(results: Results) -> Judged:
    """By where training ends: one that falls apart, or never gets going, ends low."""
    return together(
        [
            compared(
                f"trained and played at {trained}: means over sums",
                results.played("means", trained, trained),
                results.played("sums", trained, trained),
            )
            for trained in PAIRS
        ]
    )


def cost(
    varies: str, fixed: str, value: int, least: float, most: float, part: float = -math.inf
) -> Callable[[Results], Judged]:
    """The exponent by which a step's cost grows with one size; up to `part` it holds in part."""

    def judge(results: Results) -> Judged:
        preset, rows = judged_costs(results.cost)
        rows = [row for row in rows if int(row[fixed]) == value]
        if len({row[varies] for row in rows}) < 3:
            return together([_unmeasured(results)])
        found = statistics.exponent(
            [float(row[varies]) for row in rows],
            [1 / float(row["steps_per_second"]) for row in rows],
        )
        told = f"{varies}^{found:.2f}, {preset} preset"
        judged = together([measured(told, found, least=least, most=most)], told)
        return replace(judged, verdict="holds in part") if most < found <= part else judged

    return judge


def steps_a_day(results: Results) -> Judged:
    """By the fastest of the measured turns."""
    preset, rows = judged_costs(results.cost)
    speeds = [
        float(row["steps_per_second"]) for row in rows if (int(row["N"]), int(row["K"])) == (200, 6)
    ]
    if not speeds:
        return together([_unmeasured(results)])
    steps = DAY * max(speeds)
    told = f"{steps / 1e6:.3g} million, {preset} preset"
    found = measured(told, steps, least=PAPERS_DAY)
    return together([replace(found, published=f"{PAPERS_DAY:,.0f}")], told)


def published_levels(results: Results) -> Judged:
    """Of the three ISQ the one that is published best in a figure."""
    found: list[Evidence | str] = []
    for figure in MANY:
        levels = {name: published_of(figure, name) for name in ISQ}
        best = max(levels, key=levels.__getitem__)
        what = f"{figure}: {best}, published {levels[best]}"
        found.append(reached(what, results.scores(figure, best), levels[best]))
    return together(found)


def judged_costs(rows: list[Row]) -> tuple[str, list[Row]]:
    """Of the paper's learner where no other was measured at more sizes."""
    of = {each: [row for row in rows if row["preset"] == each] for each in ("paper", "fast")}
    preset = max(of, key=lambda each: len(of[each]))  # the first of equals
    return preset, of[preset]


def _unmeasured(results: Results) -> str:
    return "too few sizes measured" if results.cost else "not measured"
