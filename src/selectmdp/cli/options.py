"""What several commands take: the world's sizes and rules."""

from dataclasses import dataclass
from typing import Annotated

import tyro

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


@dataclass(frozen=True)
class TaskOptions:
    """Sizes and rules of the world; what is not given takes the world's default."""

    num_items: int | None = None
    """N, items to choose from."""
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


DEFAULTS = TaskOptions()

World = Annotated[TaskOptions, tyro.conf.arg(name="")]
