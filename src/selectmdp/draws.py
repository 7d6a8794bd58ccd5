"""Cheap uniform numbers: a world's step at batch 1,024 would spend most of its time in threefry.

Keys still come from `jax.random.split`; only the numbers under one key are made by a counter and an
integer hash of two rounds per key word, which compiles to a few vector instructions a number.
"""

import math
from itertools import accumulate

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt32

GOLDEN = 0x9E3779B9


def uniform(key: Key[Array, ""], shape: tuple[int, ...], start: int = 0) -> Float[Array, "*shape"]:
    """Numbers in [0, 1) on a grid of 2⁻²⁴, each a hash of the key and its place from `start` on."""
    first, second = jax.random.key_data(key)[-2:]
    place = jnp.arange(start, start + math.prod(shape), dtype=jnp.uint32) * jnp.uint32(GOLDEN)
    bits = _mixed(_mixed(place + first) ^ second)
    return ((bits >> 8).astype(jnp.float32) * 2.0**-24).reshape(shape)


def uniforms(key: Key[Array, ""], *shapes: tuple[int, ...]) -> tuple[Float[Array, "..."], ...]:
    """Several arrays under one key, at places of their own."""
    ends = list(accumulate(math.prod(shape) for shape in shapes))
    starts = [0, *ends[:-1]]
    return tuple(uniform(key, shape, start) for shape, start in zip(shapes, starts, strict=True))


def order(numbers: Float[Array, " n"]) -> Int[Array, " n"]:
    """A permutation of 0 … n − 1, random if the numbers are: their ranks, ties in order."""
    index = jnp.arange(numbers.shape[0])
    tied = (numbers[:, None] == numbers[None]) & (index[:, None] > index[None])
    return ((numbers[:, None] > numbers[None]) | tied).sum(axis=1)


def _mixed(bits: UInt32[Array, " n"]) -> UInt32[Array, " n"]:
    """A bijection of 32 bits in which every input bit moves every output bit (lowbias32)."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x846CA68B)
    return bits ^ (bits >> 16)
