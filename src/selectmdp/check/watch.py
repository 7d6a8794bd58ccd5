"""Which call of a host world is under way while it is checked, and whether it ever ends.

A hang is ended by an alarm, which Python hears between two lines of its own and in whatever sleeps
or waits: code in C that never comes back is heard no more than Ctrl-C is.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any

CALLS = ("reset", "step", "greedy", "partial_reward", "legal_after")


class Hangs(BaseException):
    """A call took longer than it may; no `except Exception` of a world stops it."""


class Watched:
    """A host world as it is, but that it knows what it is doing."""

    def __init__(self, env: Any, timeout: float | None) -> None:
        self._env, self._timeout, self._steps = env, timeout, 0

    def __getattr__(self, name: str) -> Any:
        held = getattr(self._env, name)
        if name not in CALLS or not callable(held):
            return held

        @wraps(held)
        def call(*given: Any, **named: Any) -> Any:
            self._steps = {"reset": 0, "step": self._steps + 1}.get(name, self._steps)
            with watched(self._doing(name), self._timeout):
                return held(*given, **named)

        return call

    def _doing(self, name: str) -> str:
        if name in ("reset", "step"):
            return name if name == "reset" else f"step {self._steps} of an episode"
        return f"{name} after step {self._steps} of an episode"


@contextmanager
def watched(doing: str, timeout: float | None) -> Iterator[None]:
    """Within `timeout` seconds, where this thread can be told; who interrupts hears what was on."""
    limited = timeout is not None and hasattr(signal, "SIGALRM")
    limited = limited and threading.current_thread() is threading.main_thread()

    def late(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise Hangs(f"{doing} hangs: no end in {timeout:g} seconds (timeout)")

    if limited:
        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, timeout or 0.0)
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(f"in {doing}") from stopped
    finally:
        if limited:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
