"""Way (a) in: a plain NumPy class as a world; what it gives is checked and put into arrays.

- `spec: Spec`: the sizes;
- `reset(seed) -> observation`: a new episode, always the same for a seed;
- `step(action) -> (observation, reward, terminated)`, or with `truncated` as a fourth. The picks
  are `action.items` and `action.commands`, arrays in the order chosen: K of them, fewer only where
  nothing legal was left.

An observation is a dict of arrays: `items` [N, F], `context` [U, G] if the spec has any, and where
they are not all true the masks `present` [N], `context_present` [U] and `legal` [N, C]. Items alone
may stand for a dict of items alone.

It may offer more, and everything works without:

- `time_limit: int`: steps of an episode, whose end is then a truncation and no terminal;
- `command_names`, `unit`, `dynamics`, `learning_reward`, `sort_key`, `suits`: as `envs.base` has
  them;
- `legal_after(observation, chosen, command) -> [N, C]`: which pairs stay legal after some picks,
  whatever their order: `chosen` [N] says which items, `command` [N] with what. Another instance
  than the one that is played is asked, so its arguments must tell all;
- `partial_reward(action) -> [K]`: asked before the step, what it would earn had only the first
  1 … K picks been made; it changes nothing;
- `greedy() -> (items, commands)`: a heuristic's picks now, to compare a policy with;
- `close()`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action, Observation

Arrays = Mapping[str, npt.NDArray[Any]]
"""The parts of an observation by name."""
LARGEST = float(np.finfo(np.float32).max)


class NumpyEnv(Protocol):
    """A world in plain Python."""

    @property
    def spec(self) -> Spec: ...

    def reset(self, seed: int) -> Any: ...

    def step(self, action: Action) -> tuple[Any, ...]: ...


def put(seen: Any, place: Arrays) -> None:
    """An observation into the arrays that wait for it; what does not fit is refused."""
    if isinstance(seen, Observation):
        seen = seen._asdict()
    if isinstance(seen, tuple) and any(isinstance(part, Mapping) for part in seen):
        raise SelectError(
            f"reset returned a tuple of {len(seen)} things: return the observation alone, a dict "
            "of arrays, with no info beside it"
        )
    given: Any = seen if isinstance(seen, dict | Mapping) else {"items": seen}
    if not given.keys() <= place.keys():
        unknown = sorted(str(name) for name in given.keys() - place.keys())
        raise SelectError(f"the observation has {unknown}: it may have {', '.join(place)}")
    for name, into in place.items():
        part = given.get(name)
        if part is not None:
            _put_part(name, part, into)
        elif name == "items" or (name == "context" and len(into)):
            raise SelectError(f"the observation has no {name!r}: give them, of shape {into.shape}")
        elif name == "legal":
            into[:] = place["present"][:, None]
        elif name != "context":
            into[:] = True


def _put_part(name: str, part: Any, into: npt.NDArray[Any]) -> None:
    try:
        array = np.asarray(part)
    except ValueError as ragged:
        raise SelectError(f"{name} is no array ({ragged}): it must be {into.shape}") from ragged
    if array.shape != into.shape:
        raise SelectError(
            f"{name} has shape {array.shape}, the spec says {into.shape}: change the observation, "
            "or the numbers in `spec`; where things come and go, pad and say so in `present`"
        )
    kind = array.dtype.kind
    if into.dtype == np.bool_:
        if kind != "b" and not (kind in "iu" and ((array == 0) | (array == 1)).all()):
            raise SelectError(f"{name} is {array.dtype}: a mask is bool, or 0 and 1")
        into[:] = array
        return
    if kind not in "fiub":
        raise SelectError(f"{name} is {array.dtype}: features are numbers")
    with np.errstate(over="ignore"):  # told below
        into[:] = array
    if not np.isfinite(into).all():
        where = tuple(np.argwhere(~np.isfinite(into))[0].tolist())
        if np.isfinite(array[where]):
            raise SelectError(
                f"{name}{list(where)} is {array[where]}, too large for float32: scale the features"
            )
        raise SelectError(
            f"{name}{list(where)} is {array[where]}: look for a division by 0, a root or a "
            "logarithm there; put 0 where an item is absent"
        )


def outcome(given: Any) -> tuple[Any, float, bool, bool]:
    """Observation, reward, terminated and truncated of what a step returned."""
    if not isinstance(given, tuple) or len(given) not in (3, 4):
        kind = f"{len(given)} things" if isinstance(given, tuple) else type(given).__name__
        raise SelectError(
            f"it returned {kind}: return (observation, reward, terminated), and truncated as a "
            "fourth where the world ends an episode that is not over"
        )
    seen, reward, terminated, truncated = given if len(given) == 4 else (*given, False)
    number = _number(reward)
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, bool | np.bool_):
            raise SelectError(f"{name} is {flag!r}: return True or False")
    return seen, number, bool(terminated), bool(truncated)


def partial_rewards(given: Any, picks: int) -> npt.NDArray[np.float64]:
    """What `partial_reward` returned, one for each pick that was made."""
    rewards = np.asarray(given)
    if rewards.shape != (picks,) or rewards.dtype.kind not in "fiub":
        raise SelectError(f"it gave {given!r}: give {picks} numbers, one for each pick made")
    if not np.isfinite(rewards).all():
        raise SelectError(f"it gave {given!r}, which is not finite: give finite numbers")
    return rewards.astype(np.float64)


def made_picks(items: Any, commands: Any) -> Action:
    """The picks that were made, without those for which nothing legal was left."""
    made = items >= 0
    return Action(items[made], commands[made])


def all_picks(given: Any, num_select: int) -> Action:
    """Picks as (items, commands), filled up with −1 to K."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise SelectError(f"it gave {given!r}: give (items, commands)")
    items, commands = (np.asarray(part) for part in given)
    if items.ndim != 1 or items.shape != commands.shape or len(items) > num_select:
        raise SelectError(
            f"it gave items {items.tolist()} and commands {commands.tolist()}: give as many of "
            f"each, {num_select} at most"
        )
    if len(items) and {items.dtype.kind, commands.dtype.kind} - set("iub"):
        raise SelectError(
            f"it gave items {items.tolist()} and commands {commands.tolist()}: give whole numbers"
        )
    missing = num_select - len(items)
    return Action(
        np.concatenate([items, np.full(missing, -1)]).astype(np.int64),  # type: ignore[arg-type]
        np.concatenate([commands, np.zeros(missing)]).astype(np.int64),  # type: ignore[arg-type]
    )


def _number(reward: Any) -> float:
    if type(reward) is not float:
        if np.shape(reward) != () or np.asarray(reward).dtype.kind not in "fiub":
            raise SelectError(f"the reward is {reward!r}: return one number")
        reward = float(reward)
    if not abs(reward) <= LARGEST:  # NaN is not either
        raise SelectError(f"the reward is {reward}: look for a division by 0 or a logarithm")
    return reward
