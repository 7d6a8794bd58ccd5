"""The rule of each claim: which runs are compared, and by what (the table is in `claims`)."""

from collections.abc import Callable
from dataclasses import replace

from selectmdp.experiments.figures import BASELINES, ISQ
from selectmdp.experiments.store import Row
from selectmdp.report import statistics
from selectmdp.report.judging import (
    ENOUGH,
    Evidence,
    Judged,
    compared,
    measured,
    over,
    reached,
    said,
    share,
    together,
)
from selectmdp.report.results import Results, published

MANY = ("4b", "4c", "5a", "5b", "5c")
HUNTS = ("5a", "5b", "5c")
SIZES = {"4b": "50", "4c": "200", "5a": "10", "5b": "10", "5c": "10"}
"""N of each."""
CLOSE = {"least": 0.8, "most": 1.25}
"""As a share of another."""
DAY = 24 * 60 * 60
PAPERS_DAY = 1.16e6
"""Steps a day of ISQ-I at N = 200, K = 6, as the paper says."""


def over_dense(results: Results) -> Judged:
    """In figure 4a, where N is not small."""
    rivals = ("vanilla", "sorting")
    return together([over(results, "4a", "isq-i", r, n) for n in (20, 50) for r in rivals])


def close_at_5(results: Results) -> Judged:
    """In figure 4a, where it is."""
    ours = results.scores("4a", "isq-i", 5)
    return together(
        [
            share(f"4a, N = 5: {name} / isq-i", results.scores("4a", name, 5), ours, **CLOSE)
            for name in ("vanilla", "sorting")
        ]
    )


def vanilla_fails(results: Results) -> Judged:
    """By what share of ISQ-I it earns."""
    return together(
        [
            share(
                f"4a, N = {n}: vanilla / isq-i",
                results.scores("4a", "vanilla", n),
                results.scores("4a", "isq-i", n),
                most=0.5,
            )
            for n in (20, 50)
        ]
    )


def beats_baselines(name: str) -> Callable[[Results], Judged]:
    """In every figure with several picks, each baseline by itself."""

    def judge(results: Results) -> Judged:
        return together([over(results, f, name, rival) for f in MANY for rival in BASELINES])

    return judge


def over_one_command(results: Results) -> Judged:
    """In both figures that have it."""
    return together([over(results, figure, "isq-i", "isq-i-1") for figure in ("4b", "4c")])


def faster_early(results: Results) -> Judged:
    """By the mean of the curve over the first third of the training."""
    return together(
        [
            compared(
                f"{figure}: first third of isq-p over isq-i",
                results.early(figure, "isq-p"),
                results.early(figure, "isq-i"),
            )
            for figure in MANY
        ]
    )


def progressive_at_the_end(results: Results) -> Judged:
    """At least as good: 5 % may lack."""
    return together(
        [
            compared(
                f"{figure}: isq-p no less than isq-u",
                results.scores(figure, "isq-p"),
                results.scores(figure, "isq-u"),
                lack=0.05,
            )
            for figure in HUNTS
        ]
    )


def random_items(results: Results) -> Judged:
    """By what share of ISQ-I it earns, with K = N and with K far below."""
    near = share(
        "5c (K = N): rsq / isq-i",
        results.scores("5c", "rsq"),
        results.scores("5c", "isq-i"),
        **CLOSE,
    )
    far = [
        share(
            f"{figure} (K ≪ N): rsq / isq-i",
            results.scores(figure, "rsq"),
            results.scores(figure, "isq-i"),
            most=0.5,
        )
        for figure in ("4b", "4c")
    ]
    return together([near, *far])


def transfer(trained: int, played: int, level: float) -> Callable[[Results], Judged]:
    """What a policy earns elsewhere, of what one earns that was trained there; 5 % may lack.

    Judged by the preset's network; the paper's stands beside it.
    """

    def shown(results: Results, network: str) -> Evidence | None:
        return share(
            f"{network}: {trained} → {played} relative to {played} → {played}",
            results.played(network, trained, played),
            results.played(network, played, played),
            least=level - 0.05,
        )

    def judge(results: Results) -> Judged:
        found, beside = shown(results, "pairs"), shown(results, "means")
        if found is None or beside is None:
            return together([found or beside])
        told = f"{said(found.estimate)}; the paper's network {said(beside.estimate)}"
        return replace(together([found], told), evidence=(found, beside))

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
            for trained, played in ((50, 200), (200, 50))
        ]
    )


def means_are_stable(results: Results) -> Judged:
    """By how far a curve falls on its way."""
    return together(
        [
            compared(
                f"N = {trained}: largest fall with sums over that with means",
                results.falls("sums", trained),
                results.falls("means", trained),
            )
            for trained in (50, 200)
        ]
    )


def cost(
    varies: str, fixed: str, value: int, least: float, most: float
) -> Callable[[Results], Judged]:
    """The exponent by which a step's cost grows with one size, the other fixed."""

    def judge(results: Results) -> Judged:
        preset, rows = judged_costs(results.cost)
        rows = [row for row in rows if int(row[fixed]) == value]
        if len({row[varies] for row in rows}) < 3:
            return together([None], lacking=_unmeasured(results))
        found = statistics.exponent(
            [float(row[varies]) for row in rows],
            [1 / float(row["steps_per_second"]) for row in rows],
        )
        told = f"{varies}^{found:.2f}, {preset} preset"
        return together([measured(told, found, least=least, most=most)], told)

    return judge


def steps_a_day(results: Results) -> Judged:
    """By the fastest of the measured turns."""
    preset, rows = judged_costs(results.cost)
    speeds = [
        float(row["steps_per_second"]) for row in rows if (int(row["N"]), int(row["K"])) == (200, 6)
    ]
    if not speeds:
        return together([None], lacking=_unmeasured(results))
    steps = DAY * max(speeds)
    told = f"{steps / 1e6:.3g} million, {preset} preset"
    return together([measured(told, steps, least=PAPERS_DAY)], told)


def published_levels(results: Results) -> Judged:
    """Of the three ISQ the best by its mean, beside the best published."""
    found: list[Evidence | None] = []
    for figure in MANY:
        level = max(published()[figure, SIZES[figure], name] for name in ISQ)
        scores = {name: results.scores(figure, name) for name in ISQ}
        enough = [name for name in ISQ if len(scores[name]) >= ENOUGH] or ISQ
        best = max(enough, key=lambda name: sum(scores[name]) / max(len(scores[name]), 1))
        found.append(reached(f"{figure}: {best}, published {level}", scores[best], level))
    return together(found)


def judged_costs(rows: list[Row]) -> tuple[str, list[Row]]:
    """Of the paper's learner where that was measured, else of the one that was."""
    preset = "paper" if any(row["preset"] == "paper" for row in rows) else "fast"
    return preset, [row for row in rows if row["preset"] == preset]


def _unmeasured(results: Results) -> str:
    return "too few sizes measured" if results.cost else "not measured"
