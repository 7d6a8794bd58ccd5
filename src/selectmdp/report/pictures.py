"""The figures as PNG, one for each world, for places that show no page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from selectmdp import curves
from selectmdp.curves import (
    BOTTOM,
    DPI,
    FAINT,
    HEIGHT,
    INK,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
)

COLORS = {
    **{"isq-p": "#6b2d8c", "isq-u": "#0072b2", "isq-i": "#d55e00", "isq-i-1": "#c98a00"},
    **{"myopic": "#00936b", "eq": "#3c9fdb", "rsq": "#c05f98", "idqn": "#6a635c"},
    **{"vanilla": "#00936b", "sorting": "#3c9fdb"},
}
"""As on the page."""
LINES = {
    ("pairs", 50): ("#6b2d8c", "o"),
    ("pairs", 200): ("#0072b2", "s"),
    ("means", 50): ("#00936b", "D"),
    ("means", 200): ("#3c9fdb", "X"),
    ("sums", 50): ("#d55e00", "^"),
    ("sums", 200): ("#c98a00", "v"),
}
TEALS = LinearSegmentedColormap.from_list("teals", ["#ffffff", "#7cbab4"])


def save(data: dict[str, Any], folder: Path) -> list[Path]:
    """Write what there are runs of, from the data of the page; gives the files."""
    made = []
    for figure in data["figures"]:
        several = len(figure["worlds"]) > 1
        for world in figure["worlds"]:
            if any(each["mean"] and each["curve"] for each in world["series"]):
                size = {"num_items": world["N"]} if several else None
                made.append(folder / name_of(figure["name"], size))
                title = figure["title"] + (f", N = {world['N']}" if several else "")
                _save_curves(made[-1], figure, world, title)
    if any(line["points"] for line in data["generalization"]["sweep"]):
        made.append(folder / "generalization.png")
        _save_generalization(made[-1], data["generalization"])
    return made


def name_of(figure: str, world: Mapping[str, Any] | None) -> str:
    """What the file of a figure is called, with N where there are several worlds."""
    return f"figure-{figure}.png" if world is None else f"figure-{figure}-N{world['num_items']}.png"


def _save_curves(path: Path, figure: dict[str, Any], world: dict[str, Any], title: str) -> None:
    """Our curves with their bands, the published levels dashed in the same colour."""
    picture, canvas = _picture()
    axes = picture.add_axes((LEFT, BOTTOM, RIGHT - LEFT, TOP - BOTTOM))
    ours = [each for each in world["series"] if each["mean"] and each["curve"]]
    points = _in_view(
        [(step, *triple) for each in ours for step, _, *triple in each["curve"]],
    )
    levels = {each["algorithm"]: (each["published"], None) for each in ours}
    references = {name: (level, None) for name, level in world["references"].items()}
    curves.frame(axes, points, {**levels, **references})
    labels = []
    for name, (level, _) in references.items():
        axes.axhline(level, color=FAINT, linewidth=1, linestyle=(0, (1, 2)))
        labels.append((level, name, f"{level:.2f}", FAINT))
    for each in ours:
        name, mean = each["algorithm"], each["mean"][0]
        axes.axhline(
            each["published"], color=COLORS[name], linewidth=1, linestyle=(0, (5, 3)), alpha=0.6
        )
        _line(axes, [[step, *rest] for step, _, *rest in each["curve"]], COLORS[name], "")
        labels.append((mean, name, f"{mean:.2f} (paper {each['published']:.2f})", COLORS[name]))
    curves.name_lines(axes, labels)
    least, most = (end(each["seeds"] for each in ours) for end in (min, max))
    unit = figure["unit"]
    seeds = f"{most}" if least == most else f"{least} to {most}"
    over = "one seed" if most == 1 else f"mean of {seeds} seeds ± 95 % interval"
    told = f"reward of a step ({unit}), {over}; dashed: published"
    curves.head(picture, title, told)
    curves.write_png(path, canvas)


def _save_generalization(path: Path, told: dict[str, Any]) -> None:
    """Every pair as a heat map with each network, and the sweep over N."""
    picture, canvas = _picture()
    for place, matrix in enumerate(told["matrices"]):
        axes = picture.add_axes((0.1, 0.6 - 0.255 * place, 0.22, 0.195))
        _heat_map(axes, matrix, is_last=matrix is told["matrices"][-1])
    axes = picture.add_axes((0.41, BOTTOM, 0.41, TOP - BOTTOM - 0.03))
    points = _in_view([point for line in told["sweep"] for point in line["points"]])
    curves.frame(axes, points, {"": (0.0, None)})
    axes.set_xscale("log")
    sizes = sorted({size for size, _, _ in points})
    axes.set_xlim(sizes[0] / 1.1, sizes[-1])
    axes.set_xticks(sizes)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:g}"))
    axes.set_xlabel("N played", color=FAINT, fontsize=9)
    labels = []
    for line in told["sweep"]:
        if line["points"]:
            color, marker = LINES[line["network"], line["trained"]]
            _line(axes, line["points"], color, marker)
            labels.append(
                (line["points"][-1][1], line["network"], f"trained at {line['trained']}", color)
            )
    curves.name_lines(axes, labels)
    title = "Trained at one N, played at others: ISQ-P on circle selection, K = 6"
    curves.head(picture, title, "left: as a share of training there; right: area earned in a step")
    curves.write_png(path, canvas)


def _heat_map(axes: Axes, matrix: dict[str, Any], is_last: bool) -> None:
    cells = matrix["cells"]
    sizes = list(dict.fromkeys(cell["trained"] for cell in cells))
    shares = [cell["share"][0] if cell["share"] else 0.0 for cell in cells]
    rows = [shares[start : start + len(sizes)] for start in range(0, len(cells), len(sizes))]
    axes.imshow(rows, cmap=TEALS, vmin=0, vmax=1.1, aspect="auto")
    for place, cell in enumerate(cells):
        row, column = divmod(place, len(sizes))
        axes.text(column, row, _earned(cell), ha="center", va="center", color=INK, weight="bold")
        if cell["published"] and cell["share"]:
            paper = f"paper {100 * cell['published']:.0f} %"
            axes.text(column, row + 0.34, paper, ha="center", va="center", color=INK, fontsize=8)
    axes.set_xticks(range(len(sizes)), [f"plays {size}" if is_last else "" for size in sizes])
    axes.set_yticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_ylabel("trained at", color=FAINT, fontsize=9)
    axes.set_title(matrix["title"], loc="left", fontsize=9.5, color=INK)
    axes.tick_params(length=0, labelsize=9, labelcolor=FAINT)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _earned(cell: dict[str, Any]) -> str:
    """As a share of training there; the reward where there is nothing to compare it with."""
    if cell["share"]:
        return f"{100 * cell['share'][0]:.0f} %"
    return f"{cell['reward'][0]:.3f}" if cell["reward"] else "–"


def _line(axes: Axes, points: Sequence[Sequence[float]], color: str, marker: str) -> None:
    """Points of x, mean, low and high."""
    xs, means, lows, highs = zip(*points, strict=True)
    if None not in lows:
        axes.fill_between(xs, lows, highs, color=color, alpha=0.15, linewidth=0)
    axes.plot(
        xs, means, color=color, linewidth=1.8, marker=marker, markersize=5, solid_joinstyle="round"
    )


def _picture() -> tuple[Figure, FigureCanvasAgg]:
    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor="white")
    return figure, FigureCanvasAgg(figure)


def _in_view(points: Sequence[Sequence[Any]]) -> list[curves.Point]:
    """Points of x, mean, low and high with half the interval, as far as none dwarfs the means."""
    means = [mean for _, mean, *_ in points]
    most = (max(means) - min(means)) / 4
    return [
        (x, mean, 0.0 if low is None else min((high - low) / 2, most))
        for x, mean, low, high in points
    ]
