"""Ctrl-C and SIGTERM during long work: noted, and heeded where nothing is lost."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Stopped(Exception):
    """A signal ended the work; all is saved, and the message says how to go on."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


def asked_to_end(code: int) -> int | None:
    """The signal that asked for an end, of a process that ended with this code for one."""
    number = code - 128 if code > 128 else -code
    return number if number in (signal.SIGINT, signal.SIGTERM) else None


@contextmanager
def noted() -> Iterator[list[int]]:
    """The signals that came so far; a second one of a kind is not held back."""
    caught: list[int] = []
    before: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        caught.append(number)
        signal.signal(number, before[number])

    for each in (signal.SIGINT, signal.SIGTERM):
        now = signal.getsignal(each)
        if now is not None:  # None: set by another language's code, and could not be put back
            before[each] = now
    try:
        for number in before:
            signal.signal(number, note)
    except ValueError:  # not the main thread: signals are somebody else's
        before.clear()
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
