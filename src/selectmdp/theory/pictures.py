"""Pictures of theorems 1 and 2, drawn from what their checks found."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from selectmdp.curves import CURVE, FAINT, GRID, INK, REFERENCE_COLORS
from selectmdp.theory.plan import Verdict

SIZE = 9.0, 3.7
"""Inches of a picture of two panels."""
DENSE, DOWN = "#c8641e", "#a02c2c"
TARGET_COLORS = (CURVE, "#5b8c3e", "#8358a8", "#a0522d", DOWN)
PLAIN = FuncFormatter(lambda number, _: f"{number:g}")
FLOOR = 1e-16
"""A slope of exactly 0 has no place on a logarithmic scale."""


def theorem_1(verdict: Verdict) -> bytes:
    """Slopes of both losses along one training; the loss around every point it arrived at."""
    figure, (left, right) = _panels()
    points = verdict.details["points"]
    _frame(left, "one training: length of the slope", "step")
    _frame(right, "from each ω(θ*): gain of L_Ω along a direction", "step along the direction")
    if points:
        shown = min(points, key=lambda point: point["dense_curvature"])
        steps, shared, dense = zip(*shown["path"], strict=True)
        left.semilogy(steps, [max(v, FLOOR) for v in shared], color=CURVE, linewidth=1.6)
        left.semilogy(steps, [max(v, FLOOR) for v in dense], color=DENSE, linestyle=(0, (4, 2)))
        _say(left, 0.97, 0.93, "|∇L_Θ|, shared", CURVE)
        _say(left, 0.97, 0.85, "|∇L_Ω| at ω(θ), dense", DENSE)
    for point in points:
        color = DOWN if point["descends"] else FAINT
        for name, style, alpha in (("random_profile", ":", 0.5), ("profile", "-", 0.9)):
            steps, gains = zip(*point[name], strict=True)
            right.plot(steps, gains, color=color, linestyle=style, linewidth=1.2, alpha=alpha)
    right.set_yscale("symlog", linthresh=1e-4)
    right.set_ylim(top=30.0)  # room for words
    saddles, all_points = verdict.details["saddles"], len(points)
    _say(
        right, 0.5, 0.93, f"lowest curvature: descends in {saddles} of {all_points}", DOWN, "center"
    )
    _say(right, 0.5, 0.85, "dotted: a random direction", FAINT, "center")
    return _png(figure)


def theorem_2(verdict: Verdict) -> bytes:
    """Largest error against width: fits and control, and the proof's own weights."""
    figure, (left, right) = _panels()
    fits, control = verdict.details["fits"], verdict.details["control"]
    _frame(left, "networks fitted: largest error / range", "channels")
    for color, name in zip(TARGET_COLORS, dict.fromkeys(f["target"] for f in fits), strict=False):
        rows = [fit for fit in fits if fit["target"] == name]
        _line(left, rows, "error", color)
        left.plot([], [], color=color, label=name)
    rows = [
        {"width": width, "error": error}
        for width, error in zip(control["widths"], control["errors"], strict=True)
    ]
    _line(left, rows, "error", REFERENCE_COLORS["random"])
    left.plot([], [], color=REFERENCE_COLORS["random"], label="by place (control)")
    left.axhline(control["floor"], color=FAINT, linestyle=":", linewidth=1)
    left.axhline(verdict.allowed, color=DOWN, linestyle=":", linewidth=1)
    left.legend(fontsize=7, frameon=False, loc="lower left")
    _frame(right, "the proof's own weights: largest error / range", "units in the widest layer")
    built = verdict.details["construction"]["rows"]
    _line(right, built, "error", CURVE)
    _line(right, built, "bound", FAINT, ":")
    _say(right, 0.97, 0.93, "measured", CURVE)
    _say(right, 0.97, 0.85, "bound", FAINT)
    return _png(figure)


PICTURES: Mapping[str, Any] = {"theorem_1": theorem_1, "theorem_2": theorem_2}
"""From a check's name to what draws it, as a PNG."""


def _line(axes: Axes, rows: list[dict[str, Any]], name: str, color: str, style: str = "-") -> None:
    widths, heights = [row["width"] for row in rows], [row[name] for row in rows]
    marker = "o" if style == "-" else None
    axes.loglog(
        widths, heights, color=color, linestyle=style, marker=marker, markersize=3.5, linewidth=1.4
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(PLAIN)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(PLAIN)
    axes.yaxis.set_minor_locator(NullLocator())


def _panels() -> tuple[Figure, tuple[Axes, Axes]]:
    figure = Figure(SIZE, dpi=120, facecolor="white")
    FigureCanvasAgg(figure)
    return figure, (figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2))


def _frame(axes: Axes, title: str, across: str) -> None:
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    axes.set_xlabel(across, fontsize=8, color=FAINT)
    axes.tick_params(length=0, labelsize=8, labelcolor=FAINT)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")


def _say(axes: Axes, x: float, y: float, text: str, color: str, ha: str = "right") -> None:
    axes.text(x, y, text, color=color, fontsize=8, ha=ha, transform=axes.transAxes)


def _png(figure: Figure) -> bytes:
    figure.tight_layout()
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()
