"""What a training run tells of itself: `metrics.csv`, and the same numbers as TensorBoard events.

A run that was killed can go on from a checkpoint: rows after that step, and a last line that was
cut off, are dropped. TensorBoard hides what it was told after that step.
"""

import math
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from selectmdp.files import MOST_TABLE, read_bounded, told, write_whole
from selectmdp.spec import PlaceFault, SelectError, check_count

COLUMNS = (
    "step",
    "seconds",
    "loss",
    "epsilon",
    "train_reward",
    "parameter_sets",
    "steps_per_second",
    "eval_reward",
    "eval_ci95",
)
WHOLE = ("step", "parameter_sets")
"""Columns of whole numbers."""
TAGS = {
    "seconds": "speed/seconds",
    "loss": "train/loss",
    "epsilon": "train/epsilon",
    "train_reward": "train/reward",
    "parameter_sets": "train/parameter_sets",
    "steps_per_second": "speed/steps_per_second",
    "eval_reward": "eval/reward",
    "eval_ci95": "eval/ci95",
}
"""What TensorBoard calls them; it shows what comes before the slash as one group."""
FLUSH_SECONDS = 5.0
"""Events reach the disk at least this often, as far as rows come; flushing waits for the disk."""

EVENTS = "events.out.tfevents"

_HEADER = ",".join(COLUMNS)


class RunLog:
    """Writes one row a call; a row of the CSV is on its way to the disk when `row` returns."""

    def __init__(self, folder: Path, resume_step: int | None = None) -> None:
        """Go on after `resume_step`; without it, begin anew and drop what an earlier run left."""
        keep = -1 if resume_step is None else check_count("resume_step", resume_step)
        self.path = folder / "metrics.csv"
        lines = [line for line, row in _lines(self.path) if row["step"] <= keep]
        write_whole(self.path, "".join(f"{line}\n" for line in [_HEADER, *lines]).encode())
        self._events = _Events(folder / "tensorboard", purge_step=keep + 1)
        try:
            with told(self.path):
                self._csv = self.path.open("a", encoding="utf-8", newline="")
        except SelectError:
            self._events.close()
            raise

    def row(self, step: int, **values: float | None) -> None:
        """Append what is known at `step`, by column; a number that is not finite becomes nan."""
        unknown = sorted(set(values) - set(TAGS))
        if unknown:
            raise SelectError(f"no column {', '.join(unknown)}: the columns are {_HEADER}")
        step = check_count("step", step)
        numbers: dict[str, float] = {"step": step}
        for name, value in values.items():
            if value is not None:
                numbers[name] = float(value) if math.isfinite(value) else math.nan
        cells = (_cell(name, numbers[name]) if name in numbers else "" for name in COLUMNS)
        with told(self.path):
            self._csv.write(",".join(cells) + "\n")
            self._csv.flush()
        self._events.write(step, {TAGS[name]: numbers[name] for name in TAGS if name in numbers})

    def close(self) -> None:
        """Close both files; closing twice does no harm."""
        try:
            with told(self.path):
                self._csv.close()
        finally:
            self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except SelectError:
            if kind is None:  # else the first error tells more
                raise


def read_rows(path: Path) -> list[dict[str, float]]:
    """The rows of a `metrics.csv`, empty cells left out; a last line cut off is passed over."""
    if not path.is_file():
        raise PlaceFault(f"{path}: no such file; a training run writes it into its folder")
    return [row for _, row in _lines(path)]


class _Events:
    """A file of TensorBoard events.

    tensorboardX's SummaryWriter writes in a thread that dies when the disk is full, and the next
    calls wait for it for ever; its RecordWriter writes here and now, and raises.
    """

    def __init__(self, folder: Path, purge_step: int) -> None:
        from tensorboardX.proto import event_pb2, summary_pb2
        from tensorboardX.record_writer import RecordWriter

        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._closed = False
        self._flushed = -math.inf
        self._path = folder
        with told(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            others = [path.name.split(".") for path in folder.glob(f"{EVENTS}.*")]
            earlier = len(others)
            # TensorBoard reads by name: the number orders files of one second, and a clock that
            # was set back must not put this file before those it goes on from.
            stamps = [int(parts[3]) for parts in others if parts[3].isdecimal()]
            stamp = max([int(time.time()), *stamps])
            self._path = folder / f"{EVENTS}.{stamp}.{socket.gethostname()}.{earlier:04d}"
            self._path.touch(exist_ok=False)  # a link of this name would be written through
            self._file = RecordWriter(str(self._path))
        started = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._add(self._event(wall_time=time.time(), file_version="brain.Event:2"))
        if earlier:
            self._add(self._event(wall_time=time.time(), step=purge_step, session_log=started))

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        value = self._summary.Value
        summary = self._summary(
            value=[value(tag=tag, simple_value=number) for tag, number in scalars.items()]
        )
        self._add(self._event(wall_time=time.time(), step=step, summary=summary))
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            with told(self._path):
                self._file.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with told(self._path):
            self._file.close()

    def _add(self, event: object) -> None:
        with told(self._path):
            self._file.write(event.SerializeToString())  # type: ignore[attr-defined]


def _lines(path: Path) -> list[tuple[str, dict[str, float]]]:
    """Each whole line of a log with its numbers; none where there is no file yet."""
    if not path.exists():
        return []
    try:
        text = read_bounded(path, MOST_TABLE).decode(errors="replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PlaceFault(f"cannot read {path}: {reason}; mend that first") from error
    *lines, cut = text.replace("\r\n", "\n").split("\n")
    if not lines and _HEADER.startswith(cut):  # killed before the first line was out
        return []
    if not lines or lines[0] != _HEADER:
        raise PlaceFault(
            f"{path} is not the log of a training run: its first line should be {_HEADER!r}; "
            "choose another folder, or move that file away"
        )
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        row = _numbers(line)
        if row is not None:
            rows.append((line, row))
        elif number < len(lines):
            raise PlaceFault(f"{path}, line {number}: {line[:60]!r} is damaged; delete that line")
    return rows


def _numbers(line: str) -> dict[str, float] | None:
    """A line's numbers by column; None if it is damaged."""
    cells = line.split(",")
    if len(cells) != len(COLUMNS) or not cells[0]:
        return None
    try:
        return {
            name: int(cell) if name in WHOLE and cell != "nan" else float(cell)
            for name, cell in zip(COLUMNS, cells, strict=True)
            if cell
        }
    except ValueError:
        return None


def _cell(name: str, number: float) -> str:
    if name in WHOLE and not math.isnan(number):
        return str(int(number))
    return f"{number:.7g}"  # as many digits as a float32 has
