"""φ and ψ of the equi-invariant network (paper §3.1): for one state, and for a stack of them.

A stack is [K, B, …]: the phases of a batch of steps, as learning sees them. It gives what the
functions for one state give under two `jax.vmap`s, in few passes over [K, B, N, channels] and with
one matrix product for each parameter set. Its parameters are R sets: one for each phase, or a
single one for all.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from selectmdp.nets.base import Params, leaky, over_pass, weight
from selectmdp.types import Action

Affine = dict[str, Array]
FEW_FEATURES = 8
"""Up to here a row's product is made by additions: matrix products of so few columns are slow."""


class Rows(NamedTuple):
    """One set: rows of channels, and their weights in the set's mean."""

    rows: Float[Array, "*stack M H"]
    share: Float[Array, "*stack M"]
    """1 / how many rows there are, 0 for padding; all 0 in an empty set: its mean is 0."""


def shares(mask: Bool[Array, " M"], sums: bool) -> Float[Array, " M"]:
    """The weight of each row in the mean over those that the mask keeps, or in their sum."""
    rows = mask.astype(jnp.float32)
    return rows if sums else rows / jnp.maximum(rows.sum(), 1.0)  # phase 0 has nothing chosen


def affine(key: Key[Array, ""], own: int, seen: int, width: int) -> Affine:
    """Fresh parameters of one set in one layer; `seen` counts the numbers in all means."""
    own_key, means_key = jax.random.split(key)
    return {
        "own": weight(own_key, own, width, own + seen),
        "means": weight(means_key, seen, width, own + seen),
        "bias": jnp.zeros(width),
    }


def apply(
    affine: Affine, rows: Float[Array, "M F"], means: Float[Array, " S"]
) -> Float[Array, "M H"]:
    """Each row's own product, and what all rows of the set have in common."""
    common = means @ affine["means"] + affine["bias"]
    return rows @ affine["own"] + common[None]


def means(sets: dict[str, Rows], seen: list[str]) -> Float[Array, "*stack S"]:
    """The means of the sets that are seen, one after the other."""
    parts = [jnp.einsum("...m,...mh->...h", sets[name].share, sets[name].rows) for name in seen]
    stack = next(iter(sets.values())).share.shape[:-1]
    return jnp.concatenate(parts, axis=-1) if parts else jnp.zeros((*stack, 0))


def stacked_values(
    params: Params, sets: dict[str, Rows], seen: list[str]
) -> Float[Array, "K B rows C"]:
    """ψ of every unselected row of a stack, and the pass where there is one."""
    sets, psi = _stacked_hidden(params, sets, seen), params["psi"]
    common = _common([psi], means(sets, seen))[0]
    values = _product(sets["unselected"].rows, psi["own"]) + common[:, :, None]
    if "pass" not in params:
        return values
    return over_pass(values, _common([params["pass"]], means(sets, seen))[0])


def stacked_value(
    params: Params, sets: dict[str, Rows], seen: list[str], pick: Action
) -> Float[Array, "K B"]:
    """ψ of the last unselected row of a stack, for the command of each pick, or the pass."""
    sets, psi = _stacked_hidden(params, sets, seen), params["psi"]
    common = _common([psi], means(sets, seen))[0]
    values = _product(sets["unselected"].rows[:, :, -1], psi["own"]) + common
    value = jnp.take_along_axis(values, pick.commands[..., None], axis=-1)[..., 0]
    if "pass" not in params:
        return value
    passing = _common([params["pass"]], means(sets, seen))[0][..., 0]
    return jnp.where(pick.items < 0, passing, value)


def _stacked_hidden(params: Params, sets: dict[str, Rows], seen: list[str]) -> dict[str, Rows]:
    for layer in params["phi"]:
        common = _common([layer[name] for name in sets], means(sets, seen))
        sets = {
            name: part._replace(rows=_stacked_phi(layer[name]["own"], part.rows, shared))
            for (name, part), shared in zip(sets.items(), common, strict=True)
        }
    return sets


def _stacked_phi(
    own: Float[Array, "R F H"], rows: Float[Array, "K B M F"], common: Float[Array, "K B H"]
) -> Float[Array, "K B M H"]:
    product = _features_product if own.shape[1] <= FEW_FEATURES else _product
    return leaky(product(rows, own) + common[:, :, None])


def _common(affines: list[Affine], means: Float[Array, "K B S"]) -> list[Float[Array, "K B H"]]:
    """What all rows have in common, for several sets in one product."""
    together = jnp.concatenate([affine["means"] for affine in affines], axis=2)
    bias = jnp.concatenate([affine["bias"] for affine in affines], axis=1)
    return jnp.split(_product(means, together) + bias[:, None], len(affines), axis=2)


def _product(rows: Float[Array, "K *rest F"], own: Float[Array, "R F H"]) -> Array:
    """Each phase's rows by its own set: R matrix products."""
    return (_by_set(rows, own) @ own).reshape(*rows.shape[:-1], own.shape[2])


def _by_set(rows: Float[Array, "K *rest F"], own: Float[Array, "R F H"]) -> Float[Array, "R M F"]:
    sets = own.shape[0]
    return rows.reshape(sets, math.prod(rows.shape[:-1]) // sets, rows.shape[-1])


@jax.custom_vjp
def _features_product(rows: Float[Array, "K B M F"], own: Float[Array, "R F H"]) -> Array:
    """The same for rows of a few features: additions that melt into the pass that follows."""
    parts = [rows[..., f, None] * own[:, None, None, f] for f in range(own.shape[1])]
    return sum(parts[1:], start=parts[0])


def _features_forward(rows: Array, own: Array) -> tuple[Array, Any]:
    return _features_product(rows, own), (rows, own)


def _features_backward(kept: Any, slope: Float[Array, "K B M H"]) -> tuple[Array, Array]:
    rows, own = kept
    # Rows that are the same in all phases would be hoisted out, by a slow sum over phases.
    rows = jax.lax.optimization_barrier(rows)
    to_own = jnp.einsum("rmf,rmh->rfh", _by_set(rows, own), _by_set(slope, own))
    return _product(slope, own.transpose(0, 2, 1)), to_own


_features_product.defvjp(_features_forward, _features_backward)
