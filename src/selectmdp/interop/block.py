"""The arrays through which E copies of a host environment are told what to do, and tell.

One block of bytes, so that processes can share it: nothing is sent from one to the other but a
command's letter. Where each copy is stands in it too, so that one that hangs or dies can be named.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from selectmdp.spec import Spec
from selectmdp.types import expected_shapes

DOING = ("being made", "reset", "step {age}", "greedy after step {age}",
         "partial_reward before step {age}", "being closed")  # fmt: skip
MAKING, RESETTING, STEPPING, CHOOSING, TELLING, CLOSING = range(len(DOING))


class Block:
    """Arrays by name; rows are copies of the environment."""

    items: npt.NDArray[np.int64]
    commands: npt.NDArray[np.int64]
    """Picks [E, K]."""
    first_seed: npt.NDArray[np.int64]
    """Of the first episode [E]; later ones follow from it."""
    seed: npt.NDArray[np.int64]
    """Of the episode under way [E]."""
    episode: npt.NDArray[np.int64]
    age: npt.NDArray[np.int64]
    """Steps of the episode so far [E], the one under way counted."""
    reward: npt.NDArray[np.float64]
    partial: npt.NDArray[np.float64]
    """The reward had only the first picks been made [E, K]."""
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    row: npt.NDArray[np.int64]
    """Where each worker is [W]: which row, doing what, and how many calls it has made."""
    doing: npt.NDArray[np.int64]
    calls: npt.NDArray[np.int64]

    def __init__(self, spec: Spec, num_envs: int, workers: int, memory: Any = None) -> None:
        self.spec, self.num_envs, self.workers = spec, num_envs, workers
        buffer = bytearray(self.size(spec, num_envs, workers)) if memory is None else memory
        self.now: dict[str, npt.NDArray[Any]] = {}
        """What is seen [E, …], after resets."""
        self.last: dict[str, npt.NDArray[Any]] = {}
        """What an episode that just ended was seen to lead to."""
        for name, shape, kind, start in _places(spec, num_envs, workers):
            count = int(np.prod(shape))
            array = np.frombuffer(buffer, kind, count, start).reshape(shape)
            group, _, part = name.rpartition(".")
            if group:
                getattr(self, group)[part] = array
            else:
                setattr(self, name, array)

    @staticmethod
    def size(spec: Spec, num_envs: int, workers: int) -> int:
        """Bytes."""
        *_, (_, shape, kind, start) = _places(spec, num_envs, workers)
        return start + int(np.prod(shape)) * np.dtype(kind).itemsize

    def where(self, worker: int) -> str:
        """Where a worker is, for people: the environment, its step, and how to get there."""
        row, doing = int(self.row[worker]), int(self.doing[worker])
        what = DOING[doing].format(age=int(self.age[row]))
        if doing in (MAKING, CLOSING):
            return f"environment {row}, {what},"
        return f"environment {row}, {what} of the episode with seed {int(self.seed[row])},"


def _places(
    spec: Spec, num_envs: int, workers: int
) -> Iterator[tuple[str, tuple[int, ...], Any, int]]:
    """Name, shape, type and first byte of each array."""
    picks, each = (num_envs, spec.num_select), (num_envs,)
    parts: list[tuple[str, tuple[int, ...], Any]] = [
        ("items", picks, np.int64),
        ("commands", picks, np.int64),
        *((name, each, np.int64) for name in ("first_seed", "seed", "episode", "age")),
        ("reward", each, np.float64),
        ("partial", picks, np.float64),
        ("terminated", each, np.bool_),
        ("truncated", each, np.bool_),
        *((name, (workers,), np.int64) for name in ("row", "doing", "calls")),
    ]
    for group in ("now", "last"):
        for name, shape in expected_shapes(spec).items():
            kind = np.float32 if name in ("items", "context") else np.bool_
            parts.append((f"{group}.{name}", (*each, *shape), kind))
    start = 0
    for name, whole, kind in parts:
        yield name, whole, kind, start
        start += -(-int(np.prod(whole)) * np.dtype(kind).itemsize // 64) * 64
