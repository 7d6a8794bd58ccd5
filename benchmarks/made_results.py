"""A results folder as `reproduce` leaves it, made up: every figure, four seeds, plausible curves.

Nothing is random. The mean over seeds is the level, and the four seeds lie −1.5, −0.5, 0.5 and 1.5
`SPREAD` from it, so that a test can hold the numbers of a page.
"""

import math
from collections.abc import Mapping
from pathlib import Path

from selectmdp.config import TrainConfig
from selectmdp.experiments import cost, generalization, store, sweeps
from selectmdp.experiments.figures import FIGURES, GENERALIZATION, Figure
from selectmdp.experiments.jobs import fingerprint, name_of
from selectmdp.experiments.store import Row
from selectmdp.report.results import published

SPREAD = 0.002
OFFSETS = (-1.5, -0.5, 0.5, 1.5)
REFERENCES = {
    **{("4a", size): (0.01, 0.1) for size in (5, 20, 50)},
    **{("4b", 50): (0.098, 0.491), ("4c", 200): (0.096, 0.507)},
    **{("5a", 10): (0.055, 0.805), ("5b", 10): (0.114, 1.317), ("5c", 10): (0.167, 1.348)},
}
"""Random and greedy, by figure and N."""
PACE = {"isq-p": 7.0, "isq-u": 6.0, "isq-i": 3.5}
"""How steep a curve rises; others 5."""
AT_HOME = {"pairs": 0.8, "means": 0.75, "sums": 0.6}
"""What each network earns at N = 50."""
SHARES = {
    **{("pairs", 50, 200): 1.03, ("pairs", 200, 50): 0.86},
    **{("means", 50, 200): 1.01, ("means", 200, 50): 0.9, ("sums", 50, 200): 0.41},
}
"""What a policy earns elsewhere, of what one earns that was trained there."""

VERSIONS = {
    **{"selectmdp": "0.1.0", "jax": "0.10.2", "numpy": "2.4.6", "python": "3.11.2"},
    "machine": "x86_64",
}
PAPER = Path(__file__).parent.parent / "benchmarks" / "paper.toml"

Levels = Mapping[tuple[str, int, str], float]


def make(folder: Path, levels: Levels | None = None, seeds: int = 4) -> Path:
    """Write all files; `levels` by (figure, N, algorithm), else 0.01 above the published."""
    folder.mkdir(parents=True, exist_ok=True)
    for figure in FIGURES.values():
        make_figure(folder, figure, levels or {}, seeds)
    make_generalization(folder, seeds)
    make_cost(folder)
    return folder


def make_figure(folder: Path, figure: Figure, levels: Levels, seeds: int = 4) -> None:
    """The finals and curves of a figure."""
    finals: list[Row] = []
    curves: list[Row] = []
    for config in figure.configs("standard", "fast"):
        if config.seed >= seeds:
            continue
        size = int(config.options.get("num_items", 10))
        key = figure.name, size, config.algorithm
        level = levels.get(key, published()[figure.name, str(size), config.algorithm] + 0.01)
        reward = level + OFFSETS[config.seed] * SPREAD
        finals.append(final(figure, config, size, reward))
        curves += curve(figure, config, size, reward)
    store.write(folder / f"{figure.name}-finals.csv", store.FINALS, finals)
    store.write(folder / f"{figure.name}-curves.csv", store.CURVES, curves)


def final(figure: Figure, config: TrainConfig, size: int, reward: float) -> Row:
    """What is kept of a run."""
    random, greedy = REFERENCES[figure.name, size]
    told = {
        "run": name_of(config),
        "task": config.task,
        "dynamics": "figures" if config.task == "circle" else "captors-2",
        "N": size,
        "U": {"4a": 1, "4b": 0, "4c": 0}.get(figure.name, 4),
        "K": config.options["num_select"],
        "C": 1 if figure.name == "4a" else 5,
        **{name: getattr(config, name) for name in ("algorithm", "preset", "seed", "steps")},
        "settings": store.told_settings(config.settings),
        "mean_reward": f"{reward:.5f}",
        "ci95": "0.00400",
        "unit": "area" if config.task == "circle" else "caught",
        "random": f"{random:.5f}",
        "greedy": f"{greedy:.5f}",
        "episodes": 20,
        "episode_steps": 2500 if config.task == "circle" else 175,
        "seconds": 290.5 + config.seed,
        "cores": 1,
        "megabytes": 612,
        **VERSIONS,
        "config": fingerprint(config),
    }
    return {name: str(told[name]) for name in store.FINALS}


def curve(figure: Figure, config: TrainConfig, size: int, reward: float) -> list[Row]:
    """From random to the final reward, in 20 steps that wobble."""
    random, _ = REFERENCES[figure.name, size]
    pace = PACE.get(config.algorithm, 5.0)
    rows = []
    for number in range(21):
        part = number / 20
        rise = (1 - math.exp(-pace * part)) / (1 - math.exp(-pace))
        wobble = 0.02 * reward * part * (1 - part) * math.sin(9 * part + 2 * config.seed)
        told = {
            "run": name_of(config),
            "algorithm": config.algorithm,
            "N": size,
            "seed": config.seed,
            "step": config.steps * number // 20,
            "seconds": f"{1.5 + 289 * part:.1f}",
            "reward": f"{random + (reward - random) * rise + wobble:.5f}",
            "ci95": "0.00400",
        }
        rows.append({name: str(told[name]) for name in store.CURVES})
    return rows


def make_generalization(folder: Path, seeds: int = 4) -> None:
    """What trained policies earn at other N, and how those were trained that are in no figure."""
    rows: list[Row] = []
    finals: list[Row] = []
    curves: list[Row] = []
    for figure in GENERALIZATION:
        for config in figure.configs("standard", "fast"):
            if config.seed >= seeds:
                continue
            network = generalization.network(config)
            trained = int(config.options["num_items"])
            for played, episodes, _ in generalization.plays("standard", 20):
                told = {
                    "run": name_of(config),
                    "network": network,
                    "trained_N": trained,
                    "played_N": played,
                    **{name: getattr(config, name) for name in ("seed", "steps", "preset")},
                    "episodes": episodes,
                    "episode_steps": 2500,
                    "mean_reward": f"{_played(network, trained, played, config.seed):.5f}",
                    "ci95": "0.00400",
                    "config": fingerprint(config),
                }
                rows.append({name: str(told[name]) for name in generalization.COLUMNS})
            if config.settings:
                reward = _played(network, trained, trained, config.seed)
                finals.append(final(figure, config, trained, reward))
                curves += curve(figure, config, trained, reward)
    store.write(folder / "generalization.csv", generalization.COLUMNS, rows)
    store.write(folder / "generalization-finals.csv", store.FINALS, finals)
    store.write(folder / "generalization-curves.csv", store.CURVES, curves)


def make_paper(folder: Path) -> None:
    """The paper's own preset: ISQ-U is at its end, ISQ-P at two fifths, ISQ-I has not begun."""
    (folder / "paper").mkdir(parents=True)
    figure, rows = FIGURES["4b"], dict[str, list[Row]]()
    for config in sweeps.configs_of(PAPER):
        reward = published()["4b", "50", config.algorithm] - 0.03
        rows[config.algorithm] = curve(figure, config, 50, reward)
        if config.algorithm == "isq-u":
            finals = [final(figure, config, 50, reward)]
    store.write(folder / "paper" / "sweep-finals.csv", store.FINALS, finals)
    store.write(folder / "paper" / "sweep-curves.csv", store.CURVES, rows["isq-u"])
    store.write(folder / "paper" / "progress.csv", store.CURVES, rows["isq-p"][:9])


def make_cost(folder: Path) -> None:
    """N^0.9 and K, for both presets."""
    rows = []
    for preset, unit in (("fast", 16000.0), ("paper", 220.0)):
        for items, picks in cost.sizes():
            speed = unit / (items / 25) ** 0.9 / picks * 6
            told = (preset, "isq-i", items, picks, f"{speed:.1f}", 2, 5.0, *VERSIONS.values())
            rows.append(dict(zip(cost.COLUMNS, map(str, told), strict=True)))
    store.write(folder / "cost.csv", cost.COLUMNS, rows)


def _played(network: str, trained: int, played: int, seed: int) -> float:
    at_home = AT_HOME[network] + 0.04 * math.log(played / 50, 4)
    fall = 0.35 if network == "sums" else 0.06
    away = 1 - min(fall * abs(math.log(played / trained, 4)), 0.95)
    share = SHARES.get((network, trained, played), away)
    return at_home * share + OFFSETS[seed] * SPREAD
