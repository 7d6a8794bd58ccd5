"""K picks of one as a graph (paper §2.1): each phase's values, its mask, its argmax, unrolled.

It is what `agent.act` does without exploring: item −1 where nothing legal is left and from a pass
on, the first of equals. K is fixed in the graph; N, U and the batch are not.
"""

from typing import Any, NamedTuple

import numpy as np

from selectmdp.export.base import NetworkGraph, Numbers, Pick, Seen
from selectmdp.export.tensors import BOOL, FLOAT, Tensor, joined, repeated, where
from selectmdp.sharing import PhaseMap

NONE = np.int64(-1)
"""The item where nothing is picked."""


class Picked(NamedTuple):
    """What the policy gives for every state of a batch."""

    items: Tensor
    """[B, K]"""
    commands: Tensor
    """[B, K]"""
    values: Tensor
    """[B, K, N, C]: −inf where a pair was not allowed; one more row where a pass is allowed."""


def unrolled(
    network: NetworkGraph,
    sets: dict[int, Numbers],
    phase_map: PhaseMap,
    seen: Seen,
    passing: int = 0,
) -> Picked:
    """All K phases. `sets` are the parameters by row of the phase map.

    `passing` is 0, or the number of commands where a pass is allowed.
    """
    begun: dict[int, tuple[Any, int]] = {}
    picks: list[Pick] = []
    parts = []
    first_command = np.arange(passing) == 0
    free, num_items = seen.present, seen.items.node("Shape", start=1, end=2)
    for row in phase_map:
        # Each parameter set has a state of its own, and hears of the picks when its phase comes.
        params = sets[row]
        state, known = begun.get(row) or (network.begin(params, seen), 0)
        for pick in picks[known:]:
            state = network.extend(params, state, pick)
        begun[row] = state, len(picks)
        allowed = seen.legal & free.axis(2)
        if passing:
            allowed = joined([allowed, repeated(first_command, allowed)], axis=1)
            allowed = allowed & picks[-1].made.cast(BOOL).axis(2) if picks else allowed
        values = where(allowed, network.read(params, state), np.float32(-np.inf))
        item, command = best_pair(values, allowed)
        if passing:
            made = item.node("Less", num_items)
            item, command = where(made, item, NONE), where(made, command, np.int64(0))
        picks.append(_pick(seen, item, command))
        free = free & ~picks[-1].hit
        parts.append(Picked(item, command, values.axis(1)))
    return Picked(*(joined(list(part), axis=1) for part in zip(*parts, strict=True)))


def best_pair(values: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """[B, 1] each: the allowed pair of the largest value; item −1 where none is."""
    num_commands = values.node("Shape", start=2)
    flat = values.node("Flatten", axis=1).node("ArgMax", axis=1, keepdims=1)
    possible = allowed.cast(FLOAT).node("Flatten", axis=1)
    possible = possible.node("ReduceMax", np.asarray([1]), keepdims=1).node("Greater", 0.0)
    item = where(possible, flat / num_commands, NONE)
    return item, where(possible, flat.node("Mod", num_commands), np.int64(0))


def _pick(seen: Seen, item: Tensor, command: Tensor) -> Pick:
    features = seen.items.node("GatherND", item, batch_dims=1).axis(1)  # −1 takes the last
    given = command.node("Equal", _range(seen.legal, 2)).cast(FLOAT).axis(1)
    return Pick(
        row=joined([features, given], axis=2),
        made=item.node("Greater", NONE).cast(FLOAT),
        hit=item.node("Equal", _range(seen.items, 1)),
    )


def _range(tensor: Tensor, axis: int) -> Tensor:
    """0, 1, … along an axis whose length is known when the graph runs."""
    length = tensor.node("Shape", start=axis, end=axis + 1).node("Squeeze")
    return length.graph.node("Range", np.int64(0), length, np.int64(1))
