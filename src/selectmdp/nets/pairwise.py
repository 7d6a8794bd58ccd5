"""A network of pairs: an item is worth what it is, beside each pick and each thing of the context.

It is equi-invariant as the paper asks (§3.1) and works for any N, U and K. Where φ layers see the
other sets by their means alone, here an item meets every pick and every thing of the context: a
message of two layers for each pair, summed. Items meet each other by the mean of what they are.

What does not depend on the picks is made once a step (`begin`); a pick adds its messages
(`extend`); `read` gives the values. Learning needs one row only and takes `value`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import draws
from selectmdp.iterative import picked
from selectmdp.nets.base import Params, check_rows, leaky, weight
from selectmdp.nets.isq import SOURCES, Source
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation

SMALL = 1e-5


class Begun(NamedTuple):
    """A state with some picks made, as far as the next values need it."""

    encoded: Float[Array, "N H"]
    """What each item is."""
    alone: Float[Array, "N H"]
    """What each item brings to the join whatever is picked."""
    meets: Float[Array, "N H"]
    """What each item brings to a message with a pick."""
    messages: Float[Array, "N M"]
    """Summed over the picks made."""
    left: Float[Array, " N"]
    """1 for items that are present and not picked."""


@dataclass(frozen=True)
class Pairwise:
    """Messages between items and picks, items and context; any N at run time."""

    channels: int = 64
    """Numbers for each row in a hidden layer; in a message half as many."""
    normalises: bool = True
    """Whether rows are layer-normalised where their parts are joined."""
    sources: tuple[Source, ...] = SOURCES
    """The sets that are seen: EQ does not see the other unselected items."""
    selected: bool = True
    """Whether picks are seen at all: IDQN does not."""

    def init(self, key: Key[Array, ""], spec: Spec) -> Params:
        """Fresh parameters: one set."""
        width, features = self.channels, spec.item_features
        keys = iter(jax.random.split(key, 16))
        params: dict[str, Any] = {
            "encode": _spread(next(keys), features, width),
            "join": _affine(next(keys), width, width),
            "mix": _affine(next(keys), width, width),
            "out": _affine(next(keys), width, spec.num_commands),
        }
        for name, other in self._others(spec).items():
            params[name] = {
                "meets": weight(next(keys), features, width, features),
                "other": _spread(next(keys), other, width),
                "deepen": _affine(next(keys), width, self._width),
                "join": weight(next(keys), self._width, width, self._width),
            }
        if "unselected" in self.sources:
            params["mean"] = {
                "deepen": _affine(next(keys), width, width),
                "join": weight(next(keys), width, width, width),
            }
        return params

    def check(self, trained: Spec, shown: Spec) -> None:
        """Any N, U and K are fine; what describes a row must be as in training."""
        check_rows(trained, shown)

    def values(
        self, params: Params, observation: Observation, picks: Action
    ) -> Float[Array, "N C"]:
        """The value of every pair; rows of picked items hold numbers that mean nothing."""
        begun = self.begin(params, observation)
        if self.selected:
            left = begun.left * ~picked(picks, begun.left.shape[0])
            messages = self._from_picks(params, begun.meets, observation, picks)
            begun = begun._replace(messages=messages, left=left)
        return self.read(params, begun)

    def value(
        self,
        params: Params,
        observation: Observation,
        picks: Action,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Float[Array, ""]:
        """The value of one pair: of all other items only their mean is needed."""
        left = observation.present.astype(jnp.float32)
        if self.selected:
            picks = jax.tree.map(lambda leaf: leaf[:-1], picks)  # the last is made in no phase
            left = left * ~picked(picks, left.shape[0])
        row = observation.items[item][None]
        joined = self._alone(params, row, _encoded(params, row), observation)
        if "unselected" in self.sources:
            everyone = _encoded(params, observation.items)
            joined = joined + self._mean(params, everyone, left)[None]
        if "selected" in params:
            meets = row @ params["selected"]["meets"]
            messages = self._from_picks(params, meets, observation, picks)
            joined = joined + messages @ params["selected"]["join"]
        return self._out(params, joined)[0, command]

    def begin(self, params: Params, observation: Observation) -> Begun:
        """A state with no picks."""
        encoded = _encoded(params, observation.items)
        alone = self._alone(params, observation.items, encoded, observation)
        meets = jnp.zeros_like(alone)
        if "selected" in params:
            meets = observation.items @ params["selected"]["meets"]
        nothing = jnp.zeros((alone.shape[0], self._width))
        return Begun(encoded, alone, meets, nothing, observation.present.astype(jnp.float32))

    def extend(
        self,
        params: Params,
        begun: Begun,
        observation: Observation,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Begun:
        """The state after one more pick; item −1 picks nothing."""
        if not self.selected:
            return begun
        pick = Action(item[None], command[None])
        more = self._from_picks(params, begun.meets, observation, pick)
        left = begun.left * ~picked(pick, begun.left.shape[0])
        return begun._replace(messages=begun.messages + more, left=left)

    def read(self, params: Params, begun: Begun) -> Float[Array, "N C"]:
        """The value of every pair."""
        joined = begun.alone
        if "unselected" in self.sources:
            joined = joined + self._mean(params, begun.encoded, begun.left)[None]
        if "selected" in params:
            joined = joined + begun.messages @ params["selected"]["join"]
        return self._out(params, joined)

    @property
    def _width(self) -> int:
        """Numbers in a message: there are as many messages as pairs, so half the channels."""
        return max(self.channels // 2, 1)

    def _others(self, spec: Spec) -> dict[str, int]:
        """The sets that items meet one by one, with the numbers that describe a row."""
        others = {}
        if self.selected and "selected" in self.sources:
            others["selected"] = spec.item_features + spec.num_commands
        if spec.num_context > 0 and "context" in self.sources:
            others["context"] = spec.context_features
        return others

    def _alone(
        self,
        params: Params,
        rows: Float[Array, "M F"],
        encoded: Float[Array, "M H"],
        observation: Observation,
    ) -> Float[Array, "M H"]:
        """What rows bring to the join whatever is picked."""
        joined = _apply(params["join"], encoded)
        if "context" not in params:
            return joined
        part = params["context"]
        others = _apply(part["other"], observation.context)
        messages = _messages(part, rows @ part["meets"], others, observation.context_present)
        return joined + messages @ part["join"]

    def _mean(
        self, params: Params, encoded: Float[Array, "N H"], left: Float[Array, " N"]
    ) -> Float[Array, " H"]:
        mean = (left / jnp.maximum(left.sum(), 1.0)) @ encoded
        return leaky(_apply(params["mean"]["deepen"], mean)) @ params["mean"]["join"]

    def _from_picks(
        self,
        params: Params,
        meets: Float[Array, "M H"],
        observation: Observation,
        picks: Action,
    ) -> Float[Array, "M H"]:
        if "selected" not in params:
            return jnp.zeros((meets.shape[0], self._width))
        part, num_commands = params["selected"], observation.legal.shape[1]
        commands = jax.nn.one_hot(picks.commands, num_commands)
        rows = jnp.concatenate([observation.items[picks.items], commands], axis=1)
        return _messages(part, meets, _apply(part["other"], rows), picks.items >= 0)

    def _out(self, params: Params, joined: Float[Array, "M H"]) -> Float[Array, "M C"]:
        if self.normalises:
            joined = _normalised(joined)
        return _apply(params["out"], leaky(_apply(params["mix"], leaky(joined))))


def _encoded(params: Params, rows: Float[Array, "M F"]) -> Float[Array, "M H"]:
    return leaky(_apply(params["encode"], rows))


def _messages(
    part: Params,
    meets: Float[Array, "M H"],
    others: Float[Array, "P H"],
    there: Bool[Array, " P"],
) -> Float[Array, "M H"]:
    """To each of M rows, summed over the P others that are there."""
    met = leaky(meets[:, None] + others[None])
    deep = leaky(_apply(part["deepen"], met))
    return jnp.einsum("mph,p->mh", deep, there.astype(jnp.float32))


def _apply(affine: Params, rows: Float[Array, "*stack F"]) -> Float[Array, "*stack H"]:
    product = rows @ affine["weight"]
    return product + affine["bias"].reshape((1,) * (product.ndim - 1) + (-1,))


def _affine(key: Key[Array, ""], rows: int, columns: int) -> Params:
    return {"weight": weight(key, rows, columns, rows), "bias": jnp.zeros(columns)}


def _spread(key: Key[Array, ""], rows: int, columns: int) -> Params:
    """A layer on features, whose kinks lie all over the unit cube and not only at its centre."""
    weight_key, bias_key = jax.random.split(key)
    bias = 2.0 * draws.uniform(bias_key, (columns,)) - 1.0
    return {"weight": weight(weight_key, rows, columns, rows), "bias": bias}


def _normalised(rows: Float[Array, "M H"]) -> Float[Array, "M H"]:
    """Each row with mean 0 and variance 1."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(axis=1, keepdims=True) + SMALL)
