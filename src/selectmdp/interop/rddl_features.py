"""What an item of an RDDL domain shows, read from the lifted model and from nothing else.

An item is a tuple of objects, the parameters of an action fluent. It shows

- every fluent of its own objects, or of some of them: `running(?c)`, `TARGET(?x, ?y)`; of state
  fluents also those without parameters;
- through every fluent that relates it to other objects, `CONNECTED(?c, ?d)` forwards and backwards:
  how many they are, and of each of their fluents the sum and the mean (of a boolean: how many, and
  which share), also of two or three booleans together: a neighbour that is a target and burns is
  more than one that is a target and one that burns. Where the others are such tuples themselves
  this is told of all that they show by the first rule and by what they relate to, so that a reach
  of a river sees, through `DOWNSTREAM-REACH`, the plants in the slots of the next reach.

The columns follow from the domain alone, so a policy of one instance plays another. What does not
differ between objects, as a non-fluent without parameters, is not shown. And what is not shown
cannot be learned: to a network that ignores the order of items two items with the same numbers are
the same, whatever tells them apart in the instance's file.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from selectmdp.spec import SelectError

Signature = tuple[str, ...]
"""Types of parameters."""
Values = Mapping[str, npt.NDArray[Any]]
Columns = npt.NDArray[np.float32]  # [tuples of the signature, features]

FORWARDS, BACKWARDS = "→", "←"
NUMBERS = ("bool", "int", "real")


class Relation(NamedTuple):
    """A fluent whose parameters are those of an item and of something else, in either order."""

    fluent: str
    direction: str
    to: Signature

    def table(self, values: Values, rows: int) -> Columns:
        """[items, others]."""
        value = np.asarray(values[self.fluent], np.float32)
        return value.reshape(rows, -1) if self.direction == FORWARDS else value.reshape(-1, rows).T


class Features:
    """The numbers of all items, kind after kind."""

    def __init__(self, model: Any, signatures: Sequence[Signature], values: Values) -> None:
        self._sizes = {kind: len(objects) for kind, objects in model.type_to_objects.items()}
        self._parameters: dict[str, Signature] = {
            name: tuple(model.variable_params[name])
            for name in values
            if model.variable_params[name] or name in model.state_fluents
        }
        for name in self._parameters:
            if model.variable_ranges[name] not in NUMBERS:
                raise SelectError(
                    f"fluent {name} is {model.variable_ranges[name]}: only {', '.join(NUMBERS)} "
                    "can be shown; write it as boolean fluents"
                )
        # A real constant counts by its size beside the same of other objects.
        self._scales = {
            name: float(np.abs(values[name]).max(initial=0.0)) or 1.0
            for name in self._parameters
            if name in model.non_fluents and model.variable_ranges[name] != "bool"
        }
        self._booleans = {
            name for name in self._parameters if model.variable_ranges[name] == "bool"
        }
        self._states = set(model.state_fluents)
        self._signatures = signatures
        self._names = [self._named(signature) for signature in signatures]
        several = len(signatures) > 1
        kinds = [f"is ({', '.join(signature)})" for signature in signatures] if several else []
        self.names = (*kinds, *(name for names in self._names for name in names))

    def __call__(self, values: Values) -> Columns:
        """[N, features]; columns of another kind are 0."""
        values = {
            name: values[name] / self._scales[name] if name in self._scales else values[name]
            for name in self._parameters
        }
        parts = [self._columns(signature, values) for signature in self._signatures]
        if len(parts) == 1:
            return parts[0]
        items = np.zeros((sum(map(len, parts)), len(self.names)), np.float32)
        row, column = 0, len(parts)
        for kind, part in enumerate(parts):
            rows = slice(row, row + len(part))
            items[rows, kind] = 1.0
            items[rows, column : column + part.shape[1]] = part
            row, column = row + part.shape[0], column + part.shape[1]
        return items

    def _columns(self, signature: Signature, values: Values) -> Columns:
        """All that tuples of this signature show."""
        rows = self._count(signature)
        near = self._near(signature, values)
        told = np.concatenate([near, self._joint(signature, values)], axis=1)
        parts = [near]
        for relation in self._relations(signature):
            if relation.to == signature:
                parts += _summed(relation.table(values, rows), told)
        return np.concatenate(parts, axis=1)

    def _near(self, signature: Signature, values: Values) -> Columns:
        """What they show without asking others of their kind."""
        rows = self._count(signature)
        shape = tuple(self._sizes[kind] for kind in signature)
        parts = [
            _spread(np.asarray(values[name], np.float32), place, shape)
            for name, place in self._own(signature)
        ]
        for relation in self._relations(signature):
            table = relation.table(values, rows)
            parts.append(table.sum(axis=1, keepdims=True))
            if relation.to != signature and (theirs := self._of(relation.to)):
                others = [np.asarray(values[name], np.float32).reshape(-1, 1) for name in theirs]
                joint = self._joint(relation.to, values)
                parts += _summed(table, np.concatenate([*others, joint], axis=1))
        return np.concatenate([np.zeros((rows, 0), np.float32), *parts], axis=1)

    def _named(self, signature: Signature) -> list[str]:
        """Names of the columns, in the order in which they are made."""
        near = [
            name if len(signature) == len(self._parameters[name]) else f"{name} of {place}"
            for name, place in self._own(signature)
        ]
        for relation in self._relations(signature):
            through = f"{relation.fluent}{relation.direction}"
            near.append(f"{through} number")
            if relation.to != signature:
                theirs = [*self._of(relation.to), *map(AND.join, self._together(relation.to))]
                near += [f"{through} {how} {name}" for how, name in product(HOWS, theirs)]
        far = [
            f"{relation.fluent}{relation.direction} {how} {name}"
            for relation in self._relations(signature)
            if relation.to == signature
            for how, name in product(HOWS, [*near, *map(AND.join, self._together(signature))])
        ]
        return near + far

    def _own(self, signature: Signature) -> list[tuple[str, int]]:
        """Fluents of the item's own objects, and at which of them their parameters begin."""
        return [
            (name, place)
            for name, parameters in self._parameters.items()
            for place in range(len(signature) - len(parameters) + 1)
            if signature[place : place + len(parameters)] == parameters
            and (parameters or place == 0)
        ]

    def _of(self, signature: Signature) -> list[str]:
        """Fluents of exactly these parameters."""
        return [name for name, kinds in self._parameters.items() if kinds == signature]

    def _together(self, signature: Signature) -> list[tuple[str, ...]]:
        """Two or three booleans of exactly these parameters, of which one at least may change."""
        booleans = [name for name in self._of(signature) if name in self._booleans]
        several = chain(combinations(booleans, 2), combinations(booleans, 3))
        return [names for names in several if self._states.intersection(names)]

    def _joint(self, signature: Signature, values: Values) -> Columns:
        """1 where all of some booleans hold."""
        columns = np.zeros((self._count(signature), 0), np.float32)
        for names in self._together(signature):
            all_hold = np.all([np.asarray(values[name], bool) for name in names], axis=0)
            columns = np.column_stack([columns, all_hold.reshape(-1)])
        return columns

    def _relations(self, signature: Signature) -> list[Relation]:
        """Fluents that relate such an item to something else."""
        length, found = len(signature), []
        for name, parameters in self._parameters.items():
            if len(parameters) > length:
                if parameters[:length] == signature:
                    found.append(Relation(name, FORWARDS, parameters[length:]))
                if length and parameters[-length:] == signature:
                    found.append(Relation(name, BACKWARDS, parameters[:-length]))
        return found

    def _count(self, signature: Signature) -> int:
        return int(np.prod([self._sizes[kind] for kind in signature], dtype=int))


HOWS = ("sum", "mean")
AND = " and "


def _summed(table: Columns, others: Columns) -> list[Columns]:
    """Sums and means of what others show, over those that a table relates to."""
    sums = table @ others
    weight = np.abs(table).sum(axis=1, keepdims=True)
    return [sums, sums / np.where(weight > 0, weight, 1.0)]  # of nobody the mean is 0


def _spread(value: Columns, place: int, shape: tuple[int, ...]) -> Columns:
    """A fluent of some of a tuple's objects, for every tuple."""
    after = len(shape) - place - value.ndim
    return np.broadcast_to(value.reshape((*value.shape, *[1] * after)), shape).reshape(-1, 1)
