"""What `verify` does: how much, from which seed, with what broken on purpose; and its verdicts.

Every check runs beside controls, in which what the statement needs is taken away, and which must
fail: a check whose control does not fail says nothing, and does not hold. A break puts such a
control in the statement's own place, so that everybody can see it fail.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from selectmdp.spec import SelectError, check_count, check_seed
from selectmdp.theory.iterated import IteratedSolution, solve_iterated
from selectmdp.theory.solve import Solution, solve
from selectmdp.theory.targets import EQUI_INVARIANT
from selectmdp.theory.tiny import TinyWorld
from selectmdp.theory.worlds import symmetric_world

Progress = Callable[[int, int], None]
"""Hears how much of how much is done."""

Break = Literal["untie", "asymmetric", "discount", "target"]
BREAKS: Mapping[Break, str] = {
    "untie": "one weight of the shared network is no longer tied to the others",
    "asymmetric": "the worlds do not treat their items alike",
    "discount": "the discount between phases is 0, as the paper's footnote says",
    "target": "the function to approximate depends on where an item stands",
}

Size = Literal["small", "default"]

SHAPES = (
    (3, 1, 2, 3),
    (3, 2, 2, 3),
    (3, 3, 3, 2),
    (4, 2, 3, 2),
    (4, 3, 2, 2),
    (5, 2, 3, 2),
    (5, 3, 3, 2),
)
"""N, K, C and the levels of an item in the random worlds."""
GAMMAS = (0.9, 0.5, 0.95)
"""Discounts, world after world."""
FOOTNOTE = 0.0
"""The discount between phases that the paper's footnote states."""


@dataclass(frozen=True)
class Verdict:
    """What became of one statement."""

    statement: str
    checked: str
    holds: bool
    instances: int
    max_error: float
    allowed: float
    """The largest error under which the statement is said to hold."""
    details: dict[str, Any]
    """More for programs: controls, and what the pictures are drawn from."""

    def to_json(self) -> dict[str, Any]:
        kept = ("statement", "checked", "holds", "instances", "max_error", "allowed")
        return {**{name: getattr(self, name) for name in kept}, **self.details}


class Solved(NamedTuple):
    """A world solved twice: over joint actions, and over single picks."""

    world: TinyWorld
    joint: Solution
    iterated: IteratedSolution


@dataclass(frozen=True)
class Plan:
    """How much is checked, from which seed, and what is broken on purpose."""

    seed: int = 0
    broken: Break | None = None
    worlds: int = 3
    """Random worlds of each shape."""
    starts: int = 6
    """Trainings of each network for theorem 1."""
    targets: tuple[str, ...] = tuple(EQUI_INVARIANT)
    """What the networks for theorem 2 are fitted to."""
    widths: tuple[int, ...] = (2, 4, 8, 16, 32)
    """Channels of the networks for theorem 2."""
    steps: int = 2000
    """Of each training for theorem 2."""
    points: int = 8192
    """Fresh states on which an error is measured."""
    shapes: tuple[tuple[int, int, int, int], ...] = field(default=SHAPES, repr=False)

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.broken is not None and self.broken not in BREAKS:
            raise SelectError(f"break {self.broken!r} is none of {', '.join(BREAKS)}")
        for name in ("worlds", "starts", "steps", "points"):
            if check_count(name, getattr(self, name)) < 1:
                raise SelectError(f"{name}={getattr(self, name)}: must be at least 1")
        for name in self.targets:
            if name not in EQUI_INVARIANT:
                raise SelectError(f"target {name!r} is none of {', '.join(EQUI_INVARIANT)}")
        if len(self.widths) < 2 or list(self.widths) != sorted(set(self.widths)):
            raise SelectError(f"widths={self.widths}: must be at least two, rising")

    @cached_property
    def solved(self) -> tuple[Solved, ...]:
        """The random worlds, solved; broken as the plan says."""
        between = FOOTNOTE if self.broken == "discount" else 1.0
        return tuple(
            self.solve(index, self.broken != "asymmetric", between)
            for index in range(len(self.shapes) * self.worlds)
        )

    def solve(self, index: int, symmetric: bool = True, between: float = 1.0) -> Solved:
        """World number `index`; its seed, shape and discount follow from the number."""
        items, picks, commands, levels = self.shapes[index % len(self.shapes)]
        seed = (self.seed + 1000 * index) % 2**32
        world = symmetric_world(seed, items, picks, commands, levels, symmetric)
        gamma = GAMMAS[index % len(GAMMAS)]
        return Solved(world, solve(world, gamma), solve_iterated(world, gamma, between))


SIZES: Mapping[Size, Mapping[str, Any]] = {
    "small": {
        "worlds": 1,
        "starts": 2,
        "targets": ("sums", "sorted statistics"),
        "widths": (2, 16),
        "steps": 1000,
        "points": 2048,
    },
    "default": {},
}
"""What differs from the plan's defaults."""


def plan(size: Size = "default", seed: int = 0, broken: Break | None = None) -> Plan:
    """A plan by its size's name."""
    if size not in get_args(Size):
        raise SelectError(f"size {size!r} is none of {', '.join(get_args(Size))}")
    return Plan(seed=seed, broken=broken, **SIZES[size])
