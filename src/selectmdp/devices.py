"""Several devices under one run: what each has a share of, what all have alike, and how it moves.

The same program runs on every device, on its own share; only means pass between them. What is said
here about a share holds for one device too, whose share is all: nothing is compiled for it.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Key, Shaped

AXIS = "devices"
ALIKE = PartitionSpec()
"""Every device has the whole."""
SHARED = PartitionSpec(AXIS)
"""Every device has its part of the first axis."""


@dataclass(frozen=True)
class Shares:
    """How many devices share environments and batches, as seen from inside one of them."""

    count: int = 1

    def of(self, total: int) -> int:
        """One device's part of a number that all have together."""
        return total // self.count

    def part(self, whole: Shaped[Array, "total ..."]) -> Shaped[Array, "own ..."]:
        """This device's part of what all have made alike."""
        if self.count == 1:
            return whole
        own = self.of(whole.shape[0])
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index(AXIS) * own, own)

    def keys(self, key: Key[Array, ""], total: int) -> Key[Array, " own"]:
        """This device's part of the keys that one device alone would split this key into."""
        return self.part(jax.random.split(key, total))

    def own(self, key: Key[Array, ""]) -> Key[Array, ""]:
        """A key that no other device has."""
        return key if self.count == 1 else jax.random.fold_in(key, jax.lax.axis_index(AXIS))

    def mean(self, tree: Any) -> Any:
        """The mean over devices: the one thing that they tell each other."""
        return tree if self.count == 1 else jax.lax.pmean(tree, AXIS)


ALONE = Shares()
"""One device, which has all."""


def mesh(count: int) -> Mesh:
    """The first devices of all processes, in a row."""
    return jax.make_mesh((count,), (AXIS,), (AxisType.Auto,), devices=jax.devices()[:count])


def here(tree: Any) -> Any:
    """What all devices have alike, as the first of this process has it."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0) if _alike(leaf) else leaf, tree)


def gathered(tree: Any) -> Any:
    """The whole of every array, where this process can read it; all processes must ask."""

    def whole(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
            return leaf
        if _is_key(leaf):
            numbers = whole(jax.random.key_data(leaf))
            return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(leaf))
        from jax.experimental.multihost_utils import process_allgather

        return here(leaf) if _alike(leaf) else process_allgather(leaf, tiled=True)

    return jax.tree.map(whole, tree)


def placed(tree: Any, like: Any) -> Any:
    """Arrays of this process on the devices where `like` has them; as they are where it has none.

    All processes hold the same.
    """

    def put(leaf: Any, wanted: Any) -> Any:
        place = wanted.sharding
        if place is None:
            return leaf
        if _is_key(leaf):
            numbers = np.asarray(jax.random.key_data(leaf))
            spread = _put(numbers, NamedSharding(place.mesh, place.spec))
            return jax.random.wrap_key_data(spread, impl=jax.random.key_impl(leaf))
        return _put(np.asarray(leaf), place)

    return jax.tree.map(put, tree, like)


def _put(whole: Any, place: NamedSharding) -> Array:
    return jax.make_array_from_callback(whole.shape, place, lambda part: whole[part])


def _alike(leaf: Any) -> bool:
    """Whether several devices have this array, each of them all of it."""
    if not isinstance(leaf, jax.Array) or len(leaf.sharding.device_set) == 1:
        return False
    return leaf.is_fully_replicated


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
