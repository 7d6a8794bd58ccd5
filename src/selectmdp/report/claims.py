"""Every claim of the paper's experiments (§5, appendix), with the rule by which it is judged."""

from collections.abc import Callable
from dataclasses import dataclass

from selectmdp.experiments.figures import BASELINES
from selectmdp.experiments.store import Row
from selectmdp.report import statistics
from selectmdp.report.judging import Evidence, Judged, compared, over, said, share, together
from selectmdp.report.results import Results, published
from selectmdp.report.statistics import Estimate

MANY = ("4b", "4c", "5a", "5b", "5c")
HUNTS = ("5a", "5b", "5c")
DAY = 24 * 60 * 60
PAPERS_DAY = 1.16e6
"""Steps a day of ISQ-I at N = 200, K = 6, as the paper says."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, what it published, and how we tell."""

    name: str
    text: str
    paper: str
    """The published numbers."""
    rule: str
    """When it holds, in words."""
    judge: Callable[[Results], Judged]


def _over_dense(results: Results) -> Judged:
    rivals = ("vanilla", "sorting")
    return together([over(results, "4a", "isq-i", r, n) for n in (20, 50) for r in rivals])


def _close_at_5(results: Results) -> Judged:
    ours = results.scores("4a", "isq-i", 5)
    return together(
        [
            share(f"4a, N = 5: {name} / isq-i", results.scores("4a", name, 5), ours, least=0.8)
            for name in ("vanilla", "sorting")
        ]
    )


def _vanilla_fails(results: Results) -> Judged:
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


def _beats_baselines(name: str) -> Callable[[Results], Judged]:
    def judge(results: Results) -> Judged:
        return together([over(results, f, name, rival) for f in MANY for rival in BASELINES])

    return judge


def _over_one_command(results: Results) -> Judged:
    return together([over(results, figure, "isq-i", "isq-i-1") for figure in ("4b", "4c")])


def _faster_early(results: Results) -> Judged:
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


def _progressive_at_the_end(results: Results) -> Judged:
    """At least as good: the interval of the difference reaches 0 or lies above."""
    found = [over(results, figure, "isq-p", "isq-u") for figure in HUNTS]
    return together(
        [
            each and Evidence(each.what, each.estimate.high >= 0, each.estimate, each.probability)
            for each in found
        ]
    )


def _random_items(results: Results) -> Judged:
    near = share(
        "5c (K = N): rsq / isq-i",
        results.scores("5c", "rsq"),
        results.scores("5c", "isq-i"),
        least=0.8,
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


def _transfer(trained: int, played: int, level: float) -> Callable[[Results], Judged]:
    def judge(results: Results) -> Judged:
        found = share(
            f"{trained} → {played} relative to {played} → {played}",
            results.played("means", trained, played),
            results.played("means", played, played),
            least=level - 0.05,
        )
        return together([found])

    return judge


def _means_over_sums(results: Results) -> Judged:
    pairs = [(trained, played) for trained in (50, 200) for played in (50, 200)]
    return together(
        [
            compared(
                f"{trained} → {played}: means over sums",
                results.played("means", trained, played),
                results.played("sums", trained, played),
            )
            for trained, played in pairs
        ]
    )


def _cost(varies: str, fixed: str, value: str, least: float, most: float) -> Callable[..., Judged]:
    def judge(results: Results) -> Judged:
        rows = [row for row in _costs(results) if row[fixed] == value]
        if len(rows) < 3:
            return together([])
        sizes = [float(row[varies]) for row in rows]
        costs = [1 / float(row["steps_per_second"]) for row in rows]
        found = statistics.exponent(sizes, costs)
        told = f"cost of a step grows as {varies}^{found:.2f}"
        number = Estimate(found, found, found)
        return together([Evidence(told, least <= found <= most, number)], told)

    return judge


def _costs(results: Results) -> list[Row]:
    """Of the paper's learner where that was measured, else of the one that was."""
    papers = [row for row in results.cost if row["preset"] == "paper"]
    return papers or results.cost


def _steps_a_day(results: Results) -> Judged:
    rows = [row for row in _costs(results) if (row["N"], row["K"]) == ("200", "6")]
    if not rows:
        return together([])
    steps = DAY * max(float(row["steps_per_second"]) for row in rows)
    told = f"{steps / 1e6:.0f} million steps a day"
    number = Estimate(steps, steps, steps)
    return together([Evidence(told, steps >= PAPERS_DAY, number)], told)


def _published_levels(results: Results) -> Judged:
    found: list[Evidence | None] = []
    for figure in MANY:
        size = {"4b": "50", "4c": "200"}.get(figure, "10")
        levels = {name: published()[figure, size, name] for name in ("isq-i", "isq-u", "isq-p")}
        scores = {name: results.scores(figure, name) for name in levels}
        if not any(scores.values()):
            found.append(None)
            continue
        best = max(
            (name for name in scores if scores[name]), key=lambda n: sum(scores[n]) / len(scores[n])
        )
        ours, level = statistics.mean([scores[best]]), max(levels.values())
        told = f"{figure}: {best} {said(ours)}, published {level}"
        found.append(Evidence(told, ours.value >= level, ours))
    return together(found)


ABOVE = "the 95 % interval of the difference of means lies above 0, for each"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "levels",
        "The published rewards of ISQ are reached",
        "0.83, 0.87, 0.46, 0.74, 0.75 (4b, 4c, 5a, 5b, 5c)",
        "the mean of our best ISQ is at least the published best, in each figure",
        _published_levels,
    ),
    Claim(
        "dense",
        "ISQ-I is better than vanilla and sorting DQN at N = 20 and 50",
        "0.160 against 0.069 and 0.136; 0.171 against 0.002 and 0.104",
        ABOVE,
        _over_dense,
    ),
    Claim(
        "close",
        "At N = 5 vanilla and sorting DQN are close to ISQ-I",
        "0.095 and 0.110 against 0.115",
        "each earns at least 80 % of ISQ-I",
        _close_at_5,
    ),
    Claim(
        "vanilla",
        "Vanilla DQN fails to learn at N = 20 and 50",
        "43 % and 1 % of ISQ-I",
        "it earns at most half of ISQ-I",
        _vanilla_fails,
    ),
    Claim(
        "isq-i",
        "ISQ-I outperforms every baseline (myopic, EQ, RSQ, IDQN) in figures 4 and 5",
        "true of all 20 comparisons",
        ABOVE,
        _beats_baselines("isq-i"),
    ),
    Claim(
        "isq-u",
        "ISQ-U too is above every baseline",
        "19 of 20 comparisons: in 5c it is below RSQ, 0.50 against 0.66",
        ABOVE,
        _beats_baselines("isq-u"),
    ),
    Claim(
        "commands",
        "ISQ-I is better than ISQ-I (1), which only gives the command stay",
        "0.76 against 0.63; 0.83 against 0.68",
        ABOVE,
        _over_one_command,
    ),
    Claim(
        "early",
        "ISQ-P learns faster than ISQ-I early in training, in all cases",
        "by its curves",
        "the mean of the curve's first third is higher, interval above 0, in each figure",
        _faster_early,
    ),
    Claim(
        "progressive",
        "ISQ-P ends at least as high as ISQ-U in predator-prey",
        "0.46 against 0.38; 0.74 against 0.48; 0.75 against 0.50",
        "the 95 % interval of the difference reaches 0 or lies above, for each K",
        _progressive_at_the_end,
    ),
    Claim(
        "rsq",
        "RSQ is close to ISQ-I when K = N and far below when K ≪ N",
        "94 % in 5c; 20 % and 18 % in 4b and 4c",
        "at least 80 % of ISQ-I in 5c, at most half in 4b and 4c",
        _random_items,
    ),
    Claim(
        "up",
        "Trained at N = 50, ISQ-P plays N = 200 as well as if trained there",
        "103 %",
        "at least 98 % of what training at N = 200 earns",
        _transfer(50, 200, 1.03),
    ),
    Claim(
        "down",
        "Trained at N = 200, ISQ-P still plays N = 50",
        "86 %",
        "at least 81 % of what training at N = 50 earns",
        _transfer(200, 50, 0.86),
    ),
    Claim(
        "means",
        "Means instead of sums stabilise training and generalise better",
        "stated without numbers",
        ABOVE,
        _means_over_sums,
    ),
    Claim(
        "cost-picks",
        "The cost of a step is linear in K",
        "stated without numbers",
        "the exponent of K is between 0.8 and 1.2",
        _cost("K", "N", "50", 0.8, 1.2),
    ),
    Claim(
        "cost-items",
        "The cost of a step is robust to large N",
        "stated without numbers",
        "the exponent of N is at most 1.05",
        _cost("N", "K", "6", 0.0, 1.05),
    ),
    Claim(
        "day",
        "1.16 million steps a day at N = 200, K = 6",
        "1.16 million",
        "at least as many",
        _steps_a_day,
    ),
)
