"""Commands that make many runs: `reproduce` the paper's, `sweep` one's own."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from selectmdp.cli.options import Flag


def reproduce(
    what: Annotated[str, tyro.conf.Positional],
    /,
    budget: Literal["smoke", "standard", "full"] = "standard",
    preset: str = "fast",
    out: Path | None = None,
    workers: int | None = None,
    json: Flag = False,
) -> None:
    """Run the paper's experiments, as far as they are not done; `selectmdp report` shows them.

    Ctrl-C saves; the same command goes on, and no finished run is lost or made again.

    Args:
        what: 4a, 4b, 4c, 5a, 5b, 5c, generalization, cost, or all.
        budget: smoke: one seed, seconds a run. standard: 4 seeds, minutes a run. full: the paper's
            steps.
        preset: how to learn, fast or paper; baselines learn as ISQ does.
        out: folder of the CSV files, and of the runs in runs/; reproduction/PRESET-BUDGET if not
            given.
        workers: runs side by side; one for each core if not given.
        json: print one object at the end.
    """
    from selectmdp import console
    from selectmdp.experiments.live import LiveTable
    from selectmdp.experiments.reproduce import reproduce as run
    from selectmdp.learners.presets import preset as named

    named(preset)
    folder = Path("reproduction") / f"{preset}-{budget}" if out is None else out
    title = f"reproduce {what}, {budget} budget, {preset} preset"
    told = run(
        what,
        budget=budget,
        preset=preset,
        out=folder,
        workers=workers,
        show=LiveTable(title),
    )
    if json:
        console.as_json(told)
    else:
        _tell(told, f"selectmdp report {folder} shows them")


def sweep(
    target: Annotated[str, tyro.conf.Positional],
    /,
    engine: Literal["local", "ray"] = "local",
    budget: Literal["smoke", "standard", "full"] = "standard",
    preset: str = "fast",
    out: Path | None = None,
    workers: int | None = None,
    json: Flag = False,
) -> None:
    """Make many runs: all combinations of a TOML file, or those of a figure of the paper.

    Ctrl-C saves; the same command goes on, and no finished run is lost or made again.

    Args:
        target: a TOML file with the names of `selectmdp train`, lists being swept; or a figure as
            `reproduce` has it.
        engine: local: processes of this machine. ray: tasks of a Ray cluster, or of one that is
            started here (pip install "selectmdp[ray]").
        budget: of a figure: smoke, standard or full.
        preset: of a figure: fast or paper.
        out: folder of the CSV files, and of the runs in runs/; sweeps/NAME if not given.
        workers: runs side by side; one for each core if not given.
        json: print one object at the end.
    """
    from selectmdp import console
    from selectmdp.experiments.engines import ENGINES
    from selectmdp.experiments.live import LiveTable
    from selectmdp.experiments.reproduce import sweep as run

    folder = Path("sweeps") / Path(target).stem if out is None else out
    told = run(
        target,
        budget=budget,
        preset=preset,
        out=folder,
        workers=workers,
        show=LiveTable(f"sweep {target}"),
        engine=ENGINES[engine](),
    )
    if json:
        console.as_json(told)
    else:
        _tell(told, f"their rows are in {folder}")


def _tell(told: dict[str, Any], where: str) -> None:
    from selectmdp import console

    now = f"{told['runs']} runs, {told['run_now']} of them made now"
    console.out.print(f"{now}: {where}", soft_wrap=True)
