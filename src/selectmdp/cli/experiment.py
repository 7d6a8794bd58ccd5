"""Commands that repeat the paper's experiments: `reproduce`."""

from pathlib import Path
from typing import Annotated, Literal

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
        console.out.print(
            f"{told['runs']} runs, {told['run_now']} of them made now: "
            f"selectmdp report {folder} shows them",
            soft_wrap=True,
        )
