"""What several commands take: the world's sizes and rules."""

from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from tyro.constructors import PrimitiveConstructorSpec

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


def _number_or_range(texts: list[str]) -> int | tuple[int, int]:
    least, colon, most = texts[0].partition(":")
    try:
        return (int(least), int(most)) if colon else int(least)
    except ValueError:
        raise ValueError(f"{texts[0]}: give a number, or a range LOW:HIGH such as 20:200") from None


Items = Annotated[
    Any,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT|LOW:HIGH",
        instance_from_str=_number_or_range,
        is_instance=lambda _: True,
        str_from_instance=lambda items: [str(items)],
    ),
]
"""A number of items, or a range of them."""


@dataclass(frozen=True)
class TaskOptions:
    """Sizes and rules of the world; what is not given takes the world's default."""

    num_items: Items = None
    """N, items to choose from; 20:200 draws a number in that range for each episode."""
    num_context: int | None = None
    """U, things seen that cannot be chosen."""
    num_select: int | None = None
    """K, items chosen in a step."""
    commands: tuple[str, ...] | None = None
    """Which of stay, up, down, left, right there are."""
    time_limit: int | None = None
    """Steps of an episode."""
    dynamics: str | None = None
    """Circle: `figures` as the published figures were made, `text` as the paper's text says."""
    grid: int | None = None
    """Predator-prey: cells on a side."""
    captors: int | None = None
    """Predator-prey: selected predators that catch a prey, 2 or 3."""
    instance: str | None = None
    """A world that has several: which of them, as `4` of an RDDL domain."""


DEFAULTS = TaskOptions()

World = Annotated[TaskOptions, tyro.conf.arg(name="")]

OwnWorld = Annotated[str | None, tyro.conf.arg(name="world", metavar="MODULE:FACTORY")]
