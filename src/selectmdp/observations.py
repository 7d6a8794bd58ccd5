"""What people give as an observation, understood: one state or a batch, NumPy, JAX or plain lists.

The edge of a policy: what passes here has the right kinds and shapes, and only finite numbers.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from selectmdp.spec import SelectError, Spec
from selectmdp.types import Observation


class Understood(NamedTuple):
    """An observation as the networks want it, and how to answer whoever gave it."""

    seen: Observation
    """A batch, also where one state was given."""
    batched: bool
    """Whether it was given as a batch."""
    give: Callable[[Any], Any]
    """An array as the kind that was given: NumPy, or JAX if anything was."""


def understood(observation: Any, spec: Spec) -> Understood:
    """An `Observation`, a mapping with its names (`items` at least), or the items alone."""
    parts = _parts(observation)
    if any(isinstance(part, jax.core.Tracer) for part in parts.values()):
        raise SelectError("the observation is traced: inside jit and vmap take policy.actor(world)")
    from_jax = any(isinstance(part, jax.Array) for part in parts.values())
    items = _numbers("items", parts["items"])
    if items.ndim not in (2, 3) or items.shape[-2] < 1:
        raise SelectError(f"items has shape {items.shape}: give [N, F], or a batch [B, N, F]")
    lead, num_items = items.shape[:-2], items.shape[-2]
    width = spec.context_features
    nothing: Any = np.zeros((*lead, 0, width), np.float32)
    context = nothing if parts["context"] is None else _numbers("context", parts["context"])
    if context.ndim != items.ndim or context.shape[:-2] != lead:
        wanted = ", ".join([*map(str, lead), "U", str(width)])
        raise SelectError(f"context has shape {context.shape}: give [{wanted}], as many as items")
    masks = {
        "present": (*lead, num_items),
        "context_present": (*lead, context.shape[-2]),
        "legal": (*lead, num_items, spec.num_commands),
    }
    seen = Observation(
        items, context, **{name: _mask(name, parts[name], shape) for name, shape in masks.items()}
    )
    batched = items.ndim == 3
    batch = seen if batched else jax.tree.map(lambda leaf: leaf[None], seen)
    return Understood(batch, batched, jnp.asarray if from_jax else np.asarray)


def padded(seen: Observation, num_items: int) -> Observation:
    """A batch with at least so many items; those that are added are not there."""
    missing = max(num_items - seen.items.shape[1], 0)
    if not missing:
        return seen

    def longer(leaf: Any) -> Any:
        return np.pad(leaf, [(0, 0), (0, missing), *[(0, 0)] * (leaf.ndim - 2)])

    items, present, legal = map(longer, (seen.items, seen.present, seen.legal))
    return seen._replace(items=items, present=present, legal=legal)


def _parts(observation: Any) -> dict[str, Any]:
    names = Observation._fields
    if isinstance(observation, Observation):
        return observation._asdict()
    if isinstance(observation, Mapping):
        unknown = [name for name in observation if name not in names]
        if unknown or "items" not in observation:
            raise SelectError(
                f"observation has {list(observation)}: 'items' is needed, and what else it may "
                f"have is {', '.join(names[1:])}"
            )
        return {name: observation.get(name) for name in names}
    return {**dict.fromkeys(names), "items": observation}


def _numbers(name: str, given: Any) -> Any:
    try:
        if np.iscomplexobj(given):
            raise TypeError("it holds complex ones")
        with np.errstate(over="ignore"):  # too large for float32 is told as not finite
            numbers = given if isinstance(given, jax.Array) else np.asarray(given, np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise SelectError(f"{name} is not an array of numbers: {error}") from None
    finite = np.isfinite(np.asarray(numbers))
    if numbers.ndim and not finite.all():
        where = np.argwhere(~finite)[0].tolist()
        raise SelectError(
            f"{name}{where} is {np.asarray(given)[tuple(where)]!s}, not a finite float32: give a "
            "number; where there is nothing give any, and say so in present"
        )
    return numbers.astype(np.float32)


def _mask(name: str, given: Any, shape: tuple[int, ...]) -> Any:
    if given is None:
        return np.ones(shape, bool)
    try:
        mask = given if isinstance(given, jax.Array) else np.asarray(given)
    except ValueError as error:
        raise SelectError(f"{name} is not an array: {error}") from None
    if mask.shape != shape:
        raise SelectError(f"{name} has shape {mask.shape}: it must be {shape}")
    sound = np.isin(np.asarray(mask), (0, 1))
    if not sound.all():
        where = np.argwhere(~sound)[0].tolist()
        found = np.asarray(mask)[tuple(where)]
        raise SelectError(f"{name}{where} is {found!s}: give 0 or 1, or False or True")
    return mask.astype(bool)
