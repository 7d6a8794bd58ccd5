"""The learning curve (paper §5): evaluation reward over training steps, beside the references.

Each line is named where it ends, so that no box with names hides part of the picture.
"""

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from selectmdp.console import plus_minus
from selectmdp.files import write_whole

WIDTH, HEIGHT, DPI = 960, 600, 120
INK, FAINT, GRID = "#333333", "#777777", "#e6e6e6"
CURVE = "#1f6fb4"
REFERENCE_COLORS = {"random": "#8a8a8a", "greedy": "#c8641e"}
OTHER_COLORS = ("#5b8c3e", "#8358a8", "#a0522d")
LEFT, RIGHT, BOTTOM, TOP = 0.09, 0.80, 0.12, 0.84
"""Edges of the plot, as shares of the picture; names of lines stand to its right."""
LABEL_GAP = 0.1
"""Least distance of two names, as a share of the plot's height."""

Point = tuple[float, float, float]
"""Step, reward, half of the 95 % interval (0 where there is none)."""


def save_curve(
    path: Path,
    rows: Sequence[Mapping[str, float]],
    *,
    title: str,
    unit: str,
    references: Mapping[str, tuple[float, float | None]],
) -> None:
    """Write the curve as a PNG; `references` are names with a mean and half an interval."""
    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((LEFT, BOTTOM, RIGHT - LEFT, TOP - BOTTOM))
    points = _points(rows)
    frame(axes, points, references)
    labels = []
    others = iter(OTHER_COLORS * len(references))
    for name, (mean, half) in references.items():
        if math.isfinite(mean):
            color = REFERENCE_COLORS.get(name) or next(others)
            _reference(axes, mean, half, color)
            labels.append((mean, name, _value(mean, half), color))
    if points:
        _curve(axes, points)
        _, reward, half = points[-1]
        labels.append((reward, "trained", _value(reward, half or None), CURVE))
    else:
        nothing = axes.text(0.5, 0.5, "no evaluation yet", ha="center", transform=axes.transAxes)
        nothing.set(color=FAINT, bbox={"facecolor": "white", "edgecolor": "none"})
    name_lines(axes, labels)
    measure = "" if unit == "reward" else f" ({unit})"
    head(figure, title, f"reward of a step{measure}, mean ± 95 % interval")
    write_png(path, canvas)


def write_png(path: Path, canvas: FigureCanvasAgg) -> None:
    """A picture, whole or not at all."""
    file = BytesIO()
    canvas.print_png(file)  # type: ignore[no-untyped-call]
    write_whole(path, file.getvalue())


def _points(rows: Sequence[Mapping[str, float]]) -> list[Point]:
    """Evaluations among the rows; a reward that is not finite cannot be drawn."""
    points = []
    for row in rows:
        reward, half = row.get("eval_reward", math.nan), row.get("eval_ci95", math.nan)
        if math.isfinite(reward):
            points.append((row["step"], reward, half if math.isfinite(half) else 0.0))
    return points


def frame(
    axes: Axes, points: Sequence[Point], references: Mapping[str, tuple[float, float | None]]
) -> None:
    """Axes with room for all that will be drawn."""
    heights = [reward + sign * half for _, reward, half in points for sign in (-1, 1)]
    for mean, half in references.values():
        spread = half if half is not None and math.isfinite(half) else 0.0
        heights += [mean - spread, mean + spread] if math.isfinite(mean) else []
    low, high = min(heights, default=0.0), max(heights, default=1.0)
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    axes.set_ylim(low - room, high + room)
    last = max((step for step, _, _ in points), default=0)
    axes.set_xlim((0, last) if last > 0 else (-1, 0))  # the newest stands beside its name
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel("steps", color=FAINT, fontsize=9)
    axes.tick_params(length=0, labelsize=9, labelcolor=FAINT, pad=6)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color("#bbbbbb")
    if last == 0:
        axes.set_xticks([0])


def _reference(axes: Axes, mean: float, half: float | None, color: str) -> None:
    if half is not None and math.isfinite(half):
        axes.axhspan(mean - half, mean + half, color=color, alpha=0.12, linewidth=0)
    axes.axhline(mean, color=color, linewidth=1.4, linestyle=(0, (5, 3)))


def _curve(axes: Axes, points: Sequence[Point]) -> None:
    steps, rewards, halves = zip(*points, strict=True)
    below = [reward - half for reward, half in zip(rewards, halves, strict=True)]
    above = [reward + half for reward, half in zip(rewards, halves, strict=True)]
    axes.fill_between(steps, below, above, color=CURVE, alpha=0.18, linewidth=0)
    axes.plot(steps, rewards, color=CURVE, linewidth=2, solid_joinstyle="round")
    if len(points) == 1 and halves[0] > 0:  # a band over one step has no width
        axes.vlines(steps, below, above, color=CURVE, alpha=0.5, linewidth=3, clip_on=False)
    axes.plot(steps[-1], rewards[-1], "o", color=CURVE, markersize=6, clip_on=False, zorder=5)


def name_lines(axes: Axes, labels: Sequence[tuple[float, str, str, str]]) -> None:
    """Name, mean and interval of each line, to the right of its end and clear of each other."""
    low, high = axes.get_ylim()
    labels = sorted(labels)
    wanted = [(height - low) / (high - low) for height, *_ in labels]
    for start, end, (_, name, value, color) in zip(wanted, _apart(wanted), labels, strict=True):
        axes.plot(
            (1.012, 1.032),
            (start, end),
            color=color,
            linewidth=1,
            clip_on=False,
            transform=axes.transAxes,
        )
        for text, weight, side in ((name, "bold", 1), (value, "normal", -1)):
            axes.text(
                1.042,
                end + 0.005 * side,
                _cut(text, 17),
                color=color,
                fontsize=9,
                fontweight=weight,
                va="bottom" if side > 0 else "top",
                transform=axes.transAxes,
                parse_math=False,
            )


def _apart(heights: Sequence[float]) -> list[float]:
    """Rising heights moved no more than needed to stand `LABEL_GAP` apart, within the plot."""
    placed = list(heights)
    for index in range(1, len(placed)):
        placed[index] = max(placed[index], placed[index - 1] + LABEL_GAP)
    top = 1.0
    for index in reversed(range(len(placed))):
        placed[index] = min(placed[index], top)
        top = placed[index] - LABEL_GAP
    return placed


def head(figure: Figure, title: str, subtitle: str) -> None:
    """Title and what is measured; a long one is set smaller, then cut."""
    for text, size, height, color in ((title, 13.0, 0.93, INK), (subtitle, 9.5, 0.88, FAINT)):
        line = figure.text(LEFT - 0.055, height, text, fontsize=size, color=color, parse_math=False)
        room = WIDTH * (0.98 - LEFT + 0.055)
        wide = line.get_window_extent().width
        if wide > room:
            line.set_fontsize(max(8.5, size * room / wide))
            share = room / line.get_window_extent().width
            line.set_text(_cut(text, int(len(text) * share)) if share < 1 else text)


def _value(mean: float, half: float | None) -> str:
    return plus_minus(mean, half, digits=3 if abs(mean) < 100 else 1)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
