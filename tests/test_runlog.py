"""What a training run leaves behind and shows: literal files, literal lines."""

import errno
import io
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from rich.console import Console

from selectmdp import console
from selectmdp.curves import save_curve
from selectmdp.display import TrainingDisplay
from selectmdp.runlog import RunLog, read_rows
from selectmdp.spec import SelectError

HEADER = (
    "step,seconds,loss,epsilon,train_reward,parameter_sets,steps_per_second,eval_reward,eval_ci95\n"
)
REFERENCES = {"random": (0.2, 0.01), "greedy": (0.5, None)}
CURVE = [
    {"step": 0, "eval_reward": 0.2, "eval_ci95": 0.02},
    {"step": 500, "loss": 0.1},
    {"step": 1000, "eval_reward": 0.4, "eval_ci95": float("nan")},
]


def write(folder: Path, text: str) -> Path:
    path = folder / "metrics.csv"
    path.write_text(text)
    return path


def events(folder: Path) -> list[Any]:
    """All events, in the order in which TensorBoard reads them."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted((folder / "tensorboard").iterdir()):
        data, place = path.read_bytes(), 0
        while place < len(data):  # length, its checksum, the event, its checksum
            (length,) = struct.unpack_from("<Q", data, place)
            found.append(Event.FromString(data[place + 12 : place + 12 + length]))
            place += 16 + length
    return found


def scalars(folder: Path) -> list[tuple[int, str, float]]:
    return [
        (event.step, value.tag, value.simple_value)
        for event in events(folder)
        for value in event.summary.value
    ]


def test_the_log_is_a_table_with_empty_cells_for_what_is_unknown(tmp_path: Path) -> None:
    with RunLog(tmp_path / "new" / "run") as log:
        log.row(0, eval_reward=0.25, eval_ci95=0.0125)
        log.row(1_000_000, seconds=12.5, loss=0.1, epsilon=0.05, parameter_sets=3)
        log.row(2_000_000, loss=float("inf"), train_reward=None, steps_per_second=1 / 3)
    text = (tmp_path / "new" / "run" / "metrics.csv").read_text()
    assert text == HEADER + (
        "0,,,,,,,0.25,0.0125\n1000000,12.5,0.1,0.05,,3,,,\n2000000,,nan,,,,0.3333333,,\n"
    )


def test_a_row_can_be_read_while_the_run_goes_on(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.row(7, loss=0.5, parameter_sets=2)
        assert read_rows(tmp_path / "metrics.csv") == [
            {"step": 7, "loss": 0.5, "parameter_sets": 2}
        ]


def test_a_column_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log, pytest.raises(SelectError, match="no column los: the columns"):
        log.row(1, los=0.5)


def test_resuming_drops_later_rows_and_a_line_cut_off(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "100,,0.5,,,,,,\n200,,0.4,,,,,,\n300,,0.3,,,,,,\n400,,0.")
    with RunLog(tmp_path, resume_step=200) as log:
        log.row(250, loss=0.35)
    assert path.read_text() == HEADER + "100,,0.5,,,,,,\n200,,0.4,,,,,,\n250,,0.35,,,,,,\n"
    assert sorted(os.listdir(tmp_path)) == ["metrics.csv", "tensorboard"]


def test_a_line_without_an_end_is_dropped_even_if_it_looks_whole(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "100,,0.5,,,,,,\n200,,0.4,,,,,0.123,0.0")  # was to be 0.012
    assert read_rows(path) == [{"step": 100, "loss": 0.5}]
    RunLog(tmp_path, resume_step=200).close()
    assert path.read_text() == HEADER + "100,,0.5,,,,,,\n"


def test_a_last_line_of_rubbish_is_dropped(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "100,,0.5,,,,,,\n\0\0\0\0\n")
    assert read_rows(path) == [{"step": 100, "loss": 0.5}]


def test_a_damaged_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "100,,0.5\n200,,0.4,,,,,,\n")
    with pytest.raises(SelectError, match=r"line 2: '100,,0\.5' is damaged"):
        read_rows(path)


@pytest.mark.parametrize("text", ["", "step,sec"])
def test_a_log_killed_within_its_first_line_is_empty(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    assert read_rows(path) == []
    RunLog(tmp_path, resume_step=10).close()
    assert path.read_text() == HEADER


@pytest.mark.parametrize("text", ["date,price\n1,2\n", "step,seconds\n", "hello"])
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SelectError, match="not the log of a training run"):
        read_rows(path)
    with pytest.raises(SelectError, match="move that file away"):
        RunLog(tmp_path)
    assert path.read_text() == text


def test_a_log_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SelectError, match="no such file"):
        read_rows(tmp_path / "metrics.csv")


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.row(10, loss=0.5, epsilon=1.0, parameter_sets=4)
        log.row(20, train_reward=0.25, eval_reward=0.75, eval_ci95=0.125)
    assert events(tmp_path)[0].file_version == "brain.Event:2"
    assert scalars(tmp_path) == [
        (10, "train/loss", 0.5),
        (10, "train/epsilon", 1.0),
        (10, "train/parameter_sets", 4.0),
        (20, "train/reward", 0.25),
        (20, "eval/reward", 0.75),
        (20, "eval/ci95", 0.125),
    ]


def test_tensorboard_is_told_from_which_step_a_resumed_run_counts(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.row(100, loss=0.5)
        log.row(200, loss=0.25)
    with RunLog(tmp_path, resume_step=100) as log:
        log.row(150, loss=0.125)
    assert len(list((tmp_path / "tensorboard").iterdir())) == 2
    starts = [event.step for event in events(tmp_path) if event.session_log.status == 1]
    assert starts == [101]
    assert [step for step, _, _ in scalars(tmp_path)] == [100, 200, 150]


def test_a_clock_that_was_set_back_leaves_the_events_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now in (2_000_000_000.0, 1_000_000_000.0, 1_500_000_000.0):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        RunLog(tmp_path, resume_step=None).close()
    names = sorted(path.name for path in (tmp_path / "tensorboard").iterdir())
    assert [name[20:30] for name in names] == ["2000000000"] * 3
    assert [name[-4:] for name in names] == ["0000", "0001", "0002"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_a_full_disk_names_the_file_and_the_fix(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log._csv.close()
    log._csv = open("/dev/full", "a")  # noqa: SIM115 - the log closes it
    full = pytest.raises(SelectError, match=r"metrics\.csv: No space left on device; make room")
    with full, log:
        log.row(1, loss=0.5)


def test_a_disk_full_of_events_is_an_error_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = RunLog(tmp_path)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SelectError, match=r"tfevents.*No space left on device; make room"):
        log.row(1, loss=0.5)
    log.close()
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(SelectError, match=r"metrics\.csv: No space left"):
        RunLog(tmp_path, resume_step=1)
    assert read_rows(tmp_path / "metrics.csv") == [{"step": 1, "loss": 0.5}]


def test_a_curve_is_a_picture_of_960_by_600(tmp_path: Path) -> None:
    path = tmp_path / "pictures" / "curve.png"
    save_curve(path, CURVE, title="circle", unit="area", references=REFERENCES)
    with Image.open(path) as image:
        assert (image.format, image.size) == ("PNG", (960, 600))
        assert image.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
    assert os.listdir(path.parent) == ["curve.png"]


@pytest.mark.parametrize("rows", [[], CURVE[:1], [{"step": 5, "eval_reward": float("nan")}]])
def test_a_curve_of_one_point_or_none_can_be_drawn(
    tmp_path: Path, rows: list[dict[str, float]]
) -> None:
    path = tmp_path / "curve.png"
    save_curve(path, rows, title="a $ of " + 30 * "words ", unit="reward", references={})
    with Image.open(path) as image:
        assert image.size == (960, 600)


def test_the_curve_shows_its_references(tmp_path: Path) -> None:
    pictures = []
    for greedy in (0.5, 0.3, 0.3):
        path = tmp_path / "curve.png"
        references = {"random": (0.2, 0.01), "greedy": (greedy, None)}
        save_curve(path, CURVE, title="circle", unit="area", references=references)
        with Image.open(path) as image:
            pictures.append(image.convert("RGB").tobytes())
    assert pictures[0] != pictures[1]
    assert pictures[1] == pictures[2]


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("selectmdp.display.time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.fixture
def log_file(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    file = io.StringIO()
    monkeypatch.setattr(console, "aside", Console(file=file, highlight=False))
    return file


def test_a_log_gets_a_line_every_ten_seconds_and_one_at_the_end(
    clock: Clock, log_file: io.StringIO
) -> None:
    with TrainingDisplay("circle [seed 0]", total_steps=5000, start_step=1000) as display:
        for second in range(1, 16):
            clock.now = 100.0 + second
            display.update(1000 + 100 * second, loss=0.0123)
            if second == 3:
                display.update(1300, reward=0.4816, epsilon=0.1, parameter_sets=5)
        display.println("saved")
    assert log_file.getvalue() == (
        "circle [seed 0]\n"
        "step 2,000 of 5,000 (40%), 100 steps/s, 0:30 left, "
        "reward 0.482, loss 0.0123, ε 0.10, sets 5\n"
        "saved\n"
        "step 2,500 of 5,000 (50%), 100 steps/s, 0:25 left, "
        "reward 0.482, loss 0.0123, ε 0.10, sets 5\n"
    )


def test_speed_is_that_of_the_last_twenty_seconds(clock: Clock, log_file: io.StringIO) -> None:
    with TrainingDisplay("circle", total_steps=100_000) as display:
        for second in range(1, 121):
            clock.now += 1
            display.update(10 * second if second <= 60 else 600 + 200 * (second - 60))
    assert log_file.getvalue().splitlines()[-1] == (
        "step 12,600 of 100,000 (12%), 200 steps/s, 7:17 left"
    )


def test_nothing_is_said_twice(clock: Clock, log_file: io.StringIO) -> None:
    with TrainingDisplay("circle", total_steps=20) as display:
        clock.now += 10
        display.update(20, note="evaluating")
    assert log_file.getvalue() == (
        "circle\nstep 20 of 20 (100%), 2.0 steps/s, 0:00 left, evaluating\n"
    )


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (140, "25%  1,234 steps/s  1:00:47 left  reward 0.482  loss 0.0123  ε 0.10  sets 5"),
        (80, "25%  1,234/s  1:00:47 left  reward 0.482  loss 0.0123  ε 0.10  sets 5"),
        (60, "25%  1,234/s  1:00:47 left  reward 0.482"),
        (9, "25%"),
    ],
)
def test_on_a_terminal_one_line_fits_its_width(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, width: int, shown: str
) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=width, _environ={})
    monkeypatch.setattr(console, "aside", terminal)
    with TrainingDisplay("circle", total_steps=6_000_000, start_step=1_500_000 - 1234) as display:
        clock.now += 1
        display.update(1_500_000, reward=0.4816, loss=0.0123, epsilon=0.1, parameter_sets=5)
        lines = Console(file=io.StringIO(), width=width).render_lines(display._line())
    assert len(lines) == 1
    assert "".join(segment.text for segment in lines[0]).rstrip().endswith(shown)


def test_on_a_terminal_the_last_state_stays_and_lines_come_above_it(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    terminal = Console(
        file=file, force_terminal=True, width=80, color_system=None, _environ={"TERM": "xterm"}
    )
    monkeypatch.setattr(console, "aside", terminal)
    with TrainingDisplay("circle", total_steps=100) as display:
        clock.now += 2
        display.update(99, note="evaluating")
        display.println("saved")
        display.update(100, note="")
    text = file.getvalue()
    assert text.index("circle") < text.index("saved") < text.index("100%  50/s")
    assert "evaluating" not in text[text.index("100%") :]
