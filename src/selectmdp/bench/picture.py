"""A picture of `bench learning`: reward against minutes, with the published levels as lines."""

import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from selectmdp.curves import CURVE, FAINT, GRID, INK, REFERENCE_COLORS
from selectmdp.files import write_whole

COLUMNS = 3
PANEL = 3.3, 2.6
"""Inches of a panel."""
PUBLISHED = "#5b8c3e"


def save_minutes(path: Path, told: Sequence[dict[str, Any]]) -> None:
    """One panel for each task, a line for each seed."""
    rows = math.ceil(len(told) / COLUMNS)
    columns = min(len(told), COLUMNS)
    figure = Figure((PANEL[0] * columns, PANEL[1] * rows), dpi=120, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    for place, each in enumerate(told):
        _panel(figure.add_subplot(rows, columns, place + 1), each)
    figure.tight_layout()
    file = BytesIO()
    canvas.print_png(file)  # type: ignore[no-untyped-call]
    write_whole(path, file.getvalue())


def _panel(axes: Axes, told: dict[str, Any]) -> None:
    last = max(row["minutes"] for row in told["rows"])
    for row in told["rows"]:
        minutes, _, rewards = zip(*row["curve"], strict=True)
        axes.plot(minutes, rewards, color=CURVE, linewidth=1.3, alpha=0.8)
    greedy = told["rows"][0]["references"].get("greedy")
    levels = sorted(told["published"].items(), key=lambda pair: pair[1])
    for _, level in levels[:-1]:
        axes.axhline(level, color=PUBLISHED, linewidth=0.7, linestyle=(0, (1, 3)))
    lines = [(f"published {name}", level, PUBLISHED) for name, level in levels[-1:]]
    lines += [] if greedy is None else [("greedy", greedy, REFERENCE_COLORS["greedy"])]
    for name, height, color in lines:
        axes.axhline(height, color=color, linewidth=1.1, linestyle=(0, (5, 3)))
        axes.annotate(
            name,
            (last, height),
            textcoords="offset points",
            xytext=(0, 2),
            ha="right",
            color=color,
            fontsize=7,
        )
    axes.set_title(
        f"{told['name']}, {told['minutes']:g} minutes", fontsize=9, color=INK, loc="left"
    )
    most = max(row["cores"] for row in told["rows"])
    counts = (most, "core"), (len(told["rows"]), "seed")
    said = ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in counts)
    said += f"; {told['rows'][0]['curve_of']}"
    axes.set_xlabel(f"minutes\n{said}", fontsize=6.5, color=FAINT)
    axes.set_xlim(0, last)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.tick_params(length=0, labelsize=7, labelcolor=FAINT)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
