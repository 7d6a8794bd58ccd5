"""Host environments in worker processes that share one block of memory with this one.

A worker is a fresh Python process that finds the world by its name; nothing is pickled. One that
raises, hangs, or dies ends all of them, with one error that names the environment and its step.
Each leads a process group of its own, and with it ends what its environments started. POSIX only:
file descriptors are handed over.
"""

import json
import mmap
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from selectmdp.files import told
from selectmdp.interop.block import CLOSING, Block
from selectmdp.spec import Spec, WorldFault

BOOT = """
import sys
sys.path[:] = {path!r}
from selectmdp.interop.worker import main
main()
"""
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB", "NUMEXPR")
}
"""The cores are the workers'; and a sum does not depend on how many threads there are."""
GRACE = 2.0
"""Seconds that all workers together have to close their environments."""


class Workers:
    """E copies of an environment, spread over W processes."""

    def __init__(
        self,
        address: str,
        options: Mapping[str, Any],
        spec: Spec,
        num_envs: int,
        workers: int,
        timeout: float,
        partial: bool = False,
    ) -> None:
        self.timeout = timeout
        size = Block.size(spec, num_envs, workers)
        with tempfile.TemporaryFile() as file:  # has no name, so nothing is ever left behind
            with told(Path(tempfile.gettempdir())):
                file.write(
                    bytes(size)
                )  # where there is no room, it is said here and kills no worker
                file.flush()
            self.block = Block(spec, num_envs, workers, mmap.mmap(file.fileno(), size))
            order = {
                "address": address,
                "options": options,
                "spec": asdict(spec),
                "num_envs": num_envs,
                "workers": workers,
                "partial": partial,
            }
            bounds = [num_envs * number // workers for number in range(workers + 1)]
            self._each: list[_Worker] = []
            self._selector = selectors.DefaultSelector()
            try:
                for number in range(workers):
                    own = {"worker": number, "rows": bounds[number : number + 2]}
                    self._each.append(_Worker({**order, **own}, file.fileno()))
                    self._selector.register(self._each[-1].wire, selectors.EVENT_READ, number)
                self._answers()
            except BaseException:
                self.close()
                raise

    def do(self, command: bytes) -> None:
        """A command to all, and their answers."""
        for number, worker in enumerate(self._each):
            try:
                worker.wire.sendall(command)
            except OSError:  # it died since it last answered
                self._fail(number, self._each[number].death())
        self._answers()

    def close(self, grace: float = GRACE, fault: bool = False) -> None:
        """End all workers; none is left behind, whatever it is doing.

        An environment that was not closed in time is told of. After a fault, which may be that it
        hangs, only if its closing is what took too long.
        """
        for worker in self._each:
            worker.wire.close()
        until = time.monotonic() + grace
        ended = [worker.end(max(until - time.monotonic(), 0.0)) for worker in self._each]
        self._each.clear()
        self._selector.close()
        for number, in_time in enumerate(ended):
            if not in_time and (not fault or self.block.doing[number] == CLOSING):
                warnings.warn(
                    f"{self.block.where(number)} did not end: it was to be closed, and was killed "
                    f"after {grace:g} seconds",
                    stacklevel=2,
                )

    def _answers(self) -> None:
        waiting, before = set(range(len(self._each))), self.block.calls.copy()
        while waiting:
            ready = self._selector.select(self.timeout)
            for key, _ in ready:
                told = self._each[key.data].answer()
                if told:
                    self._fail(key.data, told)
                waiting.discard(key.data)
            if not ready:
                calls = self.block.calls.copy()
                for number in waiting:
                    if calls[number] == before[number]:
                        self._fail(number, f"hangs: no end in {self.timeout:g} seconds (timeout)")
                before = calls

    def _fail(self, number: int, told: str) -> None:
        """`told` may name the environment already."""
        if not told.startswith("environment") and not told.startswith("'"):
            told = f"{self.block.where(number)} {told}"
        self.close(fault=True)
        raise WorldFault(told)


class _Worker:
    """One process, and the wire to it."""

    def __init__(self, order: dict[str, Any], memory: int) -> None:
        self.wire, theirs = socket.socketpair()
        held, self._lifeline = os.pipe()
        order = {**order, "memory": memory, "wire": theirs.fileno(), "lifeline": held}
        boot = BOOT.format(path=[path or os.getcwd() for path in sys.path])
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", boot, json.dumps(order)],
                pass_fds=(memory, theirs.fileno(), held),
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a world prints must not be taken for our output
                env={**ONE_THREAD, **os.environ},
                start_new_session=True,  # Ctrl-C is for this process to heed
            )
        finally:
            theirs.close()
            os.close(held)

    def answer(self) -> str:
        """Empty: done; else what went wrong."""
        line = b""
        while not line.endswith(b"\n"):
            try:
                more = self.wire.recv(65536)
            except OSError:
                more = b""
            if not more:
                return self.death()
            line += more
        return str(json.loads(line)) if line.strip() else ""

    def death(self) -> str:
        """How the process ended."""
        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "let go of its wire: its process does not answer any more"
        if code < 0:
            hint = ": is there memory enough?" if code == -signal.SIGKILL else ""
            return f"died with its process (killed by {signal.Signals(-code).name}){hint}"
        return f"ended its process (exit code {code}): a world must raise, not exit"

    def end(self, grace: float) -> bool:
        """Whether it ended by itself; nothing that its environments started is left either way."""
        in_time = True
        try:
            self.process.wait(grace)
        except subprocess.TimeoutExpired:
            in_time = False
        with suppress(ProcessLookupError, PermissionError):  # nothing is left, or only corpses
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._lifeline)
        return in_time
