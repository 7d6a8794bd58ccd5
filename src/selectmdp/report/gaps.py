"""What is missing of the paper's experiments in a results folder, a sentence for each gap."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from selectmdp import __version__
from selectmdp.experiments.cost import sizes
from selectmdp.experiments.figures import FIGURES, ISQ, SEEDS, Figure
from selectmdp.experiments.generalization import PAIRS
from selectmdp.experiments.store import Row
from selectmdp.report.rows import PAPERS, first, trained, worlds

WANTED = {str(seed) for seed in SEEDS["standard"]}
"""Seeds of each."""
AGAIN = "delete a run's row among the finals, and the same command makes it again"


def of_figure(figure: Figure, finals: Sequence[Row], curves: Sequence[Row]) -> list[str]:
    """Runs and curves of a figure; a whole figure that is missing is one sentence."""
    place = f"figure {figure.name}"
    if not finals:
        return [f"{place}: no runs"]
    sentences = []
    every = dict.fromkeys(size for size, _ in worlds(figure.name))
    for size in every:
        here = f"{place}, N = {size}" if len(every) > 1 else place
        done = {
            each: {row["seed"] for row in finals if (row["N"], row["algorithm"]) == (size, each)}
            for each in figure.algorithms
        }
        sentences += _of_seeds(here, "algorithm", done)
    return sentences + _of_curves(place, finals, curves)


def _of_curves(place: str, finals: Sequence[Row], curves: Sequence[Row]) -> list[str]:
    sentences = []
    drawn = {row["run"] for row in curves}
    bare = [row["run"] for row in finals if row["run"] not in drawn]
    if bare:
        sentences.append(f"{place}: no curve of {len(bare)} of {len(finals)} runs; {AGAIN}")
    cut = [f"the curve of {run} is cut off" for run in cut_curves(finals, curves)]
    if cut:
        sentences.append(f"{place}: {first(cut)}; how fast it learns is not judged by that")
    return sentences


def cut_curves(finals: Sequence[Row], curves: Sequence[Row]) -> list[str]:
    """Runs whose curve ends before they do, or has fewer points than others at their N."""
    steps: dict[str, set[int]] = {}
    for row in curves:
        steps.setdefault(row["run"], set()).add(int(row["step"]))
    most: Counter[str] = Counter()
    for row in finals:
        most[row["N"]] = max(most[row["N"]], len(steps.get(row["run"], ())))
    return [
        row["run"]
        for row in finals
        if row["run"] in steps
        and (max(steps[row["run"]]) < int(row["steps"]) or len(steps[row["run"]]) < most[row["N"]])
    ]


def of_generalization(rows: Sequence[Row]) -> list[str]:
    """Policies that were not trained, and plays that only others have."""
    if not rows:
        return ["generalization: no runs"]
    plays: dict[tuple[str, int, str], set[int]] = {}
    for row in rows:
        policy = row["network"], int(row["trained_N"]), row["seed"]
        plays.setdefault(policy, set()).add(int(row["played_N"]))
    every = {*PAIRS}.union(*plays.values())
    unplayed = [
        f"{network} trained at {size}, seed {seed}, was not played at N = "
        + ", ".join(map(str, sorted(every - done)))
        for (network, size, seed), done in plays.items()
        if every - done
    ]
    seeds = {
        f"{network} trained at {size}": {
            policy[2] for policy in plays if policy[:2] == (network, size)
        }
        for network, size in trained()
    }
    return [
        *_of_seeds("generalization", "network", seeds),
        *([f"generalization: {first(unplayed)}"] if unplayed else []),
    ]


def of_networks(
    plays: Sequence[Row], finals: Iterable[Row], own: Sequence[Row], curves: Sequence[Row]
) -> list[str]:
    """Policies that were played though their training is not kept, and curves of `own` finals."""
    kept = {row["run"] for row in finals}
    every = dict.fromkeys(row["run"] for row in plays)
    lost = [f"the training of {run} is not kept" for run in every if run not in kept]
    told = [f"generalization: {first(lost)}"] if lost else []
    return told + _of_curves("generalization", own, curves)


def of_cost(rows: Sequence[Row]) -> list[str]:
    """Sizes at which a preset was not measured though it was at others."""
    if not rows:
        return ["cost: not measured"]
    sentences = []
    for preset in dict.fromkeys(row["preset"] for row in rows):
        done = {(int(row["N"]), int(row["K"])) for row in rows if row["preset"] == preset}
        left = [
            f"N = {items}, K = {picks}" for items, picks in sizes() if (items, picks) not in done
        ]
        if left:
            told = f"{len(left)} of {len(sizes())} sizes not measured"
            sentences.append(f"cost, {preset} preset: {told}: {'; '.join(left)}")
    return sentences


def of_paper(finals: Sequence[Row], curves: Sequence[Row], others: Iterable[Row]) -> list[str]:
    """Runs of the paper's own preset that are not at their end; figures may have made some too."""
    place = "the paper's own preset"
    if not finals and not curves:
        made = any(row["preset"] == "paper" for row in others)
        return [] if made else [f"{place}: no runs"]
    done = {row["algorithm"] for row in finals}
    reached = dict.fromkeys(ISQ, 0)
    for row in curves:
        reached[row["algorithm"]] = max(reached[row["algorithm"]], int(row["step"]))
    told = [f"{each} is at {step:,}" for each, step in reached.items() if each not in done]
    return [f"{place}: of {FIGURES[PAPERS].full:,} steps {', '.join(told)}"] if told else []


def of_versions(finals: Iterable[Row]) -> list[str]:
    """Which others than this one made some of the runs."""
    others = sorted({row["selectmdp"] for row in finals} - {__version__})
    told = ", ".join(others)
    return [f"some runs were made with selectmdp {told}; this is {__version__}"] if others else []


def _of_seeds(place: str, what: str, done: Mapping[str, set[str]]) -> list[str]:
    """Which of some lack seeds; all alike is one sentence."""
    counts = {len(seeds) for seeds in done.values()}
    if len(counts) == 1 and max(counts) < len(WANTED):
        return [f"{place}: every {what} has {max(counts)} of {len(WANTED)} seeds"]
    short = [
        f"{each} has {len(seeds)}"
        + (f" (not {', '.join(sorted(WANTED - seeds))})" if seeds else "")
        for each, seeds in done.items()
        if len(seeds) < len(WANTED)
    ]
    return [f"{place}: of {len(WANTED)} seeds {', '.join(short)}"] if short else []
