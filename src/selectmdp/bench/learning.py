"""Reward against wall-clock on the paper's larger tasks, beside the levels that it published.

Each seed is a training of its own in a process of its own, by the command that anybody would type;
one that was broken off goes on, one that is done is read again.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from selectmdp.config import check_minutes
from selectmdp.files import read_json, write_whole
from selectmdp.files import told as told_of
from selectmdp.runlog import read_rows
from selectmdp.runs import is_run
from selectmdp.settings import FastSettings
from selectmdp.spec import SelectError, check_seed
from selectmdp.trainer import GLANCE_EPISODES, GLANCE_STEPS

RUNS = Path("runs") / "learning"


class Task(NamedTuple):
    """A task of the paper."""

    task: str
    options: Mapping[str, Any]
    published: Mapping[str, float]
    """What each ISQ earned after 5 (circle) or 10 million steps (figures 4 and 5)."""
    minutes: float
    """In which the best of these is to be reached on two cores."""


def _circle(num_items: int, published: Mapping[str, float], minutes: float, rules: str) -> Task:
    options = {"num_items": num_items, "num_select": 6, "dynamics": rules}
    return Task("circle", options, published, minutes)


def _hunt(num_select: int, published: Mapping[str, float], minutes: float) -> Task:
    return Task("predator-prey", {"num_select": num_select}, published, minutes)


TASKS: dict[str, Task] = {
    "circle-50": _circle(50, {"isq-i": 0.76, "isq-p": 0.82, "isq-u": 0.83}, 12, "figures"),
    "circle-200": _circle(200, {"isq-i": 0.83, "isq-p": 0.86, "isq-u": 0.87}, 30, "figures"),
    "predator-prey-4": _hunt(4, {"isq-u": 0.38, "isq-i": 0.43, "isq-p": 0.46}, 15),
    "predator-prey-7": _hunt(7, {"isq-u": 0.48, "isq-i": 0.62, "isq-p": 0.74}, 20),
    "predator-prey-10": _hunt(10, {"isq-u": 0.50, "isq-i": 0.70, "isq-p": 0.75}, 30),
    "circle-50-text": _circle(50, {}, 12, "text"),
}


def measure(
    name: str, seeds: Sequence[int], minutes: float | None, out: Path | None
) -> dict[str, Any]:
    """Train each seed for some minutes; what came of it, into `out` as JSON and picture too.

    What `out` holds already of other seeds, trained for as long, stays beside it.
    """
    if name not in TASKS:
        raise SelectError(f"task {name!r} is none of {', '.join(TASKS)}")
    if not seeds:
        raise SelectError("seeds: give at least one")
    each = check_minutes(TASKS[name].minutes if minutes is None else minutes)
    kept = {} if out is None else _kept(out)
    rows = [_trained(name, check_seed(seed), each) for seed in seeds]
    result = {"name": name, **TASKS[name]._asdict(), "minutes": each, "rows": rows}
    if out is not None:
        _keep(result, kept, out)
    return result


Kept = dict[tuple[str, float], dict[str, Any]]
"""Results by task and minutes."""
DRAWN = ("seed", "curve", "curve_of", "references", "minutes", "cores")
"""What the picture needs of each seed."""


def _kept(out: Path) -> Kept:
    """What a folder holds already; it is made where it is missing."""
    with told_of(out):
        out.mkdir(parents=True, exist_ok=True)
        paths = sorted(out.glob("*.json"))
    kept: Kept = {}
    for path in paths:
        try:
            each = read_json(path)
            kept[each["name"], each["minutes"]] = each
            if each["name"] not in TASKS or path != _file(out, each):
                raise KeyError("its name")
            for name in DRAWN:
                [row[name] for row in each["rows"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SelectError(
                f"{path} is no result of this bench ({error}): choose another --out"
            ) from None
    return kept


def _keep(result: dict[str, Any], kept: Kept, out: Path) -> None:
    from selectmdp.bench.picture import save_minutes

    place = result["name"], result["minutes"]
    seeds = [row["seed"] for row in result["rows"]]
    if place in kept:
        result["rows"] += [row for row in kept[place]["rows"] if row["seed"] not in seeds]
        result["rows"].sort(key=lambda row: row["seed"])
    kept[place] = result
    content = json.dumps(result, indent=1, allow_nan=False) + "\n"
    write_whole(_file(out, result), content.encode())
    order = list(TASKS)
    places = sorted(kept, key=lambda place: (order.index(place[0]), place[1]))
    save_minutes(out / "learning.png", [kept[place] for place in places])


def command(name: str, seed: int, minutes: float, folder: Path) -> list[str]:
    """What a person would type after `selectmdp`."""
    task = TASKS[name]
    options = [
        part
        for option, value in task.options.items()
        for part in (f"--{option.replace('_', '-')}", str(value))
    ]
    given = ["--minutes", f"{minutes:g}", "--seed", str(seed), "--out", str(folder), "--json"]
    return ["train", task.task, *options, *given]


def _file(out: Path, result: Mapping[str, Any]) -> Path:
    return out / f"{result['name']}-{result['minutes']:g}min.json"


def _trained(name: str, seed: int, minutes: float) -> dict[str, Any]:
    folder = RUNS / f"{name}-{minutes:g}min-seed{seed}"
    typed = command(name, seed, minutes, folder)
    if not (folder / "result.json").is_file():
        asked = ["train", "--out", str(folder), "--resume", "--json"] if is_run(folder) else typed
        code = _run(asked)
        if code:
            raise SelectError(
                f"`selectmdp {' '.join(asked)}` ended with code {code}: its message is above; the "
                "same bench goes on from there"
            )
    return {"seed": seed, "command": "selectmdp " + " ".join(typed), **told(folder, name)}


def _run(asked: list[str]) -> int:
    """The code that a command of ours ends with; Ctrl-C reaches it too, and it saves."""
    command = [sys.executable, "-m", "selectmdp", *asked]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise


def told(folder: Path, name: str) -> dict[str, Any]:
    """A finished run, in numbers."""
    result = json.loads((folder / "result.json").read_bytes())
    settings = json.loads((folder / "config.json").read_bytes())["config"]["all_settings"]
    if settings != json.loads(json.dumps(asdict(FastSettings()))):
        raise SelectError(f"{folder} was trained by other defaults: remove it, then measure again")
    rows = read_rows(folder / "metrics.csv")
    curve = [
        [round(row["seconds"] / 60, 3), int(row["step"]), round(row["eval_reward"], 4)]
        for row in rows
        if "eval_reward" in row
    ]
    speed = statistics.median(row["steps_per_second"] for row in rows if "steps_per_second" in row)
    return {
        "steps": result["steps"],
        "minutes": result["seconds"] / 60,
        "mean_reward": result["mean_reward"],
        "ci95": result["ci95"],
        "references": {key: each["mean_reward"] for key, each in result["references"].items()},
        "steps_per_second": speed,
        "updates_per_second": speed * settings["epochs"] / settings["minibatch"],
        "cores": result["cores"],
        "megabytes": result["megabytes"],
        "minutes_to": {
            key: minutes_to(level, curve) if result["mean_reward"] >= level else None
            for key, level in TASKS[name].published.items()
        },
        "curve_of": f"points of {GLANCE_EPISODES} episodes, {GLANCE_STEPS} steps of each at most",
        "curve": curve,
    }


def minutes_to(level: float, curve: list[list[float]]) -> float | None:
    """When a curve of (minutes, step, reward) came to a level and stayed there; None: never."""
    since = None
    for minutes, _, reward in curve:
        since = (minutes if since is None else since) if reward >= level else None
    return since
