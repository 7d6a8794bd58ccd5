"""The constants of circle selection, and what overlaps: text and published figures differ.

`figures`, the default, is how the published figures were made; where the text is silent, `text`
takes the same values.
"""

from dataclasses import dataclass, fields
from numbers import Real
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from selectmdp.spec import SelectError

Dynamics = Literal["figures", "text", "custom"]


@dataclass(frozen=True)
class CircleRules:
    """Every constant of the world; lengths are in sides of the square."""

    growth_low: float
    """Least growth of a selectable circle's radius in a step."""
    growth_high: float
    """Most growth of a selectable circle's radius in a step."""
    growth_share: float | None
    """If given, both are multiplied by growth_share · K / N."""
    restarts: bool
    """A selectable circle at `radius_max` starts again at `radius_restart`; else it stays there."""
    noise: float
    """Uniform noise on x and y, ± this much a step."""
    radius_noise: float
    """Uniform noise on the radius, ± this much a step."""
    replacement_low: float
    """Least radius of a replacement."""
    replacement_high: float
    """Most radius of a replacement."""
    context_growth_low: float = 0.045
    """Least growth of an unselectable circle's radius in a step."""
    context_growth_high: float = 0.055
    """Most growth of an unselectable circle's radius in a step."""
    radius_max: float = 0.45
    """No circle is larger."""
    radius_restart: float = 0.01
    """Where a circle starts again that has reached `radius_max`."""
    reach: float = 0.1
    """Distance of a move command."""

    def __post_init__(self) -> None:
        for rule in fields(self):
            value = getattr(self, rule.name)
            if rule.name == "restarts":
                if not isinstance(value, bool):
                    raise SelectError(f"restarts={value!r}: must be True or False")
            elif rule.name != "growth_share" or value is not None:
                if (
                    isinstance(value, bool)
                    or not isinstance(value, Real)
                    or not 0 <= float(value) < 10
                ):
                    raise SelectError(
                        f"{rule.name}={value!r}: must be a number, at least 0 and less than 10"
                    )
                object.__setattr__(self, rule.name, float(value))
        if self.radius_max == 0:
            raise SelectError("radius_max=0: must be more than 0, or no circle has an area")
        for low, high in (
            ("growth_low", "growth_high"),
            ("context_growth_low", "context_growth_high"),
            ("replacement_low", "replacement_high"),
        ):
            if getattr(self, low) > getattr(self, high):
                raise SelectError(
                    f"{low}={getattr(self, low)} is more than {high}={getattr(self, high)}: "
                    "swap them"
                )


RULES: dict[str, CircleRules] = {
    "figures": CircleRules(
        growth_low=0.45,
        growth_high=0.55,
        growth_share=0.36,
        restarts=True,
        noise=0.005,
        radius_noise=0.005,
        replacement_low=0.0,
        replacement_high=0.0045,
    ),
    "text": CircleRules(
        growth_low=0.045,
        growth_high=0.055,
        growth_share=None,
        restarts=False,
        noise=0.01,
        radius_noise=0.0,
        replacement_low=0.01,
        replacement_high=0.01,
    ),
}


def overlaps(left: Float[Array, "*a 3"], right: Float[Array, "b 3"]) -> Bool[Array, "*a b"]:
    """Which circles of `left` overlap which of `right`: closer than the sum of their radii."""
    left = left[..., None, :]
    right = right.reshape((1,) * (left.ndim - 2) + right.shape)
    apart = jnp.square(left[..., :2] - right[..., :2]).sum(axis=-1)
    return apart < jnp.square(jnp.maximum(left[..., 2] + right[..., 2], 0.0))
