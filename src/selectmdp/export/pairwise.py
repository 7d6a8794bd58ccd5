"""The graph of `nets.pairwise`, function by function: an item meets every pick and every thing."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from selectmdp.export.base import Numbers, Pick, Seen
from selectmdp.export.tensors import FLOAT, ONE, Tensor, joined, leaky
from selectmdp.nets.pairwise import SMALL, Pairwise


class Begun(NamedTuple):
    """As `nets.pairwise.Begun`, of every state of a batch."""

    encoded: Tensor
    """[B, N, H]"""
    alone: Tensor
    """[B, N, H]"""
    meets: Tensor | None
    """[B, N, H]; None where picks are not seen."""
    messages: Tensor | None
    """[B, N, M]; None before the first pick."""
    left: Tensor
    """[B, N]"""
    worth: Tensor | None
    """[B, 1, 1]; None where nothing has added to it."""


@dataclass(frozen=True)
class PairwiseGraph:
    """As `nets.pairwise.Pairwise`, from which it takes what it is to do."""

    network: Pairwise

    def begin(self, params: Numbers, seen: Seen) -> Begun:
        """A state with no picks."""
        encoded = _encoded(params, seen.items)
        alone, meets, worth = _apply(params["join"], encoded), None, None
        if "context" in params and seen.context is not None:
            part = params["context"]
            messages, worth = _messages(part, seen.items @ part["meets"], *seen.context)
            alone = alone + messages @ part["join"]
        if "selected" in params:
            meets = seen.items @ params["selected"]["meets"]
        return Begun(encoded, alone, meets, None, seen.present.cast(FLOAT), worth)

    def extend(self, params: Numbers, begun: Begun, pick: Pick) -> Begun:
        """The state after one more pick."""
        if self.network.selected:
            begun = begun._replace(left=begun.left * (~pick.hit).cast(FLOAT))
        if begun.meets is None:
            return begun
        more, worth = _messages(params["selected"], begun.meets, pick.row, pick.made)
        return begun._replace(messages=_sum(begun.messages, more), worth=_sum(begun.worth, worth))

    def read(self, params: Numbers, begun: Begun) -> Tensor:
        """The value of every pair."""
        rows, worth = begun.alone, begun.worth
        if "mean" in params:
            common, more = _of_mean(params["mean"], begun.encoded, begun.left)
            rows, worth = rows + common, _sum(worth, more)
        if begun.messages is not None:
            rows = rows + begun.messages @ params["selected"]["join"]
        if self.network.normalises:
            rows = _normalised(rows, self.network.channels)
        return _sum(worth, _apply(params["out"], leaky(_apply(params["mix"], leaky(rows)))))


def _encoded(params: Numbers, rows: Tensor) -> Tensor:
    return leaky(_apply(params["encode"], rows))


def _of_mean(part: Numbers, encoded: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    """What the mean of the items that are left gives to every row, and to the state's worth."""
    share = left / left.sum(1, keepdims=True).node("Max", ONE)
    mean = share.axis(1) @ encoded
    deep = leaky(_apply(part["deepen"], mean))
    return deep @ part["join"], joined([deep, mean], axis=2) @ part["worth"]


def _messages(part: Numbers, meets: Tensor, others: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """To each row, and to the state's worth, summed over the others [B, P, F] that are there."""
    others = _apply(part["other"], others)
    deep = leaky(_apply(part["deepen"], leaky(meets.axis(2) + others.axis(1))))
    worth = there.axis(1) @ (leaky(others) @ part["worth"])
    return (deep * there.axis(1, 3)).sum(2), worth


def _apply(affine: Any, rows: Tensor) -> Tensor:
    return rows @ affine["weight"] + affine["bias"]


def _normalised(rows: Tensor, channels: int) -> Tensor:
    """Each row with mean 0 and variance 1."""
    return rows.node("LayerNormalization", np.ones(channels, np.float32), epsilon=SMALL)


def _sum(total: Tensor | None, more: Tensor) -> Tensor:
    return more if total is None else total + more
