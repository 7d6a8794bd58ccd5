"""Trees of arrays as safetensors, bit for bit: every dtype that JAX has, and random keys."""

import hashlib
import json
import math
from collections.abc import Callable
from functools import partial
from io import BufferedReader
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from selectmdp.checkpoint.disk import CheckpointError, check_digest
from selectmdp.files import check_size, parse_json

MOST_HEADER = 1_000_000
"""Bytes of a file's header, of thousands of leaves; one that claims more is not read."""

CODES = {"bool": "BOOL", "bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64"}
CODES |= {f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)}
CODES |= {f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)}
DTYPES = {code: name for name, code in CODES.items()}


class Leaf(NamedTuple):
    """The numbers of a leaf; of a random key its data, and the name of its generator."""

    array: np.ndarray[Any, Any]
    impl: str | None = None


def by_name(name: str, tree: Any, convert: Callable[[Any], Any]) -> dict[str, Any]:
    """The leaves of a tree, converted."""
    leaves: dict[str, Any] = {}
    key = ""
    try:
        for where, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            key = jax.tree_util.keystr(where)
            if key in leaves:
                raise ValueError("two leaves have this name")
            leaves[key] = convert(leaf)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise CheckpointError(
            f"leaf {key!r} of tree {name!r}: {error}; "
            "a tree holds arrays and keys, the rest belongs in meta"
        ) from error
    return leaves


def stored(leaf: Any) -> Leaf:
    """A leaf as it is written."""
    if not hasattr(leaf, "dtype"):
        leaf = jnp.asarray(leaf)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return Leaf(np.asarray(jax.random.key_data(leaf)), str(jax.random.key_impl(leaf)))
    array = np.asarray(leaf, order="C")
    return Leaf(array.astype(_known(array.dtype).newbyteorder("="), copy=False))


def restored(leaf: Leaf) -> Any:
    """A leaf as it was."""
    if jax.dtypes.canonicalize_dtype(leaf.array.dtype) != leaf.array.dtype:
        return leaf.array
    # A copy, so that the file's bytes can go; jnp.array would compile a program for each shape.
    array = jax.device_put(leaf.array, may_alias=False)
    return jax.random.wrap_key_data(array, impl=leaf.impl) if leaf.impl else array


def sort(leaf: Any) -> str:
    """What a leaf is, as `float32[3, 4]` or `key<fry>[]`."""
    if isinstance(leaf, Leaf) and leaf.impl:
        leaf = jax.eval_shape(partial(jax.random.wrap_key_data, impl=leaf.impl), leaf.array)
    elif isinstance(leaf, Leaf):
        leaf = leaf.array
    elif not hasattr(leaf, "dtype"):
        leaf = jnp.asarray(leaf)
    return f"{leaf.dtype.name}{list(leaf.shape)}"


def encoded(leaves: dict[str, Leaf]) -> list[Any]:
    """The parts of a safetensors file: the header's length, the header, the numbers of each leaf.

    The library itself would hold them in memory twice, or not say why the disk refused them.
    """
    header: dict[str, Any] = {}
    dtypes, impls, end = {}, {}, 0
    for key, (array, impl) in leaves.items():
        shape, code = list(array.shape), CODES.get(array.dtype.name)
        if code is None:  # unknown to the format: bytes, on an axis more
            dtypes[key], shape, code = array.dtype.name, [*shape, array.itemsize], "U8"
        if impl is not None:
            impls[key] = impl
        start, end = end, end + array.nbytes
        header[key] = {"dtype": code, "shape": shape, "data_offsets": [start, end]}
    header["__metadata__"] = {"dtypes": json.dumps(dtypes), "impls": json.dumps(impls)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER:
        raise CheckpointError(f"a tree of {len(leaves):,} leaves is too many: join some of them")
    numbers = [leaf.array.reshape(-1).view(np.uint8) for leaf in leaves.values()]
    return [len(text).to_bytes(8, "little"), text, *numbers]


def decoded(file: BufferedReader, size: int, digest: str) -> dict[str, Leaf]:
    """The leaves of a file of `size` bytes, if it has this SHA-256.

    Nothing is allocated on a header's word: what it claims must add up to the file's own size.
    """
    check_digest(hashlib.file_digest(file, "sha256").hexdigest(), digest)
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    check_size(length, min(MOST_HEADER, size - 8))
    header = parse_json(file.read(length))
    about = header.pop("__metadata__")
    dtypes, impls = parse_json(about["dtypes"].encode()), parse_json(about["impls"].encode())
    end, leaves = 0, {}
    for key, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        shape = entry["shape"][:-1] if key in dtypes else entry["shape"]
        dtype = _known(np.dtype(dtypes.get(key) or DTYPES[entry["dtype"]]))
        start, end = end, end + math.prod(shape) * dtype.itemsize
        if [start, end] != entry["data_offsets"] or not start <= end <= size - 8 - length:
            raise ValueError(f"its leaf {key!r} is not where the header says")
        array = np.empty(shape, dtype)
        numbers = array.reshape(-1).view(np.uint8)
        if file.readinto(numbers.data) != len(numbers):
            raise ValueError("it ends too early")
        leaves[key] = Leaf(array, impls.get(key))
    if end != size - 8 - length:
        raise ValueError("it has bytes that belong to no leaf")
    return leaves


def differences(found: dict[str, str], wanted: dict[str, str]) -> str:
    """What keeps two trees from being alike in a few words; nothing if they are."""
    faults = [f"{key} is missing" for key in wanted if key not in found]
    faults += [f"{key} is extra" for key in found if key not in wanted]
    both = [key for key in wanted if key in found]
    faults += [
        f"{key} is {found[key]}, not {wanted[key]}" for key in both if found[key] != wanted[key]
    ]
    more = [f"and {len(faults) - 4} more"] if len(faults) > 4 else []
    return ", ".join(faults[:4] + more)


def _known(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype`, if it is of numbers: the bytes of text or of a pointer are not to be believed."""
    if not hasattr(jnp, dtype.name):
        raise TypeError(f"JAX has no arrays of {dtype.name}")
    return dtype
