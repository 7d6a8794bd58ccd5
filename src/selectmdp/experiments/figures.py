"""The figures of the paper as data: worlds × algorithms × seeds, with a budget of steps (§5).

Baselines get the same learner, network size and budget as ISQ. What the paper published is in
`published.csv`, read off its figures.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from selectmdp.config import TrainConfig
from selectmdp.learners.presets import preset as named
from selectmdp.spec import SelectError

Budget = Literal["smoke", "standard", "full"]
Options = Mapping[str, Any]

SEEDS: dict[str, tuple[int, ...]] = {"smoke": (0,), "standard": (0, 1, 2, 3), "full": (0, 1, 2, 3)}
EPISODES: dict[str, int] = {"smoke": 2, "standard": 20, "full": 20}
EVALUATIONS: dict[str, int] = {"smoke": 2, "standard": 20, "full": 50}
SMOKE_CHUNKS = 2
"""Chunks of steps that a run of the smallest budget makes."""


@dataclass(frozen=True)
class Figure:
    """Some algorithms on some worlds of one task."""

    name: str
    title: str
    task: str
    worlds: tuple[Options, ...]
    algorithms: tuple[str, ...]
    standard: int
    """Steps of a run in the standard budget: some minutes of the fast preset."""
    full: int
    """Steps of a run as published."""
    settings: tuple[Options, ...] = field(default=({},))
    """Changes of the preset, each of which is run."""
    note: str = ""
    """What its numbers need said."""

    def configs(self, budget: Budget, preset: str) -> tuple[TrainConfig, ...]:
        """One config for each run, seeds first: a figure is whole for a seed early."""
        chunk = named(preset).settings().chunk
        settings = _changes(self.settings, preset)
        steps = {"smoke": SMOKE_CHUNKS * chunk, "standard": self.standard, "full": self.full}
        return tuple(
            TrainConfig(
                task=self.task,
                options=world,
                algorithm=algorithm,
                preset=preset,
                settings=changes,
                steps=steps[budget],
                seed=seed,
                evaluations=EVALUATIONS[budget],
                episodes=EPISODES[budget],
            )
            for seed in SEEDS[budget]
            for changes in settings
            for world in self.worlds
            for algorithm in self.algorithms
        )


def _changes(settings: Iterable[Options], preset: str) -> list[Options]:
    """What of each differs from a preset, once: the paper's preset has the paper's network."""
    defaults = asdict(named(preset).settings())
    found: list[Options] = []
    for each in settings:
        changes = {
            name: value for name, value in each.items() if defaults.get(name, value) != value
        }
        found += [changes] if changes not in found else []
    return found


ISQ = ("isq-i", "isq-u", "isq-p")
BASELINES = ("myopic", "eq", "rsq", "idqn")
MILLION = 1_000_000


def _single(num_items: int) -> Options:
    return {"num_items": num_items, "num_context": 1, "num_select": 1, "commands": ("stay",)}


def _many(num_items: int) -> Options:
    return {"num_items": num_items, "num_select": 6}


def _hunt(name: str, num_select: int) -> Figure:
    return Figure(
        name=name,
        title=f"Predator-prey, N = 10, K = {num_select}",
        task="predator-prey",
        worlds=({"num_select": num_select},),
        algorithms=(*ISQ, *BASELINES),
        standard=400_000,
        full=10 * MILLION,
        note="Those with a parameter set for each phase learn late, and their curves still rise at "
        "the end: ISQ-I, ISQ-P, most baselines. Published runs are 25 times as long.",
    )


FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure(
            name="4a",
            title="Circle selection, one of N circles, one command",
            task="circle",
            worlds=tuple(_single(num_items) for num_items in (5, 20, 50)),
            algorithms=("isq-i", "vanilla", "sorting"),
            standard=300_000,
            full=5 * MILLION,
        ),
        Figure(
            name="4b",
            title="Circle selection, N = 50, K = 6",
            task="circle",
            worlds=(_many(50),),
            algorithms=(*ISQ, "isq-i-1", *BASELINES),
            standard=300_000,
            full=5 * MILLION,
        ),
        Figure(
            name="4c",
            title="Circle selection, N = 200, K = 6",
            task="circle",
            worlds=(_many(200),),
            algorithms=(*ISQ, "isq-i-1", *BASELINES),
            standard=300_000,
            full=5 * MILLION,
            note="Points of a curve lie above what the table has: they are of an episode’s first "
            "500 steps, and 200 circles begin with a stock of large ones. Greedy earns 0.590 a "
            "step in 500 steps and 0.507 in 2,500.",
        ),
        _hunt("5a", 4),
        _hunt("5b", 7),
        _hunt("5c", 10),
    )
}

PAPERS_NETWORK: Options = {"pairs": False, "channels": 48}
GENERALIZATION = tuple(
    replace(
        FIGURES[name],
        algorithms=("isq-p",),
        settings=({}, PAPERS_NETWORK, {**PAPERS_NETWORK, "sums": True}),
    )
    for name in ("4b", "4c")
)
"""Trained at each N, then played at others; the paper's network with means and with sums too."""

WHAT = (*FIGURES, "generalization", "cost")


def chosen(what: str) -> tuple[str, ...]:
    """The names that `what` stands for."""
    if what == "all":
        return WHAT
    if what not in WHAT:
        raise SelectError(f"reproduce {what!r}: there is {', '.join(WHAT)}, and all")
    return (what,)
