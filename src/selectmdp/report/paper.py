"""The paper's own preset in the world of figure 4b, as data of the page: ISQ, as far as it got.

Its runs take days. One that is not at its end has a curve and no final reward.
"""

import shlex
from pathlib import Path
from typing import Any

from selectmdp.experiments.figures import FIGURES, ISQ
from selectmdp.report.drawn import curve_of, references_of, student, unit_of
from selectmdp.report.results import Results, published
from selectmdp.report.rows import PAPERS, PAPERS_N, worlds


def paper_of(results: Results) -> dict[str, Any] | None:
    """All that the page shows of it; None: no run has begun."""
    if results.paper is None:
        return None
    figure, out = FIGURES[PAPERS], results.paper.folder
    world = {
        "N": int(PAPERS_N),
        "references": references_of(results.paper.finals[PAPERS] or results.finals[PAPERS]),
        "series": [_series(results.paper, algorithm) for algorithm in ISQ],
    }
    return {
        "name": f"{PAPERS} by the paper’s own preset",
        "title": figure.title,
        "unit": unit_of(figure),
        "sizes": worlds(PAPERS)[PAPERS_N, ISQ[0]],
        "published_steps": figure.full,
        "world": world,
        "command": sweep_command(out),
        "progress": f"python benchmarks/paper_progress.py {shlex.quote(str(out))}",
    }


def sweep_command(folder: Path) -> str:
    """What to type to make its runs, which go on where they stopped."""
    return f"selectmdp sweep benchmarks/paper.toml --out {shlex.quote(str(folder))}"


def _series(paper: Results, algorithm: str) -> dict[str, Any]:
    rows = [row for row in paper.curves[PAPERS] if row["algorithm"] == algorithm]
    scores = paper.scores(PAPERS, algorithm)
    return {
        "algorithm": algorithm,
        "published": published()[PAPERS, PAPERS_N, algorithm],
        "mean": student(scores) if scores else None,
        "curve": curve_of([paper.curve(PAPERS, run) for run in {row["run"] for row in rows}]),
        "steps": max((int(row["step"]) for row in rows), default=0),
        "hours": max((float(row["seconds"] or 0) for row in rows), default=0.0) / 3600,
    }
