"""Gymnasium spaces of a Select-MDP (paper §2.1): K distinct picks, each with a command.

An action is `{"items": [K], "commands": [K]}`, in the order chosen. The space knows which pairs are
legal at the moment (`space.legal`, which the environment keeps current), so that `sample` gives
legal picks and `contains` refuses the rest. Item −1 is allowed only where nothing legal was left,
or as a pass, after which there are no picks.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from selectmdp.spec import SelectError, Spec
from selectmdp.types import Action

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.integer[Any]]
LegalAfterPicks = Callable[[Mask, Ints], Any]
"""(chosen [N], command [N]) → pairs [N, C] that stay legal after those picks."""

LARGEST = float(np.finfo(np.float32).max)


def observation_space(spec: Spec) -> spaces.Dict:
    """Items, context and masks of an observation.

    Features may be any finite number (infinite bounds make `check_env` warn).
    """

    def features(*shape: int) -> spaces.Box:
        return spaces.Box(-LARGEST, LARGEST, shape, np.float32)

    parts: dict[str, spaces.Space[Any]] = {
        "items": features(spec.num_items, spec.item_features),
        "context": features(spec.num_context, spec.context_features),
        "present": spaces.MultiBinary(spec.num_items),
        "legal": spaces.MultiBinary((spec.num_items, spec.num_commands)),
    }
    if spec.num_context > 0:
        parts["context_present"] = spaces.MultiBinary(spec.num_context)
    else:  # Gymnasium has no empty binary space
        parts["context_present"] = spaces.Box(0, 1, (0,), np.int8)
    return spaces.Dict(parts)


class SelectSpace(spaces.Dict):
    """K distinct legal picks out of N items, each with one of C commands.

    With `num_envs` = B it is the space of a vector environment: every array has B rows, and
    `legal_after` takes and gives rows. Two spaces are equal when N, K, C and B are; what is legal
    at the moment does not count.
    """

    def __init__(self, spec: Spec, seed: int | None = None, num_envs: int | None = None) -> None:
        self.sizes, self.num_envs = spec, num_envs
        self.legal_after: LegalAfterPicks | None = None
        picks = spec.num_select
        parts: dict[str, spaces.Space[Any]] = {
            "items": spaces.MultiDiscrete([spec.num_items + 1] * picks, start=[-1] * picks),
            "commands": spaces.MultiDiscrete([spec.num_commands] * picks),
        }
        self._legal = np.ones((spec.num_items, spec.num_commands), bool)
        if num_envs is not None:
            parts = {name: batch_space(part, num_envs) for name, part in parts.items()}
            self._legal = np.repeat(self._legal[None], num_envs, axis=0)
        super().__init__(parts, seed=seed)

    @property
    def legal(self) -> Mask:
        """Which pairs [N, C] may be picked first; all, until an environment says otherwise."""
        return self._legal

    @legal.setter
    def legal(self, mask: npt.ArrayLike) -> None:
        self._legal = _pairs("legal", mask, self._legal.shape).astype(bool)

    def open_pairs(self, chosen: Mask, command: Ints) -> Mask:
        """Which pairs [N, C] may be picked after those picks."""
        return open_pairs(self._legal, chosen, command, self.legal_after)

    def sample(self, mask: Any = None, probability: Any = None) -> dict[str, Any]:
        """K distinct legal picks, each any open pair with equal probability.

        `mask` [N, C] stands in for `legal`; `probability` [N, C] are weights instead of equal
        probability, and where only pairs of weight 0 are left they count as equal. Where it is
        allowed, a pass counts as one more pair; under a `probability` it has weight 0.
        """
        if mask is not None and probability is not None:
            raise SelectError("sample takes a mask or a probability, not both; leave one out")
        legal = self._legal
        if mask is not None:
            legal = _pairs("mask", mask, legal.shape).astype(bool)
        weights = np.ones(legal.shape) if probability is None else probability
        weights = _pairs("probability", weights, legal.shape)
        sound = np.isfinite(weights) & (weights >= 0)
        if not sound.all():
            where = np.argwhere(~sound)[0].tolist()
            raise SelectError(
                f"probability{where} is {weights[tuple(where)]}: give a finite number, 0 or more"
            )
        rng = self["items"].np_random  # seeded whichever way this space is
        passing = None if not self.sizes.allow_pass else float(probability is None)
        if self.num_envs is not None:
            return _sample(rng, legal, self.legal_after, self.sizes.num_select, weights, passing)
        one = None if self.legal_after is None else _one_row(self.legal_after)
        picks = _sample(rng, legal[None], one, self.sizes.num_select, weights[None], passing)
        return {name: rows[0] for name, rows in picks.items()}

    def check(self, action: Any) -> Action:
        """The picks as int32 arrays, or a `SelectError` that says what is wrong with them."""
        if self.num_envs is None:
            return check_action(self.sizes, self._legal, action, self.legal_after)
        picks = check_numbers(self.sizes, action, self.num_envs)
        for row in range(self.num_envs):
            own = Action(picks.items[row], picks.commands[row])
            try:
                check_action(self.sizes, self._legal[row], own, self._after_in(row))
            except SelectError as error:
                raise SelectError(f"environment {row}: {error}") from None
        return picks

    def _after_in(self, row: int) -> LegalAfterPicks | None:
        after, rows = self.legal_after, (self.num_envs or 1, 1)
        if after is None:
            return None
        return lambda chosen, command: after(np.tile(chosen, rows), np.tile(command, rows))[row]

    def contains(self, x: Any) -> bool:
        try:
            self.check(x)
        except SelectError:
            return False
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SelectSpace) or not super().__eq__(other):
            return False
        return self.sizes.allow_pass == other.sizes.allow_pass

    def __repr__(self) -> str:
        sizes, rows = self.sizes, "" if self.num_envs is None else f", num_envs={self.num_envs}"
        count = f"up to {sizes.num_select}" if sizes.allow_pass else f"{sizes.num_select}"
        picks = f"{count} of {sizes.num_items}, {sizes.num_commands} commands"
        return f"SelectSpace({picks}{rows})"


@batch_space.register(SelectSpace)
def _batch_select_space(space: SelectSpace, n: int = 1) -> SelectSpace:
    return SelectSpace(space.sizes, num_envs=n)


def check_action(
    spec: Spec, legal: npt.ArrayLike, action: Any, legal_after: LegalAfterPicks | None = None
) -> Action:
    """The picks as int32 arrays [K], or a `SelectError` that names the first pick to break a rule.

    `legal` [N, C] holds before the first pick. Picks are checked in order, for `legal_after`.
    """
    picks = check_numbers(spec, action)
    legal = _pairs("legal", legal, (spec.num_items, spec.num_commands)).astype(bool)
    chosen, commands = np.zeros(spec.num_items, bool), np.zeros(spec.num_items, np.int32)
    for phase, (item, command) in enumerate(zip(picks.items, picks.commands, strict=True)):
        now = open_pairs(legal, chosen, commands, legal_after)
        if item < 0 and spec.allow_pass:
            if (picks.items[phase:] >= 0).any():
                raise SelectError(
                    f"items[{phase}]=-1 passes and ends the picks, and others follow in "
                    f"{picks.items.tolist()}: give -1 from there on"
                )
            break
        if item < 0:
            if now.any():
                example = tuple(int(part) for part in np.argwhere(now)[0])
                raise SelectError(
                    f"items[{phase}]=-1: picks may end only where nothing legal is left, and "
                    f"{now.sum()} pairs are; pick one, such as (item, command) {example}"
                )
            continue
        if chosen[item]:
            raise SelectError(
                f"items[{phase}]={item} is picked twice in {picks.items.tolist()}: "
                "an item can be picked once a step; pick another"
            )
        if not now[item, command]:
            when = "now" if not legal[item, command] else f"after the picks {picks.items[:phase]}"
            raise SelectError(
                f"pick {phase}: item {item} with command {command} is not legal {when}; "
                f"pick one of the {now.sum()} pairs that are, or item -1 if there are none"
            )
        chosen[item], commands[item] = True, command
    return picks


def check_numbers(spec: Spec, action: Any, num_envs: int | None = None) -> Action:
    """The picks as int32 arrays [K] or [B, K] of numbers in range; legality is not looked at."""
    action = action._asdict() if isinstance(action, Action) else action
    if not isinstance(action, Mapping) or set(action) != {"items", "commands"}:
        raise SelectError(f"action={action!r}: must be a dict of 'items' and 'commands' alone")
    shape = (spec.num_select,) if num_envs is None else (num_envs, spec.num_select)
    return Action(
        items=_whole_numbers("items", action["items"], shape, -1, spec.num_items - 1),
        commands=_whole_numbers("commands", action["commands"], shape, 0, spec.num_commands - 1),
    )


def open_pairs(
    legal: Mask, chosen: Mask, command: Ints, legal_after: LegalAfterPicks | None
) -> Mask:
    """Which pairs [… N, C] may be picked after those picks; any batch axes stand in front."""
    pairs: Mask = legal & ~chosen[..., None]
    return pairs if legal_after is None else pairs & np.asarray(legal_after(chosen, command))


def _whole_numbers(name: str, value: Any, shape: tuple[int, ...], low: int, high: int) -> Any:
    try:
        array = np.asarray(value)
    except ValueError as ragged:
        raise SelectError(f"{name}={value!r}: must have shape {shape}") from ragged
    if array.shape != shape:
        raise SelectError(f"{name} has shape {array.shape}: must have shape {shape}, one a pick")
    if array.dtype.kind not in "iu":
        raise SelectError(f"{name}={array} has dtype {array.dtype}: must be ints; give np.int64")
    if ((array < low) | (array > high)).any():
        raise SelectError(f"{name}={array}: each must be from {low} to {high}")
    return array.astype(np.int32)


def _pairs(name: str, value: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    array = np.asarray(value)
    if array.shape != shape:
        raise SelectError(f"{name} has shape {array.shape}: must have shape {shape}, one a pair")
    return array


def _one_row(after: LegalAfterPicks) -> LegalAfterPicks:
    return lambda chosen, command: np.asarray(after(chosen[0], command[0]))[None]


def _sample(
    rng: np.random.Generator,
    legal: Mask,
    legal_after: LegalAfterPicks | None,
    num_select: int,
    weights: npt.NDArray[Any],
    passing: float | None = None,
) -> dict[str, npt.NDArray[np.int64]]:
    """Picks [B, K], each in proportion to its weight among the pairs that are open.

    `passing` is the weight of a pass, if there is one.
    """
    rows, (batch, num_items, num_commands) = np.arange(legal.shape[0]), legal.shape
    chosen, commands = np.zeros((batch, num_items), bool), np.zeros((batch, num_items), np.int32)
    picks = {name: np.zeros((batch, num_select), np.int64) for name in ("commands", "items")}
    weights, goes_on = weights.reshape(batch, -1), np.ones((batch, 1), bool)
    if passing is not None:
        weights = np.concatenate([weights, np.full((batch, 1), passing)], axis=1)
    for phase in range(num_select):
        now = open_pairs(legal, chosen, commands, legal_after).reshape(batch, -1)
        if passing is not None:
            now = np.concatenate([now, ~now.any(axis=1, keepdims=True) | (passing > 0)], axis=1)
            now &= goes_on
        weight = np.where(now, weights, 0.0)
        weight = np.where(weight.any(axis=1, keepdims=True), weight, now)
        # A race of exponential clocks: each wins with probability in proportion to its rate.
        clock = rng.exponential(size=weight.shape) / np.where(weight > 0, weight, 1.0)
        item, command = np.divmod(np.where(weight > 0, clock, np.inf).argmin(axis=1), num_commands)
        possible = now.any(axis=1) & (item < num_items)
        goes_on = possible[:, None]
        picks["items"][:, phase] = np.where(possible, item, -1)
        picks["commands"][:, phase] = np.where(possible, command, 0)
        chosen[rows[possible], item[possible]] = True
        commands[rows[possible], item[possible]] = command[possible]
    return picks
