"""A worker process: its share of the copies of a host environment, stepped when told.

It is started by `interop.workers` with an order in JSON, finds the world by its name, and then
reads one letter a command and answers with one line: empty when done, or what went wrong. It ends
when its starter does, even while an environment hangs, and what its environments started with it.
"""

import json
import mmap
import os
import signal
import socket
import sys
import threading
from contextlib import ExitStack, closing, suppress
from functools import partial
from types import FrameType
from typing import Any

from selectmdp.factories import found, made
from selectmdp.interop.block import Block
from selectmdp.interop.rows import Rows
from selectmdp.spec import SelectError, Spec

SIGNALS = signal.SIGINT, signal.SIGTERM


def main() -> None:
    """Follow the order in the command line."""
    order = json.loads(sys.argv[1])
    for number in SIGNALS:
        signal.signal(number, _unheeded)
    held = partial(signal.pthread_sigmask, signal.SIG_BLOCK, SIGNALS)
    freed = partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, SIGNALS)
    wire = socket.socket(fileno=order["wire"])
    os.register_at_fork(before=held, after_in_parent=freed, after_in_child=partial(_heed, wire))
    threading.Thread(target=_end_with, args=(order["lifeline"],), daemon=True).start()
    with suppress(BrokenPipeError, ConnectionResetError):  # the fault of another was heard first
        _serve(order, wire)
    os.killpg(0, signal.SIGTERM)  # what its environments left behind


def _serve(order: dict[str, Any], wire: socket.socket) -> None:
    """A fault is told before anything is closed, which may take its time."""
    with ExitStack() as opened:
        try:
            rows = opened.enter_context(closing(_rows(order)))
            rows.make()
            wire.sendall(b"\n")
            while command := wire.recv(1):
                rows.do(command)
                wire.sendall(b"\n")
        except SelectError as error:
            wire.sendall(json.dumps(str(error)).encode() + b"\n")


def _rows(order: dict[str, Any]) -> Rows:
    spec = Spec(**order["spec"])
    sizes = (spec, order["num_envs"], order["workers"])
    memory = mmap.mmap(order["memory"], Block.size(*sizes))
    options = {name: _tuple(value) for name, value in order["options"].items()}
    block, name = Block(*sizes, memory), order["address"]
    block.row[order["worker"]] = order["rows"][0]
    factory = found(name)
    return Rows(
        lambda: made(factory, name, options),
        block,
        range(*order["rows"]),
        order["worker"],
        order["partial"],
    )


def _end_with(lifeline: int) -> None:
    """The starter holds the other end of this pipe, and lets go of it when it ends."""
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)  # this process, and what its environments started


def _unheeded(number: int, frame: FrameType | None) -> None:
    """A signal is the starter's to heed, and it ends this process. SIG_IGN would not do: programs
    that an environment starts would inherit it, and be deaf to their own terminate()."""


def _heed(wire: socket.socket) -> None:
    """A forked process is an environment's: it hears, and lets go of what tells of our end."""
    wire.close()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _tuple(value: Any) -> Any:
    """Options as they were before JSON, which knows lists alone."""
    return tuple(_tuple(part) for part in value) if isinstance(value, list) else value
