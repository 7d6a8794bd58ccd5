"""A picture of the league (paper §1): the line-up on the pitch, the others on the bench beside it.

A player's disc is larger the better they are, and has their number; the bar below it is what is
left of their strength. Who is hurt has a cross and the matches still to miss instead.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from selectmdp.scene import Arrow, Box, Disc, Label, Scene, Shape

GRASS, STRIPE, LINE, BENCH = "#5b9a5b", "#559356", "#e8f2e8", "#eceae4"
FRESH, TIRED = (70, 160, 80), (205, 60, 45)
SHIRT, HURT, INK, PAPER, QUIET = "#2f5f9e", "#a8a8a8", "#1e1e1e", "#ffffff", "#6b6b6b"
ATTACK, DEFENCE = "#c8553d", "#33658a"
WIDTH, PITCH, BOARD = 68.0, 80.0, 15.0
COLUMN, SEATS, HEAD = 9.5, 8, 5.0
"""Of the bench: width of a column, players in one, height of its heading."""
RADIUS, BAR = 3.5, 5.0
TRACK = 24.0
"""Length of an opponent's bar whose strength is 1."""


def draw_team(
    skills: Float[np.ndarray, "N 4"],
    fatigue: Float[np.ndarray, " N"],
    out: Int[np.ndarray, " N"],
    opponents: Float[np.ndarray, "A 2"],
    picked: Sequence[tuple[int, int]],
    formation: tuple[int, ...],
    positions: tuple[str, ...],
    caption: str,
    present: Bool[np.ndarray, " N"] | None = None,
) -> Scene:
    """Everybody where they are for the next match, and above them whom it is against."""
    seats, headings = _bench(skills.argmax(axis=1), positions)
    places = _places(picked, formation)
    right = WIDTH + 2 + COLUMN * len(headings)
    shapes: list[Shape] = [*_ground(right), *headings]
    squad = range(len(skills)) if present is None else np.flatnonzero(present).tolist()
    for player in squad:
        x, y = places.get(player, seats[player])
        best = float(skills[player].max())
        shapes += _player(player, x, y, best, float(fatigue[player]), int(out[player]))
    shapes += _board(opponents)
    return Scene((-2, -2, right + 2, PITCH + BOARD), tuple(shapes), caption)


def _ground(right: float) -> list[Shape]:
    """The pitch in stripes with its lines, and the bench."""
    stripes = [
        Box(WIDTH / 2, PITCH * (2 * row + 0.5) / 8, WIDTH, PITCH / 8, STRIPE) for row in range(4)
    ]
    return [
        Box(WIDTH / 2, PITCH / 2, WIDTH, PITCH, GRASS),
        *stripes,
        Box(WIDTH / 2, PITCH / 2, WIDTH, PITCH, outline=LINE, line=2),
        Arrow(0, PITCH / 2, WIDTH, PITCH / 2, LINE, width=1.5, head=0),
        Disc(WIDTH / 2, PITCH / 2, 8, outline=LINE),
        Box(WIDTH / 2, 6, 34, 12, outline=LINE),
        Box(WIDTH / 2, PITCH - 6, 34, 12, outline=LINE),
        Box((WIDTH + 2 + right) / 2, PITCH / 2, right - WIDTH - 2, PITCH, BENCH),
    ]


def _bench(
    homes: Int[np.ndarray, " N"], positions: tuple[str, ...]
) -> tuple[dict[int, tuple[float, float]], list[Shape]]:
    """A seat for each player in columns by position, and the columns' headings."""
    seats: dict[int, tuple[float, float]] = {}
    headings: list[Shape] = []
    for position, name in enumerate(positions):
        group = np.flatnonzero(homes == position)
        for first in range(0, max(len(group), 1), SEATS):
            x = WIDTH + 2 + COLUMN * (len(headings) + 0.5)
            headings.append(Label(x, PITCH - HEAD / 2, name, QUIET, size=10))
            for row, player in enumerate(group[first : first + SEATS]):
                seats[int(player)] = x, PITCH - HEAD - (row + 0.45) * (PITCH - HEAD) / SEATS
    return seats, headings


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


def _player(
    player: int, x: float, y: float, best: float, fatigue: float, out: int
) -> tuple[Shape, ...]:
    """A disc with a number on it, which a page may colour by value, and how the player is."""
    size = RADIUS * (0.55 + 0.55 * best)
    disc = Disc(x, y, size, HURT if out else SHIRT, INK, dashed=out > 0, width=1, item=player)
    badge = Disc(x, y, 0.62 * size, PAPER, opacity=0.92)
    number = Label(x, y, str(player), INK, size=10)
    below = y - RADIUS - 1.1
    if out:
        return disc, badge, number, Label(x, below, f"+{out}", ATTACK, size=10)
    left = BAR * (1 - min(max(fatigue, 0.0), 1.0))
    behind = Box(x, below, BAR + 0.5, 1.7, PAPER, INK, line=0.5)
    full = Box(x - (BAR - left) / 2, below, left, 1.2, _colour(fatigue))
    return disc, badge, number, behind, full


def _board(opponents: Float[np.ndarray, "A 2"]) -> list[Shape]:
    """The next opponents by attack and defence, the coming match first."""
    shapes: list[Shape] = []
    middle = PITCH + BOARD / 2 + 0.3
    for number, strengths in enumerate(opponents.tolist()):
        x = 37.0 * number
        name = "next" if number == 0 else f"in {number}"
        shapes.append(Label(x + 4, middle, name, INK if number == 0 else QUIET, size=11))
        sides = zip(strengths, ("attack", "defence"), (ATTACK, DEFENCE), (2.6, -2.6), strict=True)
        for strength, side, colour, up in sides:
            shapes.append(Box(x + 9 + TRACK / 2, middle + up, TRACK, 4, BENCH))
            long = TRACK * min(max(strength, 0.0), 1.0)
            shapes.append(Box(x + 9 + long / 2, middle + up, long, 4, colour))
            shapes.append(Label(x + 14, middle + up, side, PAPER, size=9))
    return shapes


def _colour(fatigue: float) -> str:
    mixed = [
        round(fresh + (tired - fresh) * min(max(fatigue, 0.0), 1.0))
        for fresh, tired in zip(FRESH, TIRED, strict=True)
    ]
    return "#" + "".join(f"{part:02x}" for part in mixed)
