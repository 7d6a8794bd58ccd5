"""The graph of `nets.isq`: φ layers and ψ over three sets (paper §3.1)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from selectmdp.export.base import Numbers, Pick, Seen, shares
from selectmdp.export.tensors import FLOAT, Tensor, joined, leaky, repeated
from selectmdp.nets.isq import ISQ


class Begun(NamedTuple):
    """The three sets, and the picks so far as the rows of one of them."""

    seen: Seen
    left: Tensor
    """[B, N]: which items are unselected."""
    picks: tuple[Pick, ...]


class Rows(NamedTuple):
    """One set: rows of channels, and their weights in the set's mean."""

    rows: Tensor
    """[B, M, H]"""
    share: Tensor
    """[B, 1, M]: 1 / how many rows there are, 0 for padding."""


@dataclass(frozen=True)
class ISQGraph:
    """As `nets.isq.ISQ`, from which it takes its sizes."""

    network: ISQ

    def begin(self, params: Numbers, seen: Seen) -> Begun:
        """Nothing is picked: there is no selected set, and a mean that is not there adds 0."""
        return Begun(seen, seen.present, ())

    def extend(self, params: Numbers, begun: Begun, pick: Pick) -> Begun:
        """An item goes from one set to the other."""
        if not self.network.selected:
            return begun
        return begun._replace(left=begun.left & ~pick.hit, picks=(*begun.picks, pick))

    def read(self, params: Numbers, begun: Begun) -> Tensor:
        """ψ of every unselected row."""
        sets = self._sets(begun)
        for layer in params["phi"]:
            widths = {name: affine["own"].shape[0] for name, affine in layer.items()}
            means = self._means(sets)
            sets = {
                name: part._replace(rows=leaky(self._apply(layer[name], part, means, widths)))
                for name, part in sets.items()
            }
        widths = dict.fromkeys(params["phi"][-1], params["psi"]["own"].shape[0])
        means = self._means(sets)
        values = self._apply(params["psi"], sets["unselected"], means, widths)
        if "pass" not in params:
            return values
        # Its weights, with columns of 0 for the other commands, make a row of the pairs' width.
        width = params["psi"]["bias"].size
        wide = {name: _widened(part, width) for name, part in params["pass"].items()}
        row = self._seen(repeated(wide["bias"], values), wide, means, widths)
        return joined([values, row], axis=1)

    def _means(self, sets: dict[str, Rows]) -> dict[str, Tensor]:
        return {
            name: sets[name].share @ sets[name].rows
            for name in self.network.sources
            if name in sets
        }

    def _apply(
        self, affine: Any, part: Rows, means: dict[str, Tensor], widths: dict[str, int]
    ) -> Tensor:
        """Each row's own product, and one of each mean by its block of the weights."""
        return self._seen(part.rows @ affine["own"] + affine["bias"], affine, means, widths)

    def _seen(
        self, values: Tensor, affine: Any, means: dict[str, Tensor], widths: dict[str, int]
    ) -> Tensor:
        first = 0
        for name in self.network.sources:
            last = first + widths.get(name, 0)
            if name in means:
                values = values + means[name] @ affine["means"][first:last]
            first = last
        return values

    def _sets(self, begun: Begun) -> dict[str, Rows]:
        seen, picks = begun.seen, begun.picks
        # Picked rows stay, without weight in the mean: nobody asks for their values.
        sets = {"unselected": Rows(seen.items, self._shares(begun.left.cast(FLOAT)))}
        if picks:
            made = joined([pick.made for pick in picks], axis=1)
            sets["selected"] = Rows(joined([pick.row for pick in picks], 1), self._shares(made))
        if seen.context is not None:
            sets["context"] = Rows(seen.context.rows, self._shares(seen.context.there))
        return sets

    def _shares(self, there: Tensor) -> Tensor:
        """[B, 1, M]: the weight of each row in the mean, or in the sum; all 0 of an empty set."""
        return shares(there, self.network.sums).axis(1)


def _widened(columns: Any, width: int) -> Any:
    """With columns of 0 after the one that there is."""
    return np.pad(columns, [(0, 0)] * (columns.ndim - 1) + [(0, width - 1)])
