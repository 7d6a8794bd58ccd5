"""I-, U- and P-sharing (paper §3.2, §3.3): which parameter set serves which of the K phases.

Sharing is a map phase → set. Unified sharing has one set for all phases, independent one for each
(I-sharing alone), progressive begins as unified and doubles its sets until there are K. A set is
named after its first phase; progressive allocates K rows from the start, so that a split copies
rows and changes the map, and nothing recompiles.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from selectmdp.nets.base import Params

Sharing = Literal["independent", "unified", "progressive"]
PhaseMap = tuple[int, ...]


def num_sets(sharing: Sharing, num_select: int) -> int:
    """How many rows of parameters are allocated."""
    return 1 if sharing == "unified" else num_select


def first_map(sharing: Sharing, num_select: int) -> PhaseMap:
    """The map at the start of training."""
    return tuple(range(num_select)) if sharing == "independent" else (0,) * num_select


def stages(num_select: int) -> list[PhaseMap]:
    """Progressive sharing's maps, from one set to K: phases a … b − 1 part at ⌊(a + b + 1)/2⌋."""
    maps = [(0,) * num_select]
    while len(set(maps[-1])) < num_select:
        old = maps[-1]
        new = []
        for phase in range(num_select):
            start, end = old[phase], num_select - old[::-1].index(old[phase])
            middle = (start + end + 1) // 2
            new.append(middle if phase >= middle else start)
        maps.append(tuple(new))
    return maps


def map_at(sharing: Sharing, num_select: int, step: int, total_steps: int) -> PhaseMap:
    """The map in force at a step: split j of n is due at ⌊jT / 2n⌋, all by half of the training."""
    if sharing != "progressive":
        return first_map(sharing, num_select)
    maps = stages(num_select)
    splits = len(maps) - 1
    due = sum(step >= j * total_steps // (2 * splits) for j in range(1, splits + 1))
    return maps[due]


def split(stacked: Any, old: PhaseMap) -> Any:
    """Children as copies of their parents: every phase's row becomes that of its old set.

    `stacked` is a tree with K rows in front of every array (parameters, optimiser moments);
    scalars, such as the optimiser's count, belong to all sets.
    """
    rows = np.asarray(old)
    return jax.tree.map(lambda leaf: leaf if leaf.ndim == 0 else leaf[rows], stacked)


def of_phases(params: Params, phase_map: Int[Array, " K"]) -> Params:
    """The stacked sets, one row for each phase; a single set stays single, for all."""
    rows = jax.tree.leaves(params)[0].shape[0]
    if rows == 1:
        return params
    return jax.tree.map(lambda leaf: leaf[phase_map], params)


def of_phase(params: Params, phase_map: Int[Array, " K"], phase: Int[Array, ""]) -> Params:
    """The set that serves one phase."""
    return jax.tree.map(lambda leaf: leaf[phase_map[phase]], params)


def stretched(phase_map: PhaseMap, num_select: int) -> PhaseMap:
    """A map for another number K′ of picks: phase j takes the set of phase round(j(K−1)/(K′−1))."""
    last, steps = len(phase_map) - 1, max(num_select - 1, 1)
    return tuple(phase_map[round(phase * last / steps)] for phase in range(num_select))


def as_array(phase_map: PhaseMap) -> Int[Array, " K"]:
    """The map as data for compiled code."""
    return jnp.asarray(phase_map, jnp.int32)
