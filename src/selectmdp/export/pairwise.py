"""The graph of `nets.pairwise`, step by step as there: an item meets every pick and every thing."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from selectmdp.export.base import Numbers, Pick, Seen, shares
from selectmdp.export.tensors import FLOAT, Tensor, joined, leaky, repeated
from selectmdp.nets.base import SMALL
from selectmdp.nets.pairwise import Pairwise


class Begun(NamedTuple):
    """As `nets.pairwise.Begun`, of every state of a batch; a sum of nothing is None."""

    seen: Seen
    encoded: Tensor
    """[B, N, H]"""
    alone: Tensor
    """[B, N, H]"""
    left: Tensor
    """[B, N]"""
    messages: Tensor | None = None
    """[B, N, M]"""
    gathered: Tensor | None = None
    """[B, U, H]"""
    worth: Tensor | None = None
    """[B, 1, 1]"""


@dataclass(frozen=True)
class PairwiseGraph:
    """As `nets.pairwise.Pairwise`, from which it takes what it is to do."""

    network: Pairwise

    def begin(self, params: Numbers, seen: Seen) -> Begun:
        """A state with no picks."""
        encoded = leaky(_apply(params["encode"], seen.items))
        alone = _over_pass(params, "alone", _apply(params["join"], encoded))
        return Begun(seen, encoded, alone, seen.present.cast(FLOAT))

    def extend(self, params: Numbers, begun: Begun, pick: Pick) -> Begun:
        """The state after one more pick."""
        seen = begun.seen
        if self.network.selected:
            begun = begun._replace(left=begun.left * (~pick.hit).cast(FLOAT))
        if "selected" not in params:
            return begun
        part = params["selected"]
        meets = _over_pass(params, "selected", seen.items @ part["meets"])
        more, worth = _messages(part, meets, _apply(part["other"], pick.row), pick.made)
        begun = begun._replace(messages=_sum(begun.messages, more), worth=_sum(begun.worth, worth))
        if "gather" not in params or seen.context is None:
            return begun
        part = params["gather"]
        brought = leaky(_apply(part["pick"], pick.row) + seen.context.rows @ part["thing"])
        return begun._replace(gathered=_sum(begun.gathered, brought * pick.made.axis(2)))

    def read(self, params: Numbers, begun: Begun) -> Tensor:
        """The value of every pair."""
        rows, worth, seen = begun.alone, begun.worth, begun.seen
        if begun.messages is not None:
            rows = rows + begun.messages @ params["selected"]["join"]
        if "context" in params and seen.context is not None:
            part = params["context"]
            things = _apply(part["other"], seen.context.rows)
            if begun.gathered is not None:
                things = things + begun.gathered @ params["gather"]["join"]
            meets = _over_pass(params, "context", seen.items @ part["meets"])
            messages, more = _messages(part, meets, things, seen.context.there)
            rows, worth = rows + messages @ part["join"], _sum(worth, more)
        if "mean" in params:
            part = params["mean"]
            mean = shares(begun.left, self.network.sums).axis(1) @ begun.encoded
            deep = leaky(_apply(part["deepen"], mean))
            rows = rows + deep @ part["join"]
            worth = _sum(worth, joined([deep, mean], axis=2) @ part["worth"])
        if self.network.normalises:
            ones = np.ones(self.network.channels, np.float32)
            rows = rows.node("LayerNormalization", ones, epsilon=SMALL)
        return _sum(worth, _apply(params["out"], leaky(_apply(params["mix"], leaky(rows)))))


def _messages(part: Numbers, meets: Tensor, others: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """To each row, and to the state's worth, summed over the others [B, P, H] that are there."""
    deep = leaky(_apply(part["deepen"], leaky(meets.axis(2) + others.axis(1))))
    worth = there.axis(1) @ (leaky(others) @ part["worth"])
    return (deep * there.axis(1, 3)).sum(2), worth


def _over_pass(params: Numbers, name: str, rows: Tensor) -> Tensor:
    """[B, N + 1, H] where a pass is allowed: under the items' rows what the pass brings."""
    if "pass" not in params:
        return rows
    return joined([rows, repeated(params["pass"][name][0], rows)], axis=1)


def _apply(affine: Any, rows: Tensor) -> Tensor:
    return rows @ affine["weight"] + affine["bias"]


def _sum(total: Tensor | None, more: Tensor) -> Tensor:
    return more if total is None else total + more
