"""What a training run is: everything that its result depends on, as plain data."""

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from selectmdp.algorithms import algorithm
from selectmdp.learners.presets import preset
from selectmdp.settings import with_changes
from selectmdp.spec import SelectError, check_count, check_seed


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
    evaluations: int = 20
    """How often the policy is evaluated on the way."""
    episodes: int = 20
    """Episodes of the evaluation at the end."""
    chunk: int = field(init=False)

    def __post_init__(self) -> None:
        algorithm(self.algorithm)
        settings = with_changes(preset(self.preset).settings, self.settings)
        for name in ("steps", "evaluations", "episodes"):
            if check_count(name, getattr(self, name)) < 1:
                raise SelectError(f"{name}={getattr(self, name)}: must be at least 1")
        object.__setattr__(self, "seed", check_seed(self.seed))
        object.__setattr__(self, "chunk", settings.chunk)
        object.__setattr__(self, "steps", -(-self.steps // settings.chunk) * settings.chunk)

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
        plain = asdict(self)
        del plain["chunk"]
        return {**plain, "all_settings": asdict(self.full_settings)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "TrainConfig":
        """Back from `to_json`."""
        names = [name for name in cls.__dataclass_fields__ if name != "chunk"]
        try:
            given = {name: plain[name] for name in names}
        except (KeyError, TypeError) as error:
            raise SelectError(f"the config of the run is not whole: {error} is missing") from None
        for name in ("options", "settings"):  # JSON has no tuples
            given[name] = {key: _untupled(value) for key, value in given[name].items()}
        return cls(**given)


def differences(saved: TrainConfig, asked: Mapping[str, Any]) -> list[str]:
    """What was asked for and is not as saved; None asks for nothing."""
    told = []
    for name, value in asked.items():
        kept = getattr(saved, name)
        if isinstance(value, Mapping):
            told += [
                f"{inner}={value[inner]} where the run has {kept.get(inner, 'its default')}"
                for inner in value
                if value[inner] is not None and value[inner] != kept.get(inner)
            ]
        elif value is not None and value != kept:
            told.append(f"{name}={value} where the run has {kept}")
    return told


def versions() -> dict[str, str]:
    """Whose code made a result, and on what kind of machine."""
    packages = ("selectmdp", "jax", "jaxlib", "numpy", "optax", "gymnasium")
    return {
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def _untupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
