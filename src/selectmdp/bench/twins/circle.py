"""Circle Selection (paper §5.1 and appendix) in plain NumPy, one circle at a time.

N selectable and U unselectable circles live in a 1 x 1 square. Each step K selectable circles are
picked with a command each; a picked circle earns its area A (+A, 0 or -A, the paper's cases 3, 2
and 1) and is replaced by a small one. The paper's text and its figures disagree on the dynamics;
`dynamics` says which of the two is played. A circle is a row (x, y, radius).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Circles = npt.NDArray[np.float64]  # [count, 3]: x, y, radius
Picks = Sequence[tuple[int, int]]  # (item index, index into the twin's commands)

HALF_WIDTH = 0.5
MAX_RADIUS = 0.45
RESTART_RADIUS = 0.01
MOVE_DISTANCE = 0.1
CONTEXT_GROWTH = (0.045, 0.055)

DIRECTIONS = {"stay": (0, 0), "up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}


@dataclass(frozen=True)
class _Dynamics:
    """What the two readings of the paper disagree on."""

    item_growth: tuple[float, float]  # low and high, per step
    restarts_when_full: bool  # at the maximum radius: start again at 0.01, or stay
    position_noise: float  # uniform in plus or minus this
    radius_noise: float
    replacement_radius: tuple[float, float]


class CircleTwin:
    """The rules of Circle Selection; the state is passed in and out, never kept."""

    def __init__(
        self,
        *,
        num_items: int,
        num_context: int,
        num_select: int,
        commands: tuple[str, ...],
        dynamics: str,
    ) -> None:
        """N, U, K, the commands in the order of their indices, and "figures" or "text"."""
        if not 1 <= num_select <= num_items:
            raise ValueError(f"num_select={num_select} must lie in 1..num_items={num_items}")
        if num_context < 0:
            raise ValueError(f"num_context={num_context} must not be negative")
        if not commands or len(set(commands)) < len(commands) or set(commands) - set(DIRECTIONS):
            raise ValueError(f"commands={commands} must be distinct and among {tuple(DIRECTIONS)}")
        if dynamics not in ("figures", "text"):
            raise ValueError(f'dynamics={dynamics!r} must be "figures" or "text"')
        self.num_items = num_items
        self.num_context = num_context
        self.num_select = num_select
        self.commands = commands
        self.dynamics = dynamics
        if dynamics == "figures":
            turnover = 0.36 * num_select / num_items
            self._rules = _Dynamics(
                item_growth=(turnover * 0.45, turnover * 0.55),
                restarts_when_full=True,
                position_noise=0.005,
                radius_noise=0.005,
                replacement_radius=(0.0, 0.0045),
            )
        else:
            self._rules = _Dynamics(
                item_growth=(0.045, 0.055),
                restarts_when_full=False,
                position_noise=0.01,
                radius_noise=0.0,
                replacement_radius=(0.01, 0.01),
            )

    def reset(self, rng: np.random.Generator) -> tuple[Circles, Circles]:
        """Items [N, 3] and context [U, 3], uniform in the square, radius uniform in [0, 0.45]."""
        low = (-HALF_WIDTH, -HALF_WIDTH, 0.0)
        high = (HALF_WIDTH, HALF_WIDTH, MAX_RADIUS)
        items = rng.uniform(low, high, size=(self.num_items, 3))
        context = rng.uniform(low, high, size=(self.num_context, 3))
        return items, context

    def draw(self, rng: np.random.Generator) -> dict[str, npt.NDArray[np.float64]]:
        """All the randomness of one step, as uniforms in [0, 1)."""
        return {
            "item_noise": rng.random((self.num_items, 3)),
            "item_growth": rng.random(self.num_items),
            "context_noise": rng.random((self.num_context, 3)),
            "context_growth": rng.random(self.num_context),
            "item_replacement": rng.random((self.num_items, 3)),
            "context_replacement": rng.random((self.num_context, 3)),
        }

    def random_picks(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """K distinct items, each with a uniformly random command."""
        chosen = rng.choice(self.num_items, size=self.num_select, replace=False)
        return [(int(item), int(rng.integers(len(self.commands)))) for item in chosen]

    def step(
        self,
        items: Circles,
        context: Circles,
        picks: Picks,
        draws: Mapping[str, npt.NDArray[np.float64]],
    ) -> tuple[Circles, Circles, float]:
        """Next items [N, 3], next context [U, 3] and the reward, in area; K picks or fewer."""
        selected = [item for item, _ in picks]
        if len(selected) > self.num_select or len(set(selected)) < len(selected):
            raise ValueError(f"picks={picks} must hold at most {self.num_select} distinct items")
        items = np.array(items, dtype=np.float64)  # copies: the caller's arrays stay untouched
        context = np.array(context, dtype=np.float64)

        for i in range(self.num_items):
            self._add_noise(items[i], draws["item_noise"][i])
            self._grow_item(items[i], draws["item_growth"][i])
        for u in range(self.num_context):
            self._add_noise(context[u], draws["context_noise"][u])
            self._grow_context(context[u], draws["context_growth"][u])

        for item, command in picks:
            dx, dy = DIRECTIONS[self.commands[command]]
            items[item, 0] += dx * MOVE_DISTANCE
            items[item, 1] += dy * MOVE_DISTANCE

        reward = 0.0
        for item in selected:
            reward += _reward_of(item, selected, items, context)

        hit = [u for u in range(self.num_context) if _overlaps_any(context[u], items[selected])]
        for item in selected:
            items[item] = self._replacement(draws["item_replacement"][item])
        for u in hit:
            context[u] = self._replacement(draws["context_replacement"][u])

        for circle in [*items, *context]:
            _clip(circle)
        return items, context, reward

    def _add_noise(self, circle: Circles, units: npt.NDArray[np.float64]) -> None:
        """Jitter x, y and (in `figures`) the radius of one circle [3], in place."""
        circle[0] += (2 * units[0] - 1) * self._rules.position_noise
        circle[1] += (2 * units[1] - 1) * self._rules.position_noise
        circle[2] += (2 * units[2] - 1) * self._rules.radius_noise

    def _grow_item(self, circle: Circles, unit: float) -> None:
        """Grow one selectable circle [3] in place; a full one restarts or stays full."""
        circle[2] += _between(self._rules.item_growth, unit)
        if circle[2] >= MAX_RADIUS:
            circle[2] = RESTART_RADIUS if self._rules.restarts_when_full else MAX_RADIUS

    def _grow_context(self, circle: Circles, unit: float) -> None:
        """Grow one unselectable circle [3] in place; it never exceeds the maximum radius."""
        circle[2] = min(circle[2] + _between(CONTEXT_GROWTH, unit), MAX_RADIUS)

    def _replacement(self, units: npt.NDArray[np.float64]) -> Circles:
        """A new small circle [3] anywhere in the square."""
        radius = _between(self._rules.replacement_radius, units[2])
        return np.array([units[0] - HALF_WIDTH, units[1] - HALF_WIDTH, radius])


def _reward_of(item: int, selected: list[int], items: Circles, context: Circles) -> float:
    """The paper's three cases for one selected circle of area A."""
    area = math.pi * float(items[item, 2]) ** 2
    others = [other for other in selected if other != item]
    if _overlaps_any(items[item], context):
        return -area
    if _overlaps_any(items[item], items[others]):
        return 0.0
    return area


def _overlaps_any(circle: Circles, others: Circles) -> bool:
    """Whether one circle [3] overlaps at least one of the others [count, 3]; touching is not."""
    for other in others:
        distance = math.hypot(circle[0] - other[0], circle[1] - other[1])
        if distance < circle[2] + other[2]:
            return True
    return False


def _clip(circle: Circles) -> None:
    """Bring one circle [3] back into the square and its radius into [0, 0.45], in place."""
    circle[0] = min(max(circle[0], -HALF_WIDTH), HALF_WIDTH)
    circle[1] = min(max(circle[1], -HALF_WIDTH), HALF_WIDTH)
    circle[2] = min(max(circle[2], 0.0), MAX_RADIUS)


def _between(limits: tuple[float, float], unit: float) -> float:
    """Stretch a uniform in [0, 1) to the given low and high."""
    low, high = limits
    return low + unit * (high - low)
