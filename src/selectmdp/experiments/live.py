"""What a person sees while many runs are made: what is running, done and left."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from rich.live import Live
from rich.table import Table

from selectmdp import console
from selectmdp.experiments.jobs import Job
from selectmdp.experiments.local import UnderWay
from selectmdp.runlog import read_rows
from selectmdp.spec import SelectError


class LiveTable:
    """A table on a terminal, a line for each finished run elsewhere; all on standard error."""

    def __init__(self, title: str) -> None:
        self._title, self._live = (
            title,
            None
            if not console.aside.is_terminal
            else Live(console=console.aside, transient=True, auto_refresh=False),
        )
        self._count, self._done, self._before = 0, 0, 0
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *ended: object) -> None:
        if self._live is not None:
            self._live.stop()

    def total(self, count: int, done: int) -> None:
        """How many runs there are, and how many of them were done before."""
        self._count, self._done, self._before = count, done, done
        console.aside.print(f"{self._title}: {count} runs, {done} of them done")

    def look(self, running: Sequence[UnderWay]) -> None:
        """What is under way now."""
        if self._live is None:
            return
        left = self._count - self._done - len(running)
        title = f"{self._title}: {self._done} done, {len(running)} running, {left} left"
        table = Table(title=f"{title}{self._time_left()}", title_justify="left")
        for column in ("run", "steps", "share", "reward"):
            table.add_column(column, justify="left" if column == "run" else "right")
        for each in running:
            step, reward = _where(each)
            steps = each.job.config.steps
            table.add_row(each.job.name, f"{step:,}", f"{step / steps:.0%}", reward)
        self._live.update(table, refresh=True)

    def ended(self, job: Job, result: Mapping[str, Any]) -> None:
        """A run came to its end."""
        self._done += 1
        told = console.plus_minus(result["mean_reward"], result["ci95"])
        minutes = result["seconds"] / 60
        console.aside.print(
            f"{self._done} of {self._count}: {job.name} {told} in {minutes:.1f} min",
            soft_wrap=True,
        )

    def measuring(self, done: int, total: int) -> None:
        """Speed is measured, nothing else runs."""
        if self._live is not None:
            self._live.update(f"cost: {done} of {total} sizes measured", refresh=True)

    def _time_left(self) -> str:
        new = self._done - self._before
        if not new:
            return ""
        minutes = (time.monotonic() - self._began) / new * (self._count - self._done) / 60
        return f", about {minutes:.0f} minutes"


def _where(running: UnderWay) -> tuple[int, str]:
    """The step a run is at, and the last reward it told; a run that only begins has neither."""
    try:
        rows = read_rows(running.folder / "metrics.csv")
    except SelectError:
        return 0, ""
    rewards = [row["eval_reward"] for row in rows if "eval_reward" in row]
    return (int(rows[-1]["step"]) if rows else 0), f"{rewards[-1]:.3f}" if rewards else ""
