"""A picture of a search: the reward of each trial, and of each value that was tried."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from selectmdp.curves import CURVE, FAINT, GRID, INK
from selectmdp.files import write_whole


def save_search(path: Path, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """The trials in their order with the best so far, then a panel for each name."""
    figure = Figure((3.2 * (1 + len(names)), 2.8), dpi=120, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    rewards = [row["reward"] for row in rows]
    first = figure.add_subplot(1, 1 + len(names), 1)
    first.plot(range(1, len(rows) + 1), rewards, "o", color=CURVE, alpha=0.6)
    first.plot(range(1, len(rows) + 1), list(accumulate(rewards, max)), color=INK)
    first.set_title("trials, and the best so far", fontsize=9, loc="left")
    for place, name in enumerate(names, start=2):
        axes = figure.add_subplot(1, 1 + len(names), place)
        values = [row[name] for row in rows]
        numbers = all(isinstance(value, int | float) for value in values)
        axes.plot(
            values if numbers else [str(value) for value in values], rewards, "o", color=CURVE
        )
        if numbers and min(values) > 0 and max(values) / min(values) > 20:
            axes.set_xscale("log")
        axes.set_title(name, fontsize=9, loc="left", parse_math=False)
    for axes in figure.axes:
        axes.tick_params(length=0, labelsize=7, labelcolor=FAINT)
        axes.grid(color=GRID, linewidth=0.7)
        axes.set_axisbelow(True)
    figure.tight_layout()
    file = BytesIO()
    canvas.print_png(file)  # type: ignore[no-untyped-call]
    write_whole(path, file.getvalue())
