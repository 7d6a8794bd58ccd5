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
    budget: Literal["smoke", "standard", "full"] | None = None,
    preset: str | None = None,
    out: Path | None = None,
    workers: int | None = None,
    json: Flag = False,
) -> None:
    """Make many runs: all combinations of a TOML file, or those of a figure of the paper.

    A file with a table [search] is searched with Optuna instead (pip install "selectmdp[sweep]").
    Ctrl-C saves; the same command goes on, and no finished run is lost or made again.

    Args:
        target: a TOML file with the names of `selectmdp train`, lists being swept; or a figure as
            `reproduce` has it.
        engine: local: processes of this machine. ray: tasks of a Ray cluster, or of one that is
            started here (pip install "selectmdp[ray]").
        budget: of a figure: smoke, standard or full; standard if not given.
        preset: of a figure: fast or paper; fast if not given.
        out: folder of the CSV files, and of the runs in runs/; sweeps/NAME if not given, of a
            figure sweeps/NAME-PRESET-BUDGET.
        workers: runs side by side; one for each core if not given.
        json: print one object at the end.
    """
    from selectmdp import console
    from selectmdp.experiments.engines import ENGINES
    from selectmdp.experiments.figures import WHAT
    from selectmdp.experiments.live import LiveTable
    from selectmdp.experiments.reproduce import sweep as run
    from selectmdp.experiments.sweeps import searches
    from selectmdp.learners.presets import preset as named
    from selectmdp.spec import SelectError

    name = Path(target).stem
    if target in (*WHAT, "all"):
        budget, preset = budget or "standard", preset or "fast"
        named(preset)
        name = f"{target}-{preset}-{budget}"
    elif budget or preset:
        raise SelectError(
            f"{'budget' if budget else 'preset'}={budget or preset}: is for figures of the paper; "
            f"{target} says its own steps and preset"
        )
    folder = Path("sweeps") / name if out is None else out
    if searches(target):
        told = _searched(target, folder, workers, engine)
        console.as_json(told) if json else _tell_search(told)
        return
    told = run(
        target,
        budget=budget or "standard",
        preset=preset or "fast",
        out=folder,
        workers=workers,
        show=LiveTable(f"sweep {target}"),
        engine=ENGINES[engine](),
    )
    if json:
        console.as_json(told)
    else:
        _tell(told, f"their rows are in {folder}")


def _searched(target: str, folder: Path, workers: int | None, engine: str) -> dict[str, Any]:
    from selectmdp.experiments.engines import ENGINES
    from selectmdp.experiments.live import LiveTable
    from selectmdp.spec import SelectError

    try:
        from selectmdp.experiments.search import search
    except ImportError as error:
        raise SelectError(f'Optuna is not here ({error}): pip install "selectmdp[sweep]"') from None
    with LiveTable(f"search {target}") as shown:
        return search(
            Path(target), out=folder, workers=workers, engine=ENGINES[engine](), show=shown
        )


def _tell_search(told: dict[str, Any]) -> None:
    from selectmdp import console

    names = [name for name in told["best"] if name != "reward"]
    count = len(told["failed"])
    failed = f", {count} more failed (search.json tells why)" if count else ""
    best = sorted(told["trials"], key=lambda row: -row["reward"])[:10]
    console.table(
        f"the best of {len(told['trials'])} trials{failed}; see {told['out']}/search.png",
        ("trial", "reward", *names),
        [
            (str(row["number"]), f"{row['reward']:.4f}", *(f"{row[name]}" for name in names))
            for row in best
        ],
    )


def _tell(told: dict[str, Any], where: str) -> None:
    from selectmdp import console

    now = f"{told['runs']} runs, {told['run_now']} of them made now"
    console.out.print(f"{now}: {where}", soft_wrap=True)
