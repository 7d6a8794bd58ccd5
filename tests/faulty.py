"""Worlds in NumPy with one fault each, which shows in some copy at some step; no JAX here."""

import os
import signal
import subprocess
import time
from typing import Any

import numpy as np

from selectmdp.spec import Spec


class Sound:
    """Two of four shelves are filled in a step; what is sold pays."""

    time_limit = 7
    command_names = ("half", "full")

    def __init__(self, num_items: int = 4, after: int = 0) -> None:
        self.spec = Spec(num_items, 2, 0, 0, num_select=2, num_commands=2)
        self.after = after
        self.steps = 0

    def reset(self, seed: int) -> Any:
        self.rng = np.random.default_rng(seed)
        self.demand = self.rng.uniform(0.1, 0.5, self.spec.num_items)
        self.level = np.ones(self.spec.num_items)
        return self._seen()

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.after and self.steps > self.after:
            return self.broken(action)
        return self.sold(action)

    def sold(self, action: Any) -> Any:
        self.level[action.items] = 0.5 + 0.5 * action.commands
        sold = np.minimum(self.level, self.demand * self.rng.uniform(0.5, 1.5))
        self.level -= sold
        return self._seen(), float(sold.sum()), False

    def broken(self, action: Any) -> Any:
        return self.sold(action)

    def _seen(self) -> Any:
        return {"items": np.stack([self.level, self.demand], axis=1)}


class Raises(Sound):
    def broken(self, action: Any) -> Any:
        return 1 // 0


class PanicException(BaseException):
    """As simulators written in Rust raise it."""


class Panics(Sound):
    def broken(self, action: Any) -> Any:
        raise PanicException("index out of bounds")


class Mute(Sound):
    class Error(Exception):
        def __str__(self) -> str:
            raise ValueError("nothing can be said")

    def broken(self, action: Any) -> Any:
        raise self.Error


class Hangs(Sound):
    def broken(self, action: Any) -> Any:
        time.sleep(3600)


class TellsAndHangs(Sound):
    def step(self, action: Any) -> Any:
        print("hanging", flush=True)
        time.sleep(3600)


class Nan(Sound):
    def broken(self, action: Any) -> Any:
        self.level[1] = np.nan
        return self._seen(), 1.0, False


class NanReward(Sound):
    def broken(self, action: Any) -> Any:
        return self._seen(), float("nan"), False


class Shape(Sound):
    def broken(self, action: Any) -> Any:
        return {"items": np.zeros((5, 2))}, 1.0, False


class Exits(Sound):
    def broken(self, action: Any) -> Any:
        os._exit(3)


class Killed(Sound):
    def broken(self, action: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class Tired(Sound):
    """Copies cannot be made for ever."""

    def __init__(self, num_items: int = 4, after: int = 0) -> None:
        raise OSError("no licence left")


class Simulator(Sound):
    """Each copy has a program beside it; `book` is a folder with a file for each, named by its id,
    in which what became of it is written."""

    def __init__(self, num_items: int = 4, after: int = 0, end: str = "", book: str = "") -> None:
        super().__init__(num_items, after)
        self.end, self.child = end, subprocess.Popen(["sleep", "3600"])
        self.page = os.path.join(book, str(self.child.pid))
        self._note("started")

    def broken(self, action: Any) -> Any:
        if self.end == "hangs":
            time.sleep(3600)
        return 1 // 0 if self.end == "raises" else self.sold(action)

    def close(self) -> None:
        if self.end == "forgets":
            return
        if self.end == "lingers":
            time.sleep(3600)
        self.child.terminate()
        self._note(f"closed {self.child.wait()}")

    def _note(self, what: str) -> None:
        with open(self.page, "w") as page:
            page.write(what)


class Forked(Sound):
    """A forked process beside it, as multiprocessing makes them."""

    def close(self) -> None:
        child = os.fork()
        if child == 0:
            time.sleep(3600)
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)


class ForkedAndDead(Forked):
    """Dies while what it forked lives on."""

    def broken(self, action: Any) -> Any:
        if os.fork() == 0:
            time.sleep(3600)
        os._exit(3)


class SlowToClose(Sound):
    """The second copy cannot be made, and the first takes its time to close."""

    made = 0

    def __init__(self, num_items: int = 4, after: int = 0) -> None:
        super().__init__(num_items, after)
        SlowToClose.made += 1
        if SlowToClose.made > 1:
            raise OSError("no licence for a second copy")

    def close(self) -> None:
        time.sleep(3600)


class Pairs(Sound):
    """`full` may be given to one shelf alone; what a pick would earn is known."""

    def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
        full = np.count_nonzero(np.asarray(chosen) & (np.asarray(command) == 1)) > 0
        legal = np.ones((self.spec.num_items, 2), bool)
        legal[:, 1] = not full
        return legal

    def sold(self, action: Any) -> Any:
        assert np.count_nonzero(action.commands) <= 1
        return self._seen(), float(self.partial_reward(action)[-1]), False

    def partial_reward(self, action: Any) -> Any:
        return np.cumsum(self.demand[action.items] * (1 + action.commands))

    def greedy(self) -> Any:
        return np.argsort(-self.demand)[:2], np.array([1, 0])
