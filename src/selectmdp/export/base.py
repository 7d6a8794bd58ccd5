"""What a network's graph is: the network of `nets` that it follows, for a batch and pick by pick.

Each is written a second time, in the few operators that ONNX has; the tests hold both together.
"""

from typing import Any, NamedTuple, Protocol

from selectmdp.export.tensors import ONE, Tensor

Numbers = Any
"""One parameter set: the same dicts as in training, of NumPy arrays."""


class Things(NamedTuple):
    """The context of every state of a batch."""

    rows: Tensor
    """[B, U, G]"""
    there: Tensor
    """[B, U]: 1, or 0 for padding."""


class Seen(NamedTuple):
    """An observation of every state of a batch."""

    items: Tensor
    """[B, N, F]"""
    present: Tensor
    """[B, N]"""
    legal: Tensor
    """[B, N, C]"""
    context: Things | None
    """None for a policy that was trained without."""


class Pick(NamedTuple):
    """One pick of every state."""

    row: Tensor
    """[B, 1, F + C]: the item's features and its command, one-hot."""
    made: Tensor
    """[B, 1]: 1, or 0 where nothing legal was left."""
    hit: Tensor
    """[B, N]: true for the item that was picked."""


class NetworkGraph(Protocol):
    """`read` of a begun state extended by the picks gives the values of those picks.

    As `nets.base.IncrementalNetwork`, for every network: what can be kept from phase to phase is.
    """

    def begin(self, params: Numbers, seen: Seen) -> Any:
        """A state with no picks."""
        ...

    def extend(self, params: Numbers, begun: Any, pick: Pick) -> Any:
        """The state after one more pick."""
        ...

    def read(self, params: Numbers, begun: Any) -> Tensor:
        """The value of every pair: [B, N, C]; one more row where a pass is allowed."""
        ...


def shares(there: Tensor, sums: bool) -> Tensor:
    """[B, M]: the weight of each row in the mean over those that are there, or in their sum."""
    return there if sums else there / there.sum(1, keepdims=True).node("Max", ONE)
