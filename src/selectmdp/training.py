"""`train`: from nothing to a trained policy with curves, a table's numbers and checkpoints."""

import re
import shlex
import shutil
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from selectmdp import pace, processes, runs, tasks, worlds
from selectmdp.config import TrainConfig, check_sizes, differences, plain, whole_chunks
from selectmdp.envs.base import is_jax, offers
from selectmdp.factories import is_factory
from selectmdp.learners.presets import check_suits
from selectmdp.learners.presets import preset as named
from selectmdp.results import TrainResult
from selectmdp.settings import Hosting, with_changes
from selectmdp.spec import SelectError, check_count
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
    workers: int | None = None,
    timeout: float = Hosting.timeout,
    **options: Any,
) -> TrainResult:
    """Train an algorithm on a task: a world's name with its options, `module:factory`, a class or a
    function that makes a world, a world, or a Gymnasium id.

    A world that is not in JAX runs in `workers` processes, one a core if None and 0 for none; there
    no call of it may take longer than `timeout` seconds. `minutes` instead of `steps` fixes the
    steps once, by the speed of the first seconds. With `resume` the run in `out` goes on; what is
    not given then is as it was, and a task of None is the run's own, if it is no code of yours.
    Ctrl-C saves, and raises `Stopped` with how to go on.
    """
    began = time.monotonic()
    processes.join()
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
    hosting = Hosting(workers, timeout)
    place = task if isinstance(task, str) else type(task).__name__
    named = {f"--set {name}": value for name, value in changes.items()}
    processes.agree({"task": place, "resume": resume, **asked, **named, **given})
    if resume:
        with ExitStack() as stack:
            folder = Path(processes.told(lambda: _entered(stack, out)))
            return _resumed(folder, task, asked, changes, given, hosting).go()
    if task is None:
        known = ", ".join(tasks.names())
        raise SelectError(f"which task? One of {known}, a Gymnasium id, or module:factory")
    world = worlds.world(task, given, hosting)
    told = {name: value for name, value in asked.items() if value is not None}
    usual = {**DEFAULTS, **told}
    suited = {**suits(world, usual["preset"]), **changes}
    config = TrainConfig(**usual, task=world.name, settings=suited, options=given)
    if steps is not None and minutes is not None:
        raise SelectError(f"steps={steps} and minutes={minutes}: give one of them")
    # Refuses what the task or the devices cannot serve, before a folder is made.
    check_sizes(config, world.env.spec)
    world.try_heuristic()
    devices = world.engine(runs.learner_of(config, world.env), config.seed).devices
    with ExitStack() as stack:
        name, made = processes.told(lambda: _claimed(stack, config, out))
        folder = Path(name)
        if minutes is not None:
            try:
                config = replace(config, steps=pace.steps_in(config, world))
            except BaseException:
                if made and processes.is_first():
                    shutil.rmtree(folder, ignore_errors=True)
                raise
        processes.told(lambda: runs.create(folder, config, world.env.spec, devices))
        return Trainer(folder, config, world, began).go()


def suits(world: worlds.World, preset: str) -> dict[str, Any]:
    """The settings that a world offers for a preset in place of the preset's own."""
    try:
        offered = check_suits(offers(world.env, "suits"))
    except SelectError as error:
        raise SelectError(f"{world.name} offers {error}") from None
    return dict(offered.get(preset, {}))


def _claimed(stack: ExitStack, config: TrainConfig, out: str | Path | None) -> tuple[str, bool]:
    """An empty folder that this process has to itself, and whether it had to be made."""
    folder = _unused(config) if out is None else Path(out)
    made = runs.make_folder(folder)
    stack.enter_context(runs.alone_in(folder))
    runs.check_empty(folder)
    return str(folder), made


def _entered(stack: ExitStack, out: str | Path | None) -> str:
    """The folder of a run, which this process now has to itself."""
    if out is None or not Path(out).is_dir():
        raise SelectError(f"out={out}: there is no run to resume; give the folder of one")
    stack.enter_context(runs.alone_in(Path(out)))
    runs.check_links(Path(out))
    return str(out)


def _resumed(
    folder: Path,
    task: Any,
    asked: Mapping[str, Any],
    changes: Mapping[str, Any],
    options: Mapping[str, Any],
    hosting: Hosting,
) -> Trainer:
    """The run in a folder, if what is asked for beside it is as it was."""
    config, spec = runs.config_of(folder, processes.told(lambda: runs.content_of(folder)))
    world = world_to_resume(folder, task, config, hosting)
    if asked["steps"] is not None:
        whole = whole_chunks(check_count("steps", asked["steps"]), config.chunk)
        asked = {**asked, "steps": whole}
    told = differences(asdict(config), {**asked, "task": world.name})
    if asked["preset"] in (None, config.preset):  # another preset has other settings
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
    world.try_heuristic()
    return Trainer(folder, config, world)


def world_to_resume(folder: Path, task: Any, config: TrainConfig, hosting: Hosting) -> worlds.World:
    """The world that a run goes on in; code of the user's own is run only if its name is given."""
    if task is None and not worlds.has_name(config.task):
        again = f"train({config.task!r}, out=…, resume=True)"
        if is_factory(config.task):
            typed = shlex.quote(config.task)
            again = f"selectmdp train {typed} --out {shlex.quote(str(folder))} --resume"
        raise SelectError(
            f"{folder} is a run on {config.task!r}, which no name stands for here, and no file may "
            f"name code to be run: give the world again, {again}"
        )
    if isinstance(task, str) and task != config.task:
        raise SelectError(
            f"{folder} cannot be resumed with another config: task={task} where the run has "
            f"{config.task}. Leave it out, or train anew into another --out"
        )
    made = is_jax(task)  # its options are in it
    return worlds.world(task or config.task, {} if made else config.options, hosting)


def _unused(config: TrainConfig) -> Path:
    """A folder's name that no run has yet."""
    task = re.sub(r"[^\w.-]+", "-", config.task)[:80].strip("-")
    stem = f"{task}-{config.algorithm}-seed{config.seed}"
    for number in range(1, 100_000):
        folder = Path("runs") / (stem if number == 1 else f"{stem}-{number}")
        if not folder.exists():
            return folder
    raise SelectError(f"runs/{stem} and all names like it are taken: choose one with --out")
