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
`read` gives the values. Learning needs one row only, and takes `value_by`: of the other items it
needs their sum alone, which all picks of a step share.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from selectmdp.iterative import picked
from selectmdp.nets.base import Params, apply, check_rows, leaky, normalised, pick_rows, weight
from selectmdp.nets.isq import SOURCES, Source
from selectmdp.nets.messages import affine, messages_to, spread, with_pass
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


class Left(NamedTuple):
    """The items that are present and not picked."""

    summed: Float[Array, " H"]
    """What they are, summed."""
    number: Float[Array, ""]


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
            "encode": spread(next(keys), features, width),
            "join": affine(next(keys), width, width),
            "mix": affine(next(keys), width, width),
            "out": affine(next(keys), width, spec.num_commands),
        }
        for name, other in self._others(spec).items():
            params[name] = {
                "meets": weight(next(keys), features, width, features),
                "other": spread(next(keys), other, width),
                "deepen": affine(next(keys), width, self._width),
                "join": weight(next(keys), self._width, width, self._width),
                "worth": weight(next(keys), width, 1, width),
            }
        if {"selected", "context"} <= set(params):
            seen, thing = features + spec.num_commands, spec.context_features
            params["gather"] = {
                "pick": spread(next(keys), seen, width),
                "thing": weight(next(keys), thing, width, thing),
                "join": weight(next(keys), width, width, width),
            }
        if "unselected" in self.sources:
            params["mean"] = {
                "deepen": affine(next(keys), width, width),
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
        """The value of one pair."""
        crowds = self.shared(jax.tree.map(lambda leaf: leaf[None], params), observation)
        return self.value_by(params, crowds[0], observation, picks, item, command)

    def shared(self, params: Params, observation: Observation) -> Float[Array, "R H"]:
        """What all items that are present are, summed, by each of R parameter sets."""
        layers = params["encode"]
        sets, features, width = layers["weight"].shape
        if "mean" not in params:
            return jnp.zeros((sets, 0))
        together = jnp.moveaxis(layers["weight"], 0, 1).reshape(features, sets * width)
        encoded = leaky(observation.items @ together + layers["bias"].reshape(1, -1))
        return (observation.present.astype(jnp.float32) @ encoded).reshape(sets, width)

    def value_by(
        self,
        params: Params,
        shared: Float[Array, " H"],
        observation: Observation,
        picks: Action,
        item: Int[Array, ""],
        command: Int[Array, ""],
    ) -> Float[Array, ""]:
        """The value of one pair: of all other items only their mean is needed."""
        picks = jax.tree.map(lambda leaf: leaf[:-1], picks)  # the last is made in no phase
        row = observation._replace(items=observation.items[item][None])
        begun = self._extended(params, self.begin(params, row), observation, picks)
        values = self.read(params, begun, row, self._beside(params, shared, observation, picks))
        return values[jnp.where(item < 0, 1, 0) if "pass" in params else 0, command]

    def begin(self, params: Params, observation: Observation) -> Begun:
        """A state with no picks."""
        encoded = leaky(apply(params["encode"], observation.items))
        alone = with_pass(params, "alone", apply(params["join"], encoded))
        meets = jnp.zeros_like(alone)
        if "selected" in params:
            meets = observation.items @ params["selected"]["meets"]
            meets = with_pass(params, "selected", meets)
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
        self, params: Params, begun: Begun, observation: Observation, left: Left | None = None
    ) -> Float[Array, "rows C"]:
        """The value of every pair; `left` tells of all items where those begun are only some."""
        joined, worth = begun.alone, begun.worth
        if "selected" in params:
            joined = joined + begun.messages @ params["selected"]["join"]
        if "context" in params:
            part = params["context"]
            things = apply(part["other"], observation.context)
            if "gather" in params:
                things = things + begun.gathered @ params["gather"]["join"]
            meets = with_pass(params, "context", observation.items @ part["meets"])
            messages, more = messages_to(part, meets, things, observation.context_present)
            joined, worth = joined + messages @ part["join"], worth + more
        if "mean" in params:
            part = params["mean"]
            summed, count = left or Left(begun.left @ begun.encoded, begun.left.sum())
            mean = summed if self.sums else summed / jnp.maximum(count, 1.0)
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
        more, worth = messages_to(part, begun.meets, apply(part["other"], rows), there)
        begun = begun._replace(messages=begun.messages + more, worth=begun.worth + worth)
        if "gather" not in params:
            return begun
        part = params["gather"]
        brought = apply(part["pick"], rows)[:, None] + (observation.context @ part["thing"])[None]
        more = jnp.einsum("puh,p->uh", leaky(brought), there.astype(jnp.float32))
        return begun._replace(gathered=begun.gathered + more)

    def _beside(
        self,
        params: Params,
        crowd: Float[Array, " H"],
        observation: Observation,
        picks: Action,
    ) -> Left | None:
        """The items that are left once picks are made: all but those."""
        if "mean" not in params:
            return None
        left = Left(crowd, observation.present.sum())
        if not self.selected:
            return left
        there = (picks.items >= 0).astype(jnp.float32)
        gone = there @ leaky(apply(params["encode"], observation.items[picks.items]))
        count = left.number - there.sum()
        return Left(jnp.where(count > 0, left.summed - gone, 0.0), count)

    def _left(self, left: Float[Array, " N"], picks: Action) -> Float[Array, " N"]:
        return left * ~picked(picks, left.shape[0]) if self.selected else left
