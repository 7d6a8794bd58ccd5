"""Commands that learn: `train`, the `presets` it knows, how many `parameters` an algorithm has."""

from dataclasses import asdict, fields
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import tyro

from selectmdp.cli.options import DEFAULTS, Flag, World
from selectmdp.cli.play import next_command, tell, train_table


def train(
    task: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[TASK]")] = None,
    /,
    world: World = DEFAULTS,
    algorithm: str | None = None,
    preset: str | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    out: Path | None = None,
    resume: Flag = False,
    evaluations: int | None = None,
    episodes: int | None = None,
    set: Annotated[tuple[tuple[str, ...], ...], tyro.conf.UseAppendAction] = (),
    workers: int | None = None,
    timeout: float = 60.0,
    json: Flag = False,
) -> None:
    """Train a policy; Ctrl-C saves and says how to go on.

    Args:
        task: circle, predator-prey, league; module:factory of a world of your own, which is found
            from the current directory too; or the id of a Gymnasium environment with our spaces.
        world: sizes and rules.
        algorithm: isq-i, isq-u, isq-p, isq-i-1, vanilla, sorting, myopic, eq, eq-local, rsq, idqn
            or idqn-own; isq-u if not given.
        preset: how to learn; `selectmdp presets` tells what there is. fast if not given.
        steps: environment steps, rounded up to whole chunks; 100,000 if not given.
        minutes: instead of steps: as many as fit, fixed once by the speed of the first seconds.
        seed: of everything that is random in the training; 0 if not given.
        out: folder of the run, a new one; under runs/ if not given.
        resume: go on with the run in --out, from its newest checkpoint; what is not given is as it
            was; a world of your own must be named again.
        evaluations: how often the policy is evaluated on the way; 20 if not given.
        episodes: of the evaluation at the end; 20 if not given.
        set: settings of the preset to change, as name=value; `selectmdp presets` lists them.
        workers: processes for a world that is not in JAX; one a core if not given, 0: none beside
            this one. No result depends on it.
        timeout: seconds that making, resetting or stepping one environment may take in a worker.
        json: print one object instead of a table.
    """
    from selectmdp import console, processes, runs, settings
    from selectmdp.learners.presets import preset as named
    from selectmdp.training import DEFAULTS as USUAL
    from selectmdp.training import train as run

    processes.join()
    way = preset or USUAL["preset"]
    if resume and out is not None and preset is None and set:
        folder = out
        way = processes.told(lambda: runs.config_of(folder)[0].preset)
    result = run(
        task,
        algorithm=algorithm,
        preset=preset,
        steps=steps,
        minutes=minutes,
        seed=seed,
        out=out,
        resume=resume,
        evaluations=evaluations,
        episodes=episodes,
        settings=settings.parsed(named(way).settings, tuple(chain.from_iterable(set))),
        workers=workers,
        timeout=timeout,
        **asdict(world),
    )
    if not processes.is_first():
        return
    if json:
        console.as_json(result.to_json())
        return
    train_table(result)
    tell(f"curve: {result.folder / 'curve.png'}", f"next: {next_command(result)}")


def presets(json: Flag = False) -> None:
    """The presets of `train`, with every setting, its default and what it means.

    Args:
        json: print one object instead of tables.
    """
    from selectmdp import console
    from selectmdp.learners.presets import PRESETS

    told: dict[str, Any] = {
        name: {
            "about": each.about,
            "settings": {
                part.name: {"default": part.default, "about": part.metadata["about"]}
                for part in fields(each.settings)
            },
        }
        for name, each in PRESETS.items()
    }
    if json:
        console.as_json(told)
        return
    for name, each in told.items():
        rows = [
            (setting, str(part["default"]), part["about"])
            for setting, part in each["settings"].items()
        ]
        columns = ("setting", "default", "what it is")
        console.table(f"{name}: {each['about']}", columns, rows, wrap=True)


def parameters(
    task: Annotated[str, tyro.conf.Positional] = "circle",
    /,
    num_items: tuple[int, ...] = (25, 50, 100, 200),
    num_select: tuple[int, ...] = (3, 6, 12),
    json: Flag = False,
) -> None:
    """How many numbers each way to share has to learn, over N and K.

    Args:
        task: circle or predator-prey.
        num_items: values of N.
        num_select: values of K.
        json: print one object instead of a table.
    """
    from selectmdp import console
    from selectmdp.theory.counts import GROWTH, parameter_rows

    rows = parameter_rows(task, num_items, num_select, tuple(GROWTH))
    if json:
        console.as_json({"task": task, "growth": dict(GROWTH), "rows": rows})
        return
    columns = [f"{name}, {growth}" for name, growth in GROWTH.items()]
    cells: dict[tuple[int, int], list[str]] = {}
    for row in rows:
        cells.setdefault((row["N"], row["K"]), []).append(f"{row['parameters']:,}")
    console.table(
        f"parameters to learn on {task}",
        ("N, K", *columns),
        [(f"{items}, {picks}", *told) for (items, picks), told in cells.items()],
    )
