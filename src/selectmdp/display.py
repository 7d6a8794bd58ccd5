"""Training as it goes on, on standard error: one live line on a terminal, now and then a plain one
in a log."""

import time
from collections import deque
from types import TracebackType
from typing import Self

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from selectmdp import console

WINDOW = 20.0
"""Seconds over which speed is measured."""
SAMPLE = 0.25
"""Seconds between two samples of the speed, at least."""
PLAIN_EVERY = 10.0
"""Seconds between two lines where there is no terminal."""
BAR_LEAST, BAR_MOST = 6, 40
ROOMY = 100
"""Columns from which units are written out."""
FORMATS = {
    "note": "{}",
    "reward": "reward {:.3f}",
    "loss": "loss {:.3g}",
    "epsilon": "ε {:.2f}",
    "parameter_sets": "sets {:,}",
}
"""How values are shown, the most important first."""


class TrainingDisplay:
    """How far a training is, how fast, and how well; use it as a context manager."""

    def __init__(self, title: str, total_steps: int, start_step: int = 0) -> None:
        self._title, self._total, self._step = title, total_steps, start_step
        self._values: dict[str, str] = {}
        self._rate: float | None = None
        self._samples = deque([(time.monotonic(), start_step)])
        self._console: Console = console.aside
        self._live: Live | None = None
        self._printed = time.monotonic()
        self._unsaid = False

    def __enter__(self) -> Self:
        self._console = console.aside
        self._samples = deque([(time.monotonic(), self._step)])
        self._printed = time.monotonic()
        self.println(self._title)
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            # standard output stays for results: rich would send it here as well
            self._live = Live(
                get_renderable=self._line, console=self._console, redirect_stdout=False
            )
            self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        elif self._unsaid:
            self._say()

    def update(
        self,
        step: int,
        *,
        reward: float | None = None,
        loss: float | None = None,
        epsilon: float | None = None,
        parameter_sets: int | None = None,
        note: str | None = None,
    ) -> None:
        """Tell where training is; a value stays shown until the next, and `note=""` ends a note."""
        given = {
            "note": note,
            "reward": reward,
            "loss": loss,
            "epsilon": epsilon,
            "parameter_sets": parameter_sets,
        }
        for name, value in given.items():
            if value is not None:
                self._values[name] = FORMATS[name].format(value)
        self._step = step
        self._measure(step)
        self._unsaid = True
        if self._live is None and time.monotonic() - self._printed >= PLAIN_EVERY:
            self._say()

    def println(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(Text(text), soft_wrap=True)

    def _measure(self, step: int) -> None:
        """Steps a second, from the oldest sample of the window until now."""
        now = time.monotonic()
        while len(self._samples) > 1 and now - self._samples[1][0] >= WINDOW:
            self._samples.popleft()
        since, first = self._samples[0]
        if now > since and step > first:
            self._rate = (step - first) / (now - since)
        if now - self._samples[-1][0] >= SAMPLE:
            self._samples.append((now, step))

    def _line(self) -> Table:
        """The live line: what has no room is left out from its end, the bar gets the rest."""
        width = self._console.width
        pieces = self._pieces("/s" if width < ROOMY else " steps/s")
        while len(pieces) > 1 and cell_len("  ".join(pieces)) + 2 + BAR_LEAST > width:
            pieces.pop()
        text = Text("  ".join(pieces), no_wrap=True, overflow="ellipsis")
        bar = max(1, min(BAR_MOST, width - text.cell_len - 2))
        grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_row(ProgressBar(total=1.0, completed=self._share(), width=bar), text)
        return grid

    def _say(self) -> None:
        """A line for a log."""
        share, *rest = self._pieces(" steps/s")
        where = f"step {self._step:,} of {self._total:,} ({share.strip()})"
        self.println(", ".join([where, *rest]))
        self._printed = time.monotonic()
        self._unsaid = False

    def _pieces(self, per_second: str) -> list[str]:
        """What to show, the most important first."""
        percent = min(100, 100 * self._step // max(1, self._total))  # 100 only when all is done
        pieces = [f"{percent:3d}%"]
        if self._rate is not None:
            left = max(0, self._total - self._step) / self._rate
            pieces += [f"{_speed(self._rate)}{per_second}", f"{_clock(left)} left"]
        return pieces + [self._values[name] for name in FORMATS if self._values.get(name)]

    def _share(self) -> float:
        return min(1.0, self._step / self._total) if self._total > 0 else 1.0


def _speed(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _clock(seconds: float) -> str:
    """`3:07`, `1:02:03`."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
