"""The equi-invariant network (paper §3.1, appendix A): Q = ψ ∘ φ ∘ … ∘ φ over three sets.

A layer gives each row of a set its own product, plus a product of the mean of every set, plus a
bias, with the same weights for all rows of a set; so permuting the items permutes the values, and
nothing depends on N. The sets: selected (features and one-hot command), unselected, context. The
selected set is held as K rows, one a pick, instead of N masked ones. What a pass is worth is a
product of the last means alone, so that it does not depend on the items' order either.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from selectmdp.iterative import picked
from selectmdp.nets import layers
from selectmdp.nets.base import Params, check_rows, leaky, over_pass, weight
from selectmdp.nets.layers import Rows
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation

Source = Literal["unselected", "selected", "context"]
SOURCES: tuple[Source, ...] = ("unselected", "selected", "context")


CACHED = 1 << 20
"""Numbers in a hidden layer of states evaluated together: 4 MB, so that passes stay in cache."""


@dataclass(frozen=True)
class ISQ:
    """φ layers and one ψ, any N at run time."""

    channels: int = 48
    """Numbers for each row after a φ layer."""
    layers: int = 2
    """How many φ layers there are before ψ."""
    sources: tuple[Source, ...] = SOURCES
    """The sets whose means are seen: EQ does not see the other unselected items."""
    selected: bool = True
    """Whether there is a selected set at all: IDQN has none."""
    sums: bool = False
    """Sums over sets where the paper has means."""

    def init(self, key: Key[Array, ""], spec: Spec) -> Params:
        """Fresh parameters: for each layer and set `own`, `means` and `bias`."""
        widths = self._widths(spec)
        phi = []
        for layer_key in jax.random.split(key, self.layers):
            seen = sum(widths[name] for name in self._seen(widths))
            keys = jax.random.split(layer_key, len(widths))
            phi.append(
                {
                    name: layers.affine(set_key, width, seen, self.channels)
                    for set_key, (name, width) in zip(keys, widths.items(), strict=True)
                }
            )
            widths = dict.fromkeys(widths, self.channels)
        seen = sum(widths[name] for name in self._seen(widths))
        out_key = jax.random.fold_in(key, self.layers)
        out = layers.affine(out_key, self.channels, seen, spec.num_commands)
        params = {"phi": phi, "psi": out}
        if spec.allow_pass:
            pass_key = jax.random.fold_in(key, self.layers + 1)
            params["pass"] = {"means": weight(pass_key, seen, 1, seen), "bias": jnp.zeros(1)}
        return params

    def check(self, trained: Spec, shown: Spec) -> None:
        """Any N, U and K are fine; what describes a row must be as in training."""
        check_rows(trained, shown)

    def values(
        self, params: Params, observation: Observation, picks: Action
    ) -> Float[Array, "rows C"]:
        """ψ of every unselected row; rows of other items hold numbers that mean nothing."""
        sets = self._hidden(params, observation, picks)
        values = self._psi(params, sets, sets["unselected"].rows)
        return over_pass(values, self._pass(params, sets)) if "pass" in params else values

    def value(
        self,
        params: Params,
        observation: Observation,
        picks: Action,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Float[Array, ""]:
        """ψ of one row alone."""
        sets = self._hidden(params, observation, picks)
        row = self._psi(params, sets, sets["unselected"].rows[item][None])[0]
        if "pass" not in params:
            return row[command]
        return jnp.where(item < 0, self._pass(params, sets)[0], row[command])

    def states_at_once(self, num_items: int, num_select: int) -> int:
        """As many as fit in the cache."""
        return max(CACHED // (num_select * num_items * self.channels), 1)

    def stacked_values(
        self, params: Params, observation: Observation, picks: Action
    ) -> Float[Array, "K B rows C"]:
        """`values` of the phases of a batch."""
        sets = self._stacked_sets(params, observation, picks)
        return layers.stacked_values(params, sets, self._seen(sets))

    def stacked_value(
        self, params: Params, observation: Observation, picks: Action, pick: Action
    ) -> Float[Array, "K B"]:
        """`value` of the phases of a batch."""
        sets = self._stacked_sets(params, observation, picks)
        # The row goes along as one more of its set, without weight in the mean: taking it out of
        # N others at the end would make a scatter of its gradient.
        row = jnp.take_along_axis(observation.items, pick.items[..., None, None], axis=2)
        rows, share = sets["unselected"]
        sets["unselected"] = Rows(
            jnp.concatenate([rows, row], axis=2), jnp.pad(share, ((0, 0), (0, 0), (0, 1)))
        )
        return layers.stacked_value(params, sets, self._seen(sets), pick)

    def _hidden(self, params: Params, observation: Observation, picks: Action) -> dict[str, Rows]:
        sets = self._sets(observation, picks, "context" in params["phi"][0])
        for layer in params["phi"]:
            means = layers.means(sets, self._seen(sets))
            sets = {
                name: part._replace(rows=leaky(layers.apply(layer[name], part.rows, means)))
                for name, part in sets.items()
            }
        return sets

    def _psi(
        self, params: Params, sets: dict[str, Rows], rows: Float[Array, "M H"]
    ) -> Float[Array, "M C"]:
        return layers.apply(params["psi"], rows, layers.means(sets, self._seen(sets)))

    def _pass(self, params: Params, sets: dict[str, Rows]) -> Float[Array, " 1"]:
        means = layers.means(sets, self._seen(sets))
        return means @ params["pass"]["means"] + params["pass"]["bias"]

    def _seen(self, sets: dict[str, Rows] | dict[str, int]) -> list[str]:
        return [name for name in self.sources if name in sets]

    def _widths(self, spec: Spec) -> dict[str, int]:
        widths = {"unselected": spec.item_features}
        if self.selected:
            widths["selected"] = spec.item_features + spec.num_commands
        if spec.num_context > 0:
            widths["context"] = spec.context_features
        return widths

    def _stacked_sets(
        self, params: Params, observation: Observation, picks: Action
    ) -> dict[str, Rows]:
        picks = jax.tree.map(lambda leaf: leaf[..., :-1], picks)  # the last is made in no phase
        sets = partial(self._sets, context="context" in params["phi"][0])
        return jax.vmap(jax.vmap(sets))(observation, picks)

    def _sets(self, observation: Observation, picks: Action, context: bool) -> dict[str, Rows]:
        num_items, num_commands = observation.legal.shape
        left = observation.present
        if self.selected:
            left = left & ~picked(picks, num_items)
        items = jnp.where(left[:, None], observation.items, 0.0)
        sets = {"unselected": Rows(items, layers.shares(left, self.sums))}
        if self.selected:
            commands = jax.nn.one_hot(picks.commands, num_commands)
            rows = jnp.concatenate([observation.items[picks.items], commands], axis=1)
            sets["selected"] = Rows(rows, layers.shares(picks.items >= 0, self.sums))
        if context:
            sets["context"] = Rows(
                observation.context, layers.shares(observation.context_present, self.sums)
            )
        return sets
