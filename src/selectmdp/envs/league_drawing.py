"""A picture of the league (paper §1): the line-up on the pitch, everybody else on the bench."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from selectmdp.scene import Arrow, Box, Disc, Label, Scene, Shape

GRASS, LINE, BENCH = "#5b9a5b", "#e8f2e8", "#eceae4"
FRESH, TIRED, HURT, INK, PAPER = (62, 120, 190), (205, 70, 50), "#9a9a9a", "#1e1e1e", "#ffffff"
WIDTH, PITCH, ROW = 68.0, 80.0, 9.0
RADIUS = 3.4
PER_ROW = 9


def draw_team(
    skills: Float[np.ndarray, "N 4"],
    fatigue: Float[np.ndarray, " N"],
    out: Int[np.ndarray, " N"],
    picked: Sequence[tuple[int, int]],
    formation: tuple[int, ...],
    caption: str,
) -> Scene:
    """Blue is fresh, red is tired, dashed is hurt; larger is better; numbers are the players'."""
    rows = -(-len(skills) // PER_ROW)
    bench = ROW * rows + 2
    shapes: list[Shape] = [
        Box(WIDTH / 2, PITCH / 2, WIDTH, PITCH, GRASS, LINE, line=2),
        Arrow(0, PITCH / 2, WIDTH, PITCH / 2, LINE, width=1.5, head=0),
        Disc(WIDTH / 2, PITCH / 2, 8, outline=LINE),
        Box(WIDTH / 2, 6, 34, 12, outline=LINE),
        Box(WIDTH / 2, PITCH - 6, 34, 12, outline=LINE),
        Box(WIDTH / 2, -bench / 2, WIDTH, bench, BENCH),
    ]
    places = _places(picked, formation)
    for player in range(len(skills)):
        row, column = divmod(player, PER_ROW)
        seat = (column + 0.5) * WIDTH / PER_ROW, -ROW * (row + 0.5) - 1
        x, y = places.get(player, seat)
        size = RADIUS * (0.55 + 0.6 * float(skills[player].max()))
        hurt = bool(out[player] > 0)
        fill = HURT if hurt else _colour(float(fatigue[player]))
        shapes.append(
            Disc(
                x, y, size, fill, INK, dashed=hurt, width=2 if player in places else 1, item=player
            )
        )
        shapes.append(Label(x, y, str(player + 1), PAPER, size=11, item=None))
    return Scene((-2, -bench, WIDTH + 2, PITCH + 2), tuple(shapes), caption)


def _places(
    picked: Sequence[tuple[int, int]], formation: tuple[int, ...]
) -> dict[int, tuple[float, float]]:
    """Where each pick stands: a line for each position, from the own goal to the other."""
    places: dict[int, tuple[float, float]] = {}
    filled = [0] * len(formation)
    for player, position in picked:
        line = max(formation[position], 1)
        x = WIDTH * (filled[position] + 0.5) / line
        places[player] = x, 8 + position * (PITCH - 24) / max(len(formation) - 1, 1)
        filled[position] += 1
    return places


def _colour(fatigue: float) -> str:
    mixed = [
        round(fresh + (tired - fresh) * min(max(fatigue, 0.0), 1.0))
        for fresh, tired in zip(FRESH, TIRED, strict=True)
    ]
    return "#" + "".join(f"{part:02x}" for part in mixed)
