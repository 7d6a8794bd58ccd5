"""E copies of a host environment, stepped together: picks in, observations out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from selectmdp.factories import address, found, made
from selectmdp.interop.block import Block
from selectmdp.interop.rows import Rows
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation


class Team(Protocol):
    """Who steps the copies: this process, or workers."""

    block: Block

    def do(self, command: bytes) -> None: ...

    def close(self) -> None: ...


class HostStep(NamedTuple):
    """What one step of E copies gave."""

    reward: npt.NDArray[np.float64]
    partial: npt.NDArray[np.float64]
    """The reward had only the first 1 … K picks been made."""
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    last: Observation
    """What each step led to, before any reset."""
    observation: Observation
    """What is seen now, after the resets."""


@dataclass(frozen=True)
class Source:
    """What makes a host environment: here, and by an address in other processes too."""

    factory: Any
    name: str
    options: Mapping[str, Any]
    address: str | None

    @classmethod
    def of(cls, task: Any, options: Mapping[str, Any]) -> "Source":
        """A `module:factory`, a class, a function, or a world to be copied."""
        if isinstance(task, str):
            return cls(found(task), task, options, task.strip())
        name = getattr(task, "__qualname__", type(task).__name__)
        plain = all(_plain(value) for value in options.values())
        return cls(task, name, options, address(task) if plain else None)

    def make(self) -> Any:
        """One environment, as its factory gives it."""
        return made(self.factory, self.name, self.options)


class Crew:
    """The copies as arrays: reset and step take and give new ones."""

    def __init__(self, team: Team) -> None:
        self.team, self.block = team, team.block

    def reset(self, seed: int) -> Observation:
        """New episodes everywhere, always the same for a seed; copy i has the seed + i."""
        self.block.first_seed[:] = (seed + np.arange(self.block.num_envs)) % 2**32
        self.team.do(b"r")
        return _copied(self.block.now)

    def step(self, action: Action | None) -> HostStep:
        """One step of each; None: by the picks of its own heuristic."""
        block = self.block
        if action is not None:
            block.items[:], block.commands[:] = action
        self.team.do(b"g" if action is None else b"s")
        now = last = _copied(block.now)
        terminated, truncated = block.terminated.copy(), block.truncated.copy()
        ended = np.flatnonzero(terminated | truncated)
        if len(ended):
            last = _copied(block.now)
            for name, whole in last._asdict().items():
                whole[ended] = block.last[name][ended]
        return HostStep(block.reward.copy(), block.partial.copy(), terminated, truncated, last, now)

    def close(self) -> None:
        """Close all copies."""
        self.team.close()


def here(source: Source, spec: Spec, num_envs: int, partial_reward: bool) -> Rows:
    """All copies in this process."""
    block = Block(spec, num_envs, 1)
    rows = Rows(source.make, block, range(num_envs), 0, partial_reward)
    try:
        rows.make()
    except BaseException:
        rows.close()
        raise
    return rows


def _copied(parts: Mapping[str, Any]) -> Observation:
    return Observation(**{name: part.copy() for name, part in parts.items()})


def _plain(value: Any) -> bool:
    """Whether JSON brings it to another process as it is."""
    if isinstance(value, tuple):
        return all(map(_plain, value))
    return value is None or isinstance(value, str | int | float)
