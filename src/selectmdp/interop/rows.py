"""Copies of a host environment in one process, one after the other: rows of a block.

The training process runs them so where it must, and each worker process runs its share. An
episode's seed follows from its row's first seed and its number alone, so that what is played does
not depend on how many processes play it.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from typing import Any

import numpy as np

from selectmdp.factories import told
from selectmdp.interop.adapter import hosted
from selectmdp.interop.block import CHOOSING, CLOSING, MAKING, RESETTING, STEPPING, TELLING, Block
from selectmdp.interop.edge import all_picks, made_picks, outcome, partial_rewards, put
from selectmdp.spec import SelectError, WorldFault
from selectmdp.types import Observation


class Rows:
    """The copies of some rows, as worker number `worker`."""

    def __init__(
        self, make: Callable[[], Any], block: Block, rows: range, worker: int, partial: bool
    ) -> None:
        """None is made yet."""
        self.block, self.rows, self.worker, self._partial = block, rows, worker, partial
        self._factory = make
        self._envs: dict[int, Any] = {}
        self._now = {row: {n: part[row] for n, part in block.now.items()} for row in rows}
        self._last = {row: {n: part[row] for n, part in block.last.items()} for row in rows}

    def make(self) -> None:
        """All copies; who asks closes them, also where one could not be made."""
        with self._faults():
            for row in self.rows:
                self._now_at(row, MAKING)
                env = self._envs[row] = hosted(self._factory(), "the factory")
                if env.spec != self.block.spec:
                    raise SelectError(f"its spec is {env.spec}, the first one's {self.block.spec}")

    def do(self, command: bytes) -> None:
        """`r`eset all; `s`tep all; or each chooses `g`reedily, then steps."""
        with self._faults():
            for row, env in self._envs.items():
                COMMANDS[command](self, row, env)

    def close(self) -> None:
        """Close all that can be."""
        while self._envs:
            row, env = self._envs.popitem()
            self._now_at(row, CLOSING)
            closed(env, f"environment {row}")

    def _reset(self, row: int, env: Any) -> None:
        self.block.episode[row] = 0
        self._begin(row, env, int(self.block.first_seed[row]))

    def _begin(self, row: int, env: Any, seed: int) -> None:
        self.block.seed[row], self.block.age[row] = seed, 0
        self._now_at(row, RESETTING)
        put(env.reset(seed), self._now[row])

    def _step(self, row: int, env: Any) -> None:
        block = self.block
        age = block.age[row] = int(block.age[row]) + 1
        action = made_picks(block.items[row], block.commands[row])
        made = len(action.items)
        if self._partial:
            self._now_at(row, TELLING)
            block.partial[row, :made] = partial_rewards(env.partial_reward(action), made)
        self._now_at(row, STEPPING)
        seen, reward, terminated, truncated = outcome(env.step(action))
        limit = getattr(env, "time_limit", None)
        truncated = not terminated and (truncated or (limit is not None and age >= limit))
        ended = terminated or truncated
        put(seen, (self._last if ended else self._now)[row])
        block.reward[row], block.terminated[row] = reward, terminated
        block.truncated[row] = truncated
        block.partial[row, max(made - 1, 0) :] = reward  # the phases' sum is the step's
        if ended:
            block.episode[row] += 1
            entropy = [int(block.first_seed[row]), int(block.episode[row])]
            self._begin(row, env, int(np.random.SeedSequence(entropy).generate_state(1)[0]))

    def _greedy(self, row: int, env: Any) -> None:
        from selectmdp.interop.spaces import check_action

        block, now = self.block, self._now[row]
        self._now_at(row, CHOOSING)
        picks = all_picks(env.greedy(), block.spec.num_select)
        after = getattr(env, "legal_after", None)
        if after is not None:
            after = partial(after, Observation(**{n: p.copy() for n, p in now.items()}))
        legal = now["legal"] & now["present"][:, None]
        picks = check_action(block.spec, legal, picks, after)
        block.items[row], block.commands[row] = picks
        self._step(row, env)

    def _now_at(self, row: int, doing: int) -> None:
        block, worker = self.block, self.worker
        block.row[worker], block.doing[worker] = row, doing
        block.calls[worker] += 1

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """What goes wrong is told with where, and what is printed is not among the results."""
        try:
            with redirect_stdout(sys.stderr):
                yield
        except SelectError as error:
            where = self.block.where(self.worker)
            raise WorldFault(f"{where} is wrong: {error}") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # simulators in other languages raise their own kinds
            where = self.block.where(self.worker)
            raise WorldFault(f"{where} raised {told(error)}{line_of(error)}") from error


COMMANDS = {b"r": Rows._reset, b"s": Rows._step, b"g": Rows._greedy}


def closed(env: Any, which: str) -> None:
    """Close an environment; what was learned in it does not depend on how that goes."""
    try:
        with redirect_stdout(sys.stderr):
            getattr(env, "close", lambda: None)()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        warnings.warn(
            f"{which}: close() raised {told(error)}{line_of(error)}; what it holds may stay open",
            stacklevel=2,
        )


def line_of(error: BaseException) -> str:
    """Which line raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
