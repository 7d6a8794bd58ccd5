"""The graph of `nets.isq`: φ layers and ψ over three sets (paper §3.1)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from selectmdp.export.base import Numbers, Pick, Seen
from selectmdp.export.tensors import FLOAT, ONE, Tensor, joined, leaky
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
        sets = _sets(begun)
        for layer in params["phi"]:
            widths = {name: affine["own"].shape[0] for name, affine in layer.items()}
            means = self._means(sets)
            sets = {
                name: part._replace(rows=leaky(self._apply(layer[name], part, means, widths)))
                for name, part in sets.items()
            }
        widths = dict.fromkeys(params["phi"][-1], params["psi"]["own"].shape[0])
        return self._apply(params["psi"], sets["unselected"], self._means(sets), widths)

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
        values, first = part.rows @ affine["own"] + affine["bias"], 0
        for name in self.network.sources:
            last = first + widths.get(name, 0)
            if name in means:
                values = values + means[name] @ affine["means"][first:last]
            first = last
        return values


def _sets(begun: Begun) -> dict[str, Rows]:
    seen = begun.seen
    # Picked rows stay, without weight in the mean: nobody asks for their values.
    sets = {"unselected": Rows(seen.items, _shares(begun.left.cast(FLOAT)))}
    if begun.picks:
        rows = joined([pick.row for pick in begun.picks], axis=1)
        sets["selected"] = Rows(rows, _shares(joined([pick.made for pick in begun.picks], axis=1)))
    if seen.context is not None:
        sets["context"] = Rows(seen.context.rows, _shares(seen.context.there))
    return sets


def _shares(there: Tensor) -> Tensor:
    """[B, 1, M]: the weight of each row in the mean; of an empty set all are 0."""
    count = there.sum(1, keepdims=True).node("Max", ONE)
    return (there / count).axis(1)
