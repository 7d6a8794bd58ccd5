"""Pictures of the paper's two worlds (§5.1) as scenes: what can be picked and what is picked.

A pick carries its place in the order of picking and its command: an arrow, or a dot for "stay". For
each item exactly one shape has `item` set. Colours are never the only sign: what cannot be picked
is dashed or a diamond.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from selectmdp.envs.base import DIRECTIONS, check_commands
from selectmdp.scene import REFERENCE, Arrow, Box, Disc, Label, Scene, Shape
from selectmdp.spec import SelectError

Picks = Sequence[tuple[int, int]]
"""(item, index of its command), in the order of picking."""

ORANGE, ORANGE_PALE, ORANGE_STRONG = "#e08a1e", "#fdd9a8", "#d9660b"
GREEN, GREEN_PALE = "#1b7f4b", "#7cc9a0"
BLUE, BLUE_PALE, BLUE_STRONG = "#3f7fc1", "#a9cdf0", "#0b4f9e"
RED, RED_DARK = "#d62f2f", "#7d1010"
INK, PAPER, FRAME, GRID_LINE = "#2b1a0a", "#ffffff", "#8c8c8c", "#d9d9d6"

SQUARE, MARGIN = 0.5, 0.12
BADGE = 0.026


def draw_circles(
    items: Float[np.ndarray, "N 3"],
    context: Float[np.ndarray, "U 3"],
    picked: Picks,
    commands: tuple[str, ...],
    reach: float,
    caption: str = "",
    present: Bool[np.ndarray, " N"] | None = None,
) -> Scene:
    """Circle Selection; rows are x, y, radius, and a move command goes as far as `reach`.

    Large circles lie below small ones, picks on top; what is outside the square is faded. Of items
    that are not present nothing is shown.
    """
    items, context = _rows("items", items, 3), _rows("context", context, 3)
    moves = _moves(picked, commands, len(items))
    order = {item: place for place, (item, _) in enumerate(moves, start=1)}
    shapes: list[Shape] = []
    for item in np.argsort(-items[:, 2], kind="stable"):
        if int(item) not in order and (present is None or present[item]):
            x, y, radius = items[item]
            shapes.append(Disc(x, y, radius, ORANGE_PALE, ORANGE, 0.16, width=1.2, item=int(item)))
    for x, y, radius in context[np.argsort(-context[:, 2], kind="stable")]:
        shapes.append(Disc(x, y, radius, GREEN_PALE, GREEN, 0.22, dashed=True, width=2.2))
    for item, _ in sorted(moves, key=lambda move: -items[move[0], 2]):
        x, y, radius = items[item]
        shapes.append(Disc(x, y, radius, ORANGE_STRONG, INK, 0.5, width=2.0, item=item))
    shapes += _veil()
    shapes.append(Box(0, 0, 2 * SQUARE, 2 * SQUARE, outline=FRAME, line=1.5))
    for item, (dx, dy) in moves:
        x, y, radius = items[item]
        if (dx, dy) != (0, 0):
            end = Disc(x + reach * dx, y + reach * dy, radius, outline=INK, dashed=True, width=1.0)
            shapes.append(end)
    for item, step in moves:
        x, y, radius = items[item]
        start, back = BADGE, 0.0
        if radius < 1.2 * BADGE:  # the number would hide the circle: it stands behind it
            start, back = max(radius, 0.004), radius + BADGE + 0.004
        shapes.append(_command(x, y, step, reach, start, dot=0.24 * BADGE))
        dx, dy = step if step != (0, 0) else (0, -1)
        shapes += _number(x - back * dx, y - back * dy, order[item], BADGE)
    edge = SQUARE + MARGIN
    return Scene((-edge, -edge, edge, edge), tuple(shapes), caption)


def draw_grid(
    predators: Int[np.ndarray, "N 2"],
    preys: Int[np.ndarray, "U 2"],
    picked: Picks,
    commands: tuple[str, ...],
    grid: int,
    caption: str = "",
) -> Scene:
    """Selective Predator-Prey; cell (x, y) is the unit square around that point, (0, 0) below left.

    Predators are discs, preys diamonds; the cells from which a prey can be caught are tinted, twice
    where two preys share them.
    """
    predators, preys = _rows("predators", predators, 2), _rows("preys", preys, 2)
    moves = _moves(picked, commands, len(predators))
    chosen = {item for item, _ in moves}
    cell = REFERENCE / (grid + 1)  # the margin is half a cell on each side
    shapes: list[Shape] = []
    for prey in preys:
        shapes += [Box(x, y, 1, 1, RED, opacity=0.13) for x, y in _around(prey, grid)]
    low, high = -0.5, grid - 0.5
    for line in np.arange(1, grid) - 0.5:
        shapes.append(Arrow(line, low, line, high, GRID_LINE, width=1.0, head=0))
        shapes.append(Arrow(low, line, high, line, GRID_LINE, width=1.0, head=0))
    middle = (low + high) / 2
    shapes.append(Box(middle, middle, grid, grid, outline=FRAME, line=1.5))
    for item, (x, y) in enumerate(predators):
        if item not in chosen and x >= 0:  # else it is not there
            shapes.append(Disc(x, y, 0.32, BLUE_PALE, BLUE, item=item))
    for x, y in preys:
        shapes.append(Box(x, y, 0.62, 0.62, RED, RED_DARK, diamond=True, line=1.5))
    for place, (item, step) in enumerate(moves, start=1):
        x, y = predators[item]
        shapes.append(_command(x, y, step, 0.95, 0.32, dot=0.075, room=cell))
        shapes.append(Disc(x, y, 0.32, BLUE_STRONG, INK, item=item))
        shapes.append(Label(x, y, str(place), PAPER, size=0.4 * cell))
    return Scene((low - 0.5, low - 0.5, high + 0.5, high + 0.5), tuple(shapes), caption)


def _rows(name: str, values: np.ndarray, columns: int) -> Float[np.ndarray, "M columns"]:
    array = np.asarray(values, np.float64)
    if array.size == 0:
        return np.zeros((0, columns))
    if array.ndim != 2 or array.shape[1] != columns:
        raise SelectError(f"{name} has shape {array.shape}: give rows of {columns} numbers")
    return array


def _moves(
    picked: Picks, commands: tuple[str, ...], num_items: int
) -> list[tuple[int, tuple[int, int]]]:
    """(item, step) of each pick; item −1 picks nothing."""
    names = check_commands(commands)
    moves = [(int(item), int(command)) for item, command in picked if item != -1]
    for item, command in moves:
        if not 0 <= item < num_items:
            raise SelectError(f"picked item {item}: there are items 0 to {num_items - 1}")
        if not 0 <= command < len(names):
            raise SelectError(f"command {command} of item {item}: must be 0 to {len(names) - 1}")
    if len({item for item, _ in moves}) != len(moves):
        raise SelectError(f"picked={list(picked)}: an item occurs twice; pick each once")
    return [(item, DIRECTIONS[names[command]]) for item, command in moves]


def _command(
    x: float,
    y: float,
    step: tuple[int, int],
    reach: float,
    start: float,
    dot: float,
    room: float = 40.0,
) -> Shape:
    """An arrow from `start` beside (x, y) to `reach`; for "stay" a dot below.

    `room` is how long a move is in the picture: short arrows get thin lines and small heads.
    """
    dx, dy = step
    if step == (0, 0):
        return Disc(x, y - start - 1.9 * dot, dot, INK)
    ends = (x + start * dx, y + start * dy, x + reach * dx, y + reach * dy)
    return Arrow(*ends, INK, width=min(2.5, room / 16), head=min(9.0, room / 4))


def _number(x: float, y: float, place: int, radius: float) -> list[Shape]:
    return [Disc(x, y, radius, INK, PAPER, width=1.0), Label(x, y, str(place), PAPER)]


def _veil() -> list[Shape]:
    """Four strips that fade what is outside the square of the circles."""
    middle, length = SQUARE + MARGIN / 2, 2 * (SQUARE + MARGIN)
    return [
        Box(0, middle, length, MARGIN, PAPER, opacity=0.6),
        Box(0, -middle, length, MARGIN, PAPER, opacity=0.6),
        Box(middle, 0, MARGIN, 2 * SQUARE, PAPER, opacity=0.6),
        Box(-middle, 0, MARGIN, 2 * SQUARE, PAPER, opacity=0.6),
    ]


def _around(cell: Float[np.ndarray, " 2"], grid: int) -> list[tuple[float, float]]:
    """The neighbouring cells, at most 8, that are on the grid."""
    steps = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]
    cells = [(float(cell[0]) + dx, float(cell[1]) + dy) for dx, dy in steps]
    return [(x, y) for x, y in cells if 0 <= x < grid and 0 <= y < grid]
