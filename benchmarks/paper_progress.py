"""How far the runs of `paper.toml` are: writes `progress.csv`, which `selectmdp report` shows.

python benchmarks/paper_progress.py [results/paper]
"""

import sys
from pathlib import Path

from selectmdp import runs
from selectmdp.experiments.jobs import Job
from selectmdp.experiments.reproduce import RUNS
from selectmdp.experiments.store import CURVES, Row, Store, curve, write
from selectmdp.spec import SelectError


def progress(folder: Path) -> list[Row]:
    """The curves of runs that have begun and are not among the finals."""
    begun = sorted(path.parent for path in (folder / RUNS).glob("*/metrics.csv"))
    if not begun:
        raise SelectError(f"{folder / RUNS} holds no runs, so nothing is to be written")
    done = {row["run"] for row in Store(folder, "sweep").finals()}
    rows: list[Row] = []
    for run in begun:
        if run.name not in done:
            config, spec = runs.config_of(run)
            rows += curve(Job(run.name, config), run, spec.num_items)
    return rows


def main(folder: Path) -> None:
    """Write them beside the finals, and say how far each is."""
    rows = progress(folder)
    write(folder / "progress.csv", CURVES, rows)
    for run, step in {row["run"]: int(row["step"]) for row in rows}.items():
        print(f"{run}: {step:,} steps")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/paper"))
    except SelectError as error:
        sys.exit(str(error))
