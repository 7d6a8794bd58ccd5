"""The sizes of a Select-MDP (paper §1): choose K of N items, give each one of C commands."""

import operator
from dataclasses import dataclass, fields


class SelectError(ValueError):
    """A value that breaks a rule of ours; the message names the value, the rule and the fix."""


class PlaceFault(SelectError):
    """Files or a folder are at fault and no value: later, or elsewhere, the same values do."""


class WorldFault(SelectError):
    """A world broke while it was played; the message names the environment, its step and why."""


class PeerFault(SelectError):
    """Another process of this run is gone; this one can only end, without waiting for it."""


@dataclass(frozen=True)
class Spec:
    """Sizes of one Select-MDP, checked once and trusted afterwards."""

    num_items: int
    """N, how many items there are to choose from."""
    item_features: int
    """How many numbers describe an item."""
    num_context: int
    """U, how many things are seen but cannot be chosen (may be 0)."""
    context_features: int
    """How many numbers describe one of those things."""
    num_select: int
    """K, how many items are chosen in a step."""
    num_commands: int
    """C, how many commands there are for a chosen item."""
    allow_pass: bool = False
    """Whether a step's picks may end before the K-th, by choice: "up to K"."""

    def __post_init__(self) -> None:
        if not isinstance(self.allow_pass, bool):
            raise SelectError(f"allow_pass={self.allow_pass!r}: must be True or False")
        for name in (field.name for field in fields(self) if field.name != "allow_pass"):
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        for name in ("num_items", "item_features", "num_select", "num_commands"):
            if getattr(self, name) < 1:
                raise SelectError(f"{name}={getattr(self, name)}: must be at least 1")
        if self.num_select > self.num_items:
            raise SelectError(
                f"num_select={self.num_select} is more than num_items={self.num_items}: "
                "an item can be chosen once, so choose at most num_items"
            )
        if self.num_context > 0 and self.context_features < 1:
            raise SelectError(
                f"context_features={self.context_features} with num_context={self.num_context}: "
                "describe each context thing by at least 1 number, or set num_context=0"
            )


def check_seed(value: object) -> int:
    """`value` as a seed: JAX would take a larger one modulo 2³², and two seeds would be one."""
    number = check_count("seed", value)
    if number >= 2**32:
        raise SelectError(f"seed={number}: must be less than 2**32; take a smaller one")
    return number


def check_count(name: str, value: object) -> int:
    """`value` as an int that is not negative; `name` is what the message calls it."""
    try:
        if isinstance(value, bool):  # True counts as 1 elsewhere; as a size it is a slip
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        kind = type(value).__name__
        raise SelectError(f"{name}={value!r}: must be a whole number, not {kind}") from None
    if number < 0:
        raise SelectError(f"{name}={number}: must not be negative")
    return number
