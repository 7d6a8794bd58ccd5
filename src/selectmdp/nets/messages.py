"""What the network of pairs is built of: its layers, and messages between rows that meet."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from selectmdp import draws
from selectmdp.nets.base import Params, apply, leaky, weight


def affine(key: Key[Array, ""], rows: int, columns: int) -> Params:
    """A layer with biases of 0."""
    return {"weight": weight(key, rows, columns, rows), "bias": jnp.zeros(columns)}


def spread(key: Key[Array, ""], rows: int, columns: int) -> Params:
    """A layer on features, whose kinks lie all over the unit cube and not only at its centre."""
    weight_key, bias_key = jax.random.split(key)
    bias = 2.0 * draws.uniform(bias_key, (columns,)) - 1.0
    return {"weight": weight(weight_key, rows, columns, rows), "bias": bias}


def messages_to(
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


def with_pass(params: Params, name: str, rows: Float[Array, "N H"]) -> Float[Array, "rows H"]:
    """What items bring, and under them what the pass does, where there is one."""
    return jnp.concatenate([rows, params["pass"][name]]) if "pass" in params else rows
