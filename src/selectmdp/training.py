"""`train`: from nothing to a trained policy with curves, a table's numbers and checkpoints."""

import re
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from selectmdp import pace, runs, tasks, worlds
from selectmdp.config import TrainConfig, differences, plain, whole_chunks
from selectmdp.learners.presets import preset as named
from selectmdp.results import TrainResult
from selectmdp.settings import with_changes
from selectmdp.spec import SelectError, Spec, check_count
from selectmdp.trainer import Trainer

DEFAULTS: dict[str, Any] = {
    "algorithm": "isq-u",
    "preset": "fast",
    "steps": 100_000,
    "seed": 0,
    "evaluations": 20,
    "episodes": 20,
}


def train(
    task: Any,
    *,
    algorithm: str | None = None,
    preset: str | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    evaluations: int | None = None,
    episodes: int | None = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> TrainResult:
    """Train an algorithm on a task: a world's name with its options, a Gymnasium id, or a world.

    `minutes` instead of `steps` fixes the steps once, by the speed of the first seconds. With
    `resume` the run in `out` goes on; what is not given then is as it was, and a task of None
    is the run's own. Ctrl-C saves, and raises `Stopped` with how to go on.
    """
    began = time.monotonic()
    asked = {
        "algorithm": algorithm,
        "preset": preset,
        "steps": steps,
        "minutes": minutes,
        "seed": seed,
        "evaluations": evaluations,
        "episodes": episodes,
    }
    changes = {} if settings is None else settings
    if not isinstance(changes, Mapping):
        raise SelectError(f"settings={changes!r}: give a dict of names and values")
    given = {name: value for name, value in options.items() if value is not None}
    if resume:
        if out is None or not Path(out).is_dir():
            raise SelectError(f"out={out}: there is no run to resume; give the folder of one")
        with runs.alone_in(Path(out)):
            return _resumed(Path(out), task, asked, changes, given).go()
    if task is None:
        raise SelectError(f"which task? One of {', '.join(tasks.names())}, or a Gymnasium id")
    world = worlds.world(task, given)
    told = {name: value for name, value in asked.items() if value is not None}
    config = TrainConfig(**{**DEFAULTS, **told}, task=world.name, settings=changes, options=given)
    if steps is not None and minutes is not None:
        raise SelectError(f"steps={steps} and minutes={minutes}: give one of them")
    runs.learner_of(config, world.env)  # refuses what the task cannot serve, before a folder
    folder = _unused(config) if out is None else Path(out)
    made = runs.claim(folder)
    with runs.alone_in(folder):
        if minutes is not None:
            try:
                config = replace(config, steps=pace.steps_in(config, world))
            except BaseException:
                if made:
                    folder.rmdir()
                raise
        runs.create(folder, config, world.env.spec)
        return Trainer(folder, config, world, began).go()


def _resumed(
    folder: Path,
    task: Any,
    asked: Mapping[str, Any],
    changes: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Trainer:
    """The run in a folder, if what is asked for beside it is as it was."""
    config, spec = runs.config_of(folder)
    if task is None and not worlds.has_name(config.task):
        raise SelectError(
            f"{folder} is a run on {config.task!r}, which no name stands for here: give the world "
            "again, train(world, out=…, resume=True)"
        )
    if task is None or isinstance(task, str):
        world, name = worlds.world(config.task, config.options), task
    else:
        made = isinstance(getattr(task, "spec", None), Spec)  # its options are in it
        world = worlds.world(task, {} if made else config.options)
        name = world.name
    if asked["steps"] is not None:
        whole = whole_chunks(check_count("steps", asked["steps"]), config.chunk)
        asked = {**asked, "steps": whole}
    told = differences(asdict(config), {**asked, "task": name})
    changed = with_changes(named(config.preset).settings, {**config.settings, **changes})
    told += differences(asdict(config.full_settings), asdict(changed))
    in_force = {name: getattr(world.env, name, "its default") for name in options}
    wanted = {name: plain(name, value) for name, value in options.items()}
    told += differences({**in_force, **config.options}, wanted)
    told += differences(asdict(spec), asdict(world.env.spec))
    if told:
        raise SelectError(
            f"{folder} cannot be resumed with another config: {'; '.join(told)}. "
            "Leave these out, or train anew into another --out"
        )
    return Trainer(folder, config, world)


def _unused(config: TrainConfig) -> Path:
    """A folder's name that no run has yet."""
    task = re.sub(r"[^\w.-]+", "-", config.task)[:80].strip("-")
    stem = f"{task}-{config.algorithm}-seed{config.seed}"
    for number in range(1, 100_000):
        folder = Path("runs") / (stem if number == 1 else f"{stem}-{number}")
        if not folder.exists():
            return folder
    raise SelectError(f"runs/{stem} and all names like it are taken: choose one with --out")
