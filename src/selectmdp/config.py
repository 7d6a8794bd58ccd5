"""What a training run is: everything that its result depends on, as plain data."""

import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from importlib.metadata import version
from numbers import Real
from typing import Any

import numpy as np

from selectmdp.algorithms import algorithm
from selectmdp.learners.presets import preset
from selectmdp.machine import threads
from selectmdp.settings import with_changes
from selectmdp.spec import SelectError, Spec, check_count, check_seed
from selectmdp.tasks import is_known

MOST_STEPS = 2**31 - 1
"""A run counts its steps in 32 bits."""
MOST_ROWS = 10_000_000
"""Items, context and picks of a run's world together; in a world of ours all numbers among its
options. A file may say anything, and arrays of these sizes are made."""
MOST_MINUTES = 366 * 24 * 60
"""A year."""


@dataclass(frozen=True)
class TrainConfig:
    """One training run; the same config on the same machine gives the same run, bit for bit."""

    task: str
    """The world's name."""
    options: Mapping[str, Any]
    """The world's options that are not its defaults."""
    algorithm: str
    preset: str
    settings: Mapping[str, Any]
    """The learner's settings that are not the preset's."""
    steps: int
    """T, environment steps; rounded up to whole chunks."""
    seed: int
    minutes: float | None = None
    """For how long the steps were chosen, by the speed measured before the first."""
    evaluations: int = 20
    """How often the policy is evaluated on the way."""
    episodes: int = 20
    """Episodes of the evaluation at the end."""
    chunk: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("task", "algorithm", "preset"):
            if not isinstance(getattr(self, name), str):
                raise SelectError(f"{name}={getattr(self, name)!r}: give its name")
        algorithm(self.algorithm)
        settings = with_changes(preset(self.preset).settings, self.settings)
        checked: dict[str, Any] = {"chunk": settings.chunk, "seed": check_seed(self.seed)}
        if self.minutes is not None:
            checked["minutes"] = check_minutes(self.minutes)
        for name in ("steps", "evaluations", "episodes"):
            checked[name] = check_count(name, getattr(self, name))
            if checked[name] < 1:
                raise SelectError(f"{name}={checked[name]}: must be at least 1")
        checked["steps"] = whole_chunks(checked["steps"], settings.chunk)
        if checked["steps"] > MOST_STEPS:
            raise SelectError(
                f"steps={checked['steps']}: must be at most {MOST_STEPS}, in whole chunks"
            )
        checked["settings"] = {name: getattr(settings, name) for name in self.settings}
        checked["options"] = {name: plain(name, value) for name, value in self.options.items()}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def full_settings(self) -> Any:
        """All settings of the learner."""
        return with_changes(preset(self.preset).settings, self.settings)

    def every(self, share: int, most: int | None = None) -> int:
        """Whole chunks in a share of the training, at least one; at most so many steps."""
        wanted = self.steps // share if most is None else min(self.steps // share, most)
        return max(wanted // self.chunk, 1) * self.chunk

    def to_json(self) -> dict[str, Any]:
        """Plain data: what was asked, and beside it all settings in force."""
        told = asdict(self)
        del told["chunk"]
        return {**told, "all_settings": asdict(self.full_settings)}

    @classmethod
    def from_json(cls, told: Any) -> "TrainConfig":
        """Back from `to_json`."""
        if not isinstance(told, Mapping):
            raise SelectError("the config of the run is no object")
        for each in fields(cls):
            needed = each.init and each.default is MISSING
            if needed and each.name not in told:
                raise SelectError(f"the config of the run is not whole: {each.name!r} is missing")
        for name in ("options", "settings", "all_settings"):
            if not isinstance(told.get(name, {}), Mapping):
                raise SelectError(f"{name}={told[name]!r}: must be an object")
        kept = {each.name: told[each.name] for each in fields(cls) if each.name in told}
        config = cls(**kept)
        # A default may be another today than when the run was made.
        then, now = told.get("all_settings", {}), asdict(config.full_settings)
        moved = {name: value for name, value in then.items() if _listed(now.get(name)) != value}
        return replace(config, settings={**config.settings, **moved})


def check_sizes(config: TrainConfig, spec: Spec) -> None:
    """Refuse a world larger than any that is trained in."""
    of_spec = spec.num_items + spec.num_context + spec.num_select
    rows = max(of_spec, _sum(config.options.values()) if is_known(config.task) else 0)
    if rows > MOST_ROWS:
        raise SelectError(
            f"N={spec.num_items}, U={spec.num_context}, K={spec.num_select}, options "
            f"{dict(config.options)}: sizes add up to {rows:,}, more than the {MOST_ROWS:,} that a "
            "run may have; choose smaller ones"
        )


def _sum(values: Iterable[Any]) -> int:
    """Of all whole numbers, also within tuples."""
    return sum(
        _sum(value) if isinstance(value, tuple) else abs(value) if isinstance(value, int) else 0
        for value in values
    )


def differences(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """What is asked for and not as it was kept; None asks for nothing."""
    return [
        f"{name}={value} where the run has {kept.get(name)}"
        for name, value in asked.items()
        if value is not None and value != kept.get(name)
    ]


def plain(name: str, value: Any) -> Any:
    """An option of a world as a file can keep it; a list becomes a tuple."""
    if isinstance(value, list | tuple):
        return tuple(plain(name, part) for part in value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise SelectError(
        f"{name}={value!r}: a run keeps its options as numbers and text; give train the world "
        "itself, made with this"
    )


def whole_chunks(steps: int, chunk: int) -> int:
    """A number of steps, rounded up."""
    return -(-steps // chunk) * chunk


def _listed(value: Any) -> Any:
    """As JSON has it."""
    return list(value) if isinstance(value, tuple) else value


def check_minutes(minutes: object) -> float:
    """A time to train for."""
    if isinstance(minutes, bool) or not isinstance(minutes, Real):
        raise SelectError(f"minutes={minutes!r}: must be a number")
    number = float(minutes)
    if not 0.0 < number <= MOST_MINUTES:
        raise SelectError(f"minutes={minutes}: must be more than 0 and at most {MOST_MINUTES}")
    return number


def versions() -> dict[str, str]:
    """Whose code made a result, and on what kind of machine."""
    packages = ("selectmdp", "jax", "jaxlib", "numpy", "optax", "gymnasium")
    return {
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": threads(),
    }
