"""A network of pairs: an item is worth what it is, beside each pick and each thing of the context.

It is equi-invariant as the paper asks (§3.1) and works for any N, U and K. Where φ layers see the
other sets by their means alone, here an item meets every pick and every thing of the context: a
message of two layers for each pair, summed. Items meet each other by the mean of what they are.

What all items have in common, the worth of the state, has a way of its own to the values (as in
dueling networks): the mean, each pick and each thing of the context add to it. How much one of many
items matters to it is little, and would be lost among what tells the items apart.

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
    worth: Float[Array, ""]
    """Of the state, by its context and the picks made."""


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
        keys = iter(jax.random.split(key, 20))
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
                "worth": weight(next(keys), width, 1, width),
            }
        if "unselected" in self.sources:
            params["mean"] = {
                "deepen": _affine(next(keys), width, width),
                "join": weight(next(keys), width, width, width),
                "worth": weight(next(keys), 2 * width, 1, 2 * width),
            }
        return params

    def check(self, trained: Spec, shown: Spec) -> None:
        """Any N, U and K are fine; what describes a row must be as in training."""
        check_rows(trained, shown)

    def values(
        self, params: Params, observation: Observation, picks: Action
    ) -> Float[Array, "N C"]:
        """The value of every pair; rows of picked items hold numbers that mean nothing."""
        return self.read(
            params, self._extended(params, self.begin(params, observation), observation, picks)
        )

    def value(
        self,
        params: Params,
        observation: Observation,
        picks: Action,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Float[Array, ""]:
        """The value of one pair: of all other items only their mean is needed."""
        picks = jax.tree.map(lambda leaf: leaf[:-1], picks)  # the last is made in no phase
        row = observation._replace(items=observation.items[item][None])
        begun = self._extended(params, self.begin(params, row), observation, picks)
        everyone = _encoded(params, observation.items)
        left = self._left(observation.present.astype(jnp.float32), picks)
        return self.read(params, begun, (everyone, left))[0, command]

    def begin(self, params: Params, observation: Observation) -> Begun:
        """A state with no picks."""
        encoded = _encoded(params, observation.items)
        alone, worth = _apply(params["join"], encoded), jnp.zeros(())
        if "context" in params:
            part = params["context"]
            meets = observation.items @ part["meets"]
            there = observation.context_present
            messages, worth = _messages(part, meets, observation.context, there)
            alone = alone + messages @ part["join"]
        meets = jnp.zeros_like(alone)
        if "selected" in params:
            meets = observation.items @ params["selected"]["meets"]
        nothing = jnp.zeros((alone.shape[0], self._width))
        left = observation.present.astype(jnp.float32)
        return Begun(encoded, alone, meets, nothing, left, worth)

    def extend(
        self,
        params: Params,
        begun: Begun,
        observation: Observation,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Begun:
        """The state after one more pick; item −1 picks nothing."""
        return self._extended(params, begun, observation, Action(item[None], command[None]))

    def read(self, params: Params, begun: Begun, others: Any = None) -> Float[Array, "N C"]:
        """The value of every pair; `others` are all items where those begun are only some."""
        joined, worth = begun.alone, begun.worth
        if "mean" in params:
            encoded, left = (begun.encoded, begun.left) if others is None else others
            common, more = _of_mean(params["mean"], encoded, left)
            joined, worth = joined + common[None], worth + more
        if "selected" in params:
            joined = joined + begun.messages @ params["selected"]["join"]
        if self.normalises:
            joined = _normalised(joined)
        return _apply(params["out"], leaky(_apply(params["mix"], leaky(joined)))) + worth

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

    def _extended(
        self, params: Params, begun: Begun, observation: Observation, picks: Action
    ) -> Begun:
        """The state after some more picks."""
        begun = begun._replace(left=self._left(begun.left, picks))
        if "selected" not in params:
            return begun
        commands = jax.nn.one_hot(picks.commands, observation.legal.shape[1])
        rows = jnp.concatenate([observation.items[picks.items], commands], axis=1)
        more, worth = _messages(params["selected"], begun.meets, rows, picks.items >= 0)
        return begun._replace(messages=begun.messages + more, worth=begun.worth + worth)

    def _left(self, left: Float[Array, " N"], picks: Action) -> Float[Array, " N"]:
        return left * ~picked(picks, left.shape[0]) if self.selected else left


def _encoded(params: Params, rows: Float[Array, "M F"]) -> Float[Array, "M H"]:
    return leaky(_apply(params["encode"], rows))


def _of_mean(
    part: Params, encoded: Float[Array, "N H"], left: Float[Array, " N"]
) -> tuple[Float[Array, " H"], Float[Array, ""]]:
    """What the mean of the items that are left gives to every row, and to the state's worth."""
    mean = (left / jnp.maximum(left.sum(), 1.0)) @ encoded
    deep = leaky(_apply(part["deepen"], mean))
    return deep @ part["join"], (jnp.concatenate([deep, mean]) @ part["worth"])[0]


def _messages(
    part: Params,
    meets: Float[Array, "M H"],
    others: Float[Array, "P F"],
    there: Bool[Array, " P"],
) -> tuple[Float[Array, "M D"], Float[Array, ""]]:
    """To each of M rows, and to the state's worth, summed over the P others that are there."""
    others, there = _apply(part["other"], others), there.astype(jnp.float32)
    deep = leaky(_apply(part["deepen"], leaky(meets[:, None] + others[None])))
    worth = (there @ (leaky(others) @ part["worth"]))[0]
    return jnp.einsum("mph,p->mh", deep, there), worth


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
