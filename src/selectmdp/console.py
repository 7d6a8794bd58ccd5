"""What the commands show a person: tables, a progress bar, and one line of JSON for programs.

Standard output carries results only; progress and messages go to standard error.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

out = Console(highlight=False, markup=False)
aside = Console(stderr=True, highlight=False, markup=False)


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error that hears (done, all), gone when it is done."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=aside, transient=True, disable=not aside.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], wrap: bool = False
) -> None:
    """A table for people; numbers are right-aligned; with `wrap` the last column is text."""
    grid = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        text = wrap and index == len(columns) - 1
        justify: JustifyMethod = "left" if index == 0 or text else "right"
        grid.add_column(column, justify=justify, no_wrap=not text)
    for row in rows:
        grid.add_row(*row)
    out.print(grid)


def as_json(value: Any) -> None:
    """One object on one line."""
    print(json.dumps(value, allow_nan=False))


def plus_minus(mean: float, half: float | None, digits: int = 3) -> str:
    """`0.482 ± 0.004`; without the interval where there is none."""
    if half is None or half != half:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {half:.{digits}f}"
