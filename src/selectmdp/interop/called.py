"""A host world's own functions (`legal_after`, `sort_key`, …) inside compiled code.

Traced if they can be, else called back for each case. From compiled code no exception comes as it
was: what went wrong is kept beside, and raised in its place.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from selectmdp.factories import told
from selectmdp.interop.rows import line_of
from selectmdp.spec import SelectError, WorldFault

FORMS: dict[str, Callable[..., jax.ShapeDtypeStruct]] = {
    "legal_after": lambda seen, *_: jax.ShapeDtypeStruct(seen.legal.shape, jnp.bool_),
    "sort_key": lambda seen: jax.ShapeDtypeStruct(seen.present.shape, jnp.float32),
    "learning_reward": lambda _: jax.ShapeDtypeStruct((), jnp.float32),
}
"""What each gives for these arguments: N is that of the observation, not that of the training."""


@dataclass(frozen=True, eq=False)
class Called:
    """One of these functions, to be called where learners and policies compile."""

    name: str
    function: Callable[..., Any]
    faults: list[WorldFault]
    """Where its faults are kept; `policy.heard` raises them."""

    def __call__(self, *given: Any) -> Array:
        form = FORMS[self.name](*given)
        try:
            traced = jnp.asarray(self.function(*given))
        except Exception:  # NumPy on what is not known yet
            return jax.pure_callback(
                lambda *given: self._now(form, *given), form, *given, vmap_method="sequential"
            )
        self._check_shape(traced, form)
        return traced.astype(form.dtype)

    def _now(self, form: jax.ShapeDtypeStruct, *given: Any) -> Any:
        try:
            made = np.asarray(self.function(*jax.tree.map(np.asarray, given)))
            self._check_shape(made, form)
            return made.astype(form.dtype)
        except Exception as error:
            self.faults.append(_fault(self.name, error))
            raise

    def _check_shape(self, given: Any, form: jax.ShapeDtypeStruct) -> None:
        if given.shape != form.shape:
            raise SelectError(
                f"`{self.name}` gives shape {given.shape} where {form.shape} is seen: make it of "
                "what its arguments show, whose N may be another than that of `spec`"
            )


def _fault(name: str, error: Exception) -> WorldFault:
    if isinstance(error, SelectError):
        return WorldFault(str(error))
    return WorldFault(
        f"`{name}` raised {told(error)}{line_of(error)}: it is asked of an instance that is never "
        "reset, so its arguments must tell all"
    )
