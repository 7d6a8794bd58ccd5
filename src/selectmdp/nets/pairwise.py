"""A network of pairs: an item is worth what it is, beside each pick and each thing of the context.

It is equi-invariant as the paper asks (§3.1) and works for any N, U and K. Where φ layers see the
other sets by their means alone, here an item meets every pick and every thing of the context: a
message of two layers for each pair, summed. A thing of the context knows what the picks bring to it
before an item meets it: whether a second predator is needed depends on the first. Items meet each
other by the mean of what they are.

What all items have in common, the worth of the state, has a way of its own to the values (as in
dueling networks): the mean, each pick and each thing of the context add to it. How much one of many
items matters to it is little, and would be lost among what tells the items apart.

A pass, where it is allowed, is one more row beside the items, learned instead of seen: it meets
what they meet, and counts in no mean.

What does not depend on the picks is made once a step (`begin`); a pick adds to it (`extend`);
`read` gives the values. Learning needs one row only and takes `value`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from selectmdp import draws
from selectmdp.iterative import picked
from selectmdp.nets.base import Params, apply, check_rows, leaky, normalised, pick_rows, weight
from selectmdp.nets.isq import SOURCES, Source
from selectmdp.spec import Spec
from selectmdp.types import Action, Observation


class Begun(NamedTuple):
    """A state with some picks made, as far as the next values need it."""

    encoded: Float[Array, "N H"]
    """What each item is."""
    alone: Float[Array, "rows H"]
    """What each item, and the pass, brings to the join by itself."""
    meets: Float[Array, "rows H"]
    """What each brings to a message with a pick."""
    messages: Float[Array, "rows M"]
    """Summed over the picks made."""
    left: Float[Array, " N"]
    """1 for items that are present and not picked."""
    gathered: Float[Array, "U H"]
    """What the picks made bring to each thing of the context, summed."""
    worth: Float[Array, ""]
    """Of the state, by the picks made."""


@dataclass(frozen=True)
class Pairwise:
    """Messages between items and picks, items and context; any N at run time."""

    channels: int = 64
    """Numbers for each row in a hidden layer; in a message half as many."""
    normalises: bool = False
    """Whether rows are layer-normalised where their parts are joined."""
    sources: tuple[Source, ...] = SOURCES
    """The sets that are seen: EQ does not see the other unselected items."""
    selected: bool = True
    """Whether picks are seen at all: IDQN does not."""
    sums: bool = False
    """Items meet each other by their sum instead of their mean."""

    def init(self, key: Key[Array, ""], spec: Spec) -> Params:
        """Fresh parameters: one set."""
        width, features = self.channels, spec.item_features
        keys = iter(jax.random.split(key, 24))
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
        if {"selected", "context"} <= set(params):
            seen, thing = features + spec.num_commands, spec.context_features
            params["gather"] = {
                "pick": _spread(next(keys), seen, width),
                "thing": weight(next(keys), thing, width, thing),
                "join": weight(next(keys), width, width, width),
            }
        if "unselected" in self.sources:
            params["mean"] = {
                "deepen": _affine(next(keys), width, width),
                "join": weight(next(keys), width, width, width),
                "worth": weight(next(keys), 2 * width, 1, 2 * width),
            }
        if spec.allow_pass:
            names = ("alone", *self._others(spec))
            params["pass"] = {name: weight(next(keys), 1, width, 1) for name in names}
        return params

    def check(self, trained: Spec, shown: Spec) -> None:
        """Any N, U and K are fine; what describes a row must be as in training."""
        check_rows(trained, shown)

    def values(
        self, params: Params, observation: Observation, picks: Action
    ) -> Float[Array, "rows C"]:
        """The value of every pair; rows of picked items hold numbers that mean nothing."""
        begun = self._extended(params, self.begin(params, observation), observation, picks)
        return self.read(params, begun, observation)

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
        encoded = leaky(apply(params["encode"], observation.items))
        left = self._left(observation.present.astype(jnp.float32), picks)
        values = self.read(params, begun, row, (encoded, left))
        return values[jnp.where(item < 0, 1, 0) if "pass" in params else 0, command]

    def begin(self, params: Params, observation: Observation) -> Begun:
        """A state with no picks."""
        encoded = leaky(apply(params["encode"], observation.items))
        alone = _over_pass(params, "alone", apply(params["join"], encoded))
        meets = jnp.zeros_like(alone)
        if "selected" in params:
            meets = observation.items @ params["selected"]["meets"]
            meets = _over_pass(params, "selected", meets)
        return Begun(
            encoded,
            alone,
            meets,
            messages=jnp.zeros((alone.shape[0], self._width)),
            left=observation.present.astype(jnp.float32),
            gathered=jnp.zeros((observation.context.shape[0], self.channels)),
            worth=jnp.zeros(()),
        )

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

    def read(
        self, params: Params, begun: Begun, observation: Observation, others: Any = None
    ) -> Float[Array, "rows C"]:
        """The value of every pair; `others` are all items where those begun are only some."""
        joined, worth = begun.alone, begun.worth
        if "selected" in params:
            joined = joined + begun.messages @ params["selected"]["join"]
        if "context" in params:
            part = params["context"]
            things = apply(part["other"], observation.context)
            if "gather" in params:
                things = things + begun.gathered @ params["gather"]["join"]
            meets = _over_pass(params, "context", observation.items @ part["meets"])
            messages, more = _messages(part, meets, things, observation.context_present)
            joined, worth = joined + messages @ part["join"], worth + more
        if "mean" in params:
            part = params["mean"]
            encoded, left = (begun.encoded, begun.left) if others is None else others
            mean = (left if self.sums else left / jnp.maximum(left.sum(), 1.0)) @ encoded
            deep = leaky(apply(part["deepen"], mean))
            joined = joined + (deep @ part["join"])[None]
            worth = worth + (jnp.concatenate([deep, mean]) @ part["worth"])[0]
        if self.normalises:
            joined = normalised(joined)
        return apply(params["out"], leaky(apply(params["mix"], leaky(joined)))) + worth

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
        rows, there = pick_rows(observation, picks), picks.items >= 0
        part = params["selected"]
        more, worth = _messages(part, begun.meets, apply(part["other"], rows), there)
        begun = begun._replace(messages=begun.messages + more, worth=begun.worth + worth)
        if "gather" not in params:
            return begun
        part = params["gather"]
        brought = apply(part["pick"], rows)[:, None] + (observation.context @ part["thing"])[None]
        more = jnp.einsum("puh,p->uh", leaky(brought), there.astype(jnp.float32))
        return begun._replace(gathered=begun.gathered + more)

    def _left(self, left: Float[Array, " N"], picks: Action) -> Float[Array, " N"]:
        return left * ~picked(picks, left.shape[0]) if self.selected else left


def _messages(
    part: Params,
    meets: Float[Array, "M H"],
    others: Float[Array, "P H"],
    there: Bool[Array, " P"],
) -> tuple[Float[Array, "M D"], Float[Array, ""]]:
    """To each of M rows, and to the state's worth, summed over the P others that are there."""
    weights = there.astype(jnp.float32)
    deep = leaky(apply(part["deepen"], leaky(meets[:, None] + others[None])))
    worth = (weights @ (leaky(others) @ part["worth"]))[0]
    return jnp.einsum("mph,p->mh", deep, weights), worth


def _over_pass(params: Params, name: str, rows: Float[Array, "N H"]) -> Float[Array, "rows H"]:
    """What items bring, and under them what the pass does, where there is one."""
    return jnp.concatenate([rows, params["pass"][name]]) if "pass" in params else rows


def _affine(key: Key[Array, ""], rows: int, columns: int) -> Params:
    return {"weight": weight(key, rows, columns, rows), "bias": jnp.zeros(columns)}


def _spread(key: Key[Array, ""], rows: int, columns: int) -> Params:
    """A layer on features, whose kinks lie all over the unit cube and not only at its centre."""
    weight_key, bias_key = jax.random.split(key)
    bias = 2.0 * draws.uniform(bias_key, (columns,)) - 1.0
    return {"weight": weight(weight_key, rows, columns, rows), "bias": bias}
