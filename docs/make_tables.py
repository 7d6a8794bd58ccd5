"""Fills the tables in pages that people write: in README.md and in some of docs/.

`make docs` runs it, and a test holds the committed pages against the committed results. A table
stands between `<!-- NAME -->` and `<!-- end of NAME -->`.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import make_results
import numpy as np
from cells import markdown

from selectmdp.bench.learning import TASKS
from selectmdp.evaluation import interval95
from selectmdp.experiments.store import Row, Store
from selectmdp.spec import SelectError

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks" / "results"
ABLATIONS = {
    "circle, N = 50, K = 6": BENCHMARKS / "ablation",
    "predator-prey, K = 10": BENCHMARKS / "ablation-hunt",
}

MEANINGS = {
    "": "the preset",
    "lambda_phases=0.0": "a pick learns from the next pick's promise alone",
    "lambda_phases=0.8": "λ between picks almost as low as between steps",
    "lambda_steps=0.0": "a step learns from the next step's promise alone",
    "marginal=False": "the reward comes with the last pick",
    "marginal=False;lambda_phases=0.0": "both: the reward moves one pick a round",
    "pairs=False;channels=48": "the paper's network",
    "layer_norm=True": "layer norm where the network's parts are joined",
    "minibatch=32": "batches twice as large, half the updates",
    "minibatch=128": "batches eight times as large, an eighth of the updates",
    "epochs=1": "every step is learned from once",
    "epochs=2": "twice",
    "epochs=8": "eight times",
    "learning_rate=0.001": "half the learning rate",
    "epsilon_end=0.05": "ten times the exploration at the end",
    "isq-i": "a parameter set for each phase (I-sharing)",
    "isq-p": "one set that splits on the way (P-sharing)",
}
"""Each row of benchmarks/ablation.toml by what it changes."""


def ablation(folders: Mapping[str, Path] = ABLATIONS) -> str:
    """A row for each change: in each world what the seeds earned, and how far off their mean is."""
    of_worlds = [changes_in(folder) for folder in folders.values()]
    lines = []
    for change, meaning in MEANINGS.items():
        cells = [cell for changes in of_worlds for cell in _cells(change, changes)]
        lines.append((meaning, f"`{change}`" if change else "", *cells))
    heads = [head for world in folders for head in (world, "less the preset")]
    return markdown(("change", "setting", *heads), lines)


def changes_in(folder: Path) -> dict[str, list[Row]]:
    """The runs of a sweep by what they change, in the order of their seeds."""
    of_change: dict[str, list[Row]] = {}
    for row in sorted(Store(folder, "sweep").finals(), key=lambda row: int(row["seed"])):
        change = row["settings"] if row["algorithm"] == "isq-u" else row["algorithm"]
        of_change.setdefault(change, []).append(row)
    if "" not in of_change:
        raise SelectError(f"{folder} has no run of the preset: sweep benchmarks/ablation.toml")
    return of_change


def _cells(change: str, changes: Mapping[str, Sequence[Row]]) -> tuple[str, str]:
    if change not in changes:
        return "", ""
    rows = changes[change]
    earned = ", ".join(f"{float(row['mean_reward']):.3f}" for row in rows)
    gap = f"{_mean(rows) - _mean(changes['']):+.3f}".replace("-", "−") if change else ""
    return earned, gap


def learning(folder: Path = BENCHMARKS / "learning") -> str:
    """A row for each task of `selectmdp bench learning`, in it a number for each seed."""
    told = [_read(path) for path in folder.glob("*.json")]
    told.sort(key=lambda each: (list(TASKS).index(each["name"]), each["minutes"]))
    names = ("TASK", "M", "best published", "above it for good after minutes", "reward at the end")
    return markdown((*names, "greedy", "minutes", "steps"), [_learned(each) for each in told])


def _learned(told: Mapping[str, Any]) -> list[str]:
    rows, published = told["rows"], told["published"]
    best, above = "none", ""
    if published:
        name = max(published, key=published.__getitem__)
        best = f"{published[name]:.2f}"
        times = [row["minutes_to"][name] for row in rows]
        above = ", ".join("never" if each is None else f"{each:.1f}" for each in times)
    rewards = ", ".join(f"{row['mean_reward']:.3f}" for row in rows)
    minutes = ", ".join(f"{row['minutes']:.1f}" for row in rows)
    steps = ", ".join(f"{row['steps'] / 1000:,.0f} k" for row in rows)
    greedy = f"{rows[0]['references']['greedy']:.3f}"
    name, asked = f"`{told['name']}`", f"{told['minutes']:g}"
    return [name, asked, best, above, rewards, greedy, minutes, steps]


def trained(folder: Path = BENCHMARKS) -> str:
    """A row for each of other people's worlds, by `benchmarks/thirdparty.sh`."""
    runs = [_read(path) for path in sorted(folder.glob("*.json"))]
    names = ("random", "heuristic", "trained", "trained − heuristic", "steps", "minutes")
    return markdown(
        ("`selectmdp train …`", "N, K", *names),
        [_trained(run) for run in runs if str(run.get("task")).startswith("examples.")],
    )


def _trained(run: Mapping[str, Any]) -> list[str]:
    known = run["references"]
    gaps = np.subtract(run["episode_rewards"], known["greedy"]["episode_rewards"])
    gap, width = float(gaps.mean()), interval95(gaps)
    earned = [_interval(each["mean_reward"], each["ci95"]) for each in (*known.values(), run)]
    judged = "" if gap > width else ": below" if gap < -width else ": level"
    return [
        f"`{run['command'].removeprefix('selectmdp train ')}`",
        f"{run['num_items']}, {run['num_select']}",
        *earned,
        _interval(gap, width) + judged,
        f"{run['steps']:,}",
        f"{run['seconds'] / 60:.1f}",
    ]


def steps() -> str:
    """What a step of each of other people's worlds costs, by `benchmarks.thirdparty_steps`."""
    rows = _read(BENCHMARKS / "thirdparty-steps.json")["rows"]
    lines = [(row["world"], f"{row['bare_ms']:.2f}", f"{row['adapted_ms']:.2f}") for row in rows]
    return markdown(("world", "bare", "adapted"), lines)


def acting() -> str:
    """What one `select` takes, by `selectmdp bench scale`."""
    lines = [
        (
            f"{row['num_items']:,}",
            _milliseconds(row["cpu_ms"]),
            _milliseconds(row["best_ms"]),
            f"{row['peak_megabytes']:.0f} MB",
        )
        for row in _read(BENCHMARKS / "scale.json")["acting"]
    ]
    return markdown(("N", "processor", "clock, best", "memory of the whole process"), lines)


def rounds() -> str:
    """What a device needs for a round of training, by the same."""
    told = _read(BENCHMARKS / "scale.json")
    names = ("N", "environments × steps", "batch", "state", "work", "updates", "processor, a step")
    return markdown(names, [_round(row) for row in (*told["run"], *told["compiled"])])


def _round(row: Mapping[str, Any]) -> list[str]:
    memory = (row[f"{what}_megabytes"] for what in ("state", "working"))
    return [
        f"{row['num_items']:,}",
        f"{row['num_envs']:,} × {row['rollout']}",
        f"{row['minibatch']}",
        *(f"{each:.1f} MB" if each < 10 else f"{each:,.0f} MB" for each in memory),
        f"{row['updates_a_round']:,}",
        _milliseconds(row["step_cpu_ms"]) if "step_cpu_ms" in row else "",
    ]


def _milliseconds(time: float) -> str:
    return f"{time:.2g} ms" if time < 100 else f"{time:.0f} ms"


def _interval(mean: float, width: float) -> str:
    """To the second digit of the interval that is not 0 before others."""
    digits = max(0, 1 - math.floor(math.log10(width))) if width > 0 else 3
    return f"{mean:.{digits}f} ± {width:.{digits}f}"


def faults() -> str:
    """What became of each kind of fault."""
    return faults_told(_read(BENCHMARKS / "faults.json"))


def faults_told(told: Mapping[str, Any]) -> str:
    """A row for each kind of fault, of `python -m benchmarks.faults --json`."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for each in told["faults"]:
        kinds.setdefault(each["about"], []).append(each)
    lines = [
        (
            about if len(rows) == 1 else f"{about}, in {len(rows)} ways",
            *(f"{sum(row[name] for row in rows):,}" for name in COUNTED),
        )
        for about, rows in kinds.items()
    ]
    return markdown(("fault", *COUNTED.values()), lines)


COUNTED = {
    "trials": "trials",
    "lost": "lost",
    "loaded_corrupt": "loaded though corrupt",
    "untyped": "error without a message",
    "code_run": "code run",
}

README, DOCS = ROOT / "README.md", ROOT / "docs"
TABLES: dict[str, Callable[[], str]] = {
    "ablation": ablation,
    "acting": acting,
    "claims": make_results.claims,
    "faults": faults,
    "figures": make_results.figures,
    "gaps": make_results.gaps,
    "learning": learning,
    "main figures": make_results.main_figures,
    "rounds": rounds,
    "rules": make_results.rules,
    "steps": steps,
    "trained": trained,
}
PAGES = {
    README: ("main figures", "claims", "learning", "trained", "faults"),
    DOCS / "fast.md": ("ablation",),
    DOCS / "other-worlds.md": ("trained", "steps"),
    DOCS / "scale.md": ("acting", "rounds"),
    DOCS / "results.md": ("claims", "rules", "gaps", "figures"),
}
"""Which tables each page has."""


def page(path: Path) -> str:
    """A page with its tables as the results are now."""
    text = path.read_text(encoding="utf-8")
    for name in PAGES[path]:
        text = filled(text, name, TABLES[name]())
    return text


def filled(page: str, name: str, table: str) -> str:
    """A page with a table in its place."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SelectError(f"a page has no place {begin.strip()} … {end.strip()}")
    return f"{before}{begin}\n{table}\n{end}{after}"


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _mean(rows: Sequence[Row]) -> float:
    return sum(float(row["mean_reward"]) for row in rows) / len(rows)


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(page(each), encoding="utf-8")
