"""Many runs from one file: every value that is a list is swept, and the runs are their product.

The file is TOML, with the names that `selectmdp train` has:

    task = "circle"
    algorithm = ["isq-u", "isq-p"]
    steps = 200_000
    seed = [0, 1, 2, 3]
    options = { num_items = [20, 50], num_select = 3 }
    settings = { learning_rate = [1e-3, 2e-3] }

A value that is itself a list, such as `commands`, is written as a list in a list.
"""

import tomllib
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from selectmdp.config import TrainConfig
from selectmdp.spec import SelectError
from selectmdp.training import DEFAULTS

GROUPS = ("options", "settings")
NAMES = ("task", "algorithm", "preset", "steps", "seed", "evaluations", "episodes")


def configs_of(path: Path) -> tuple[TrainConfig, ...]:
    """Every run of a sweep's file."""
    return tuple(_config(path, choice) for choice in _choices(read(path)))


def read(path: Path) -> dict[str, Any]:
    """A sweep's file as it stands; a name that nothing has is refused."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SelectError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SelectError(f"{path} is no TOML: {error}") from None
    for name, value in told.items():
        if name not in (*NAMES, *GROUPS, "search", "trials"):
            known = ", ".join((*NAMES, *GROUPS, "search", "trials"))
            raise SelectError(f"{path}: no name {name!r}; there are {known}")
        if name in (*GROUPS, "search") and not isinstance(value, Mapping):
            raise SelectError(f"{path}: {name}={value!r} must be a table, {name} = {{ … }}")
    if "task" not in told:
        raise SelectError(f'{path}: which task? Write, for instance, task = "circle"')
    return told


def _choices(told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Flat names (options.num_items) with one value each, for every run."""
    flat: dict[str, Any] = {}
    for name, value in told.items():
        if name in GROUPS:
            flat |= {f"{name}.{part}": each for part, each in value.items()}
        elif name in NAMES:
            flat[name] = value
    swept = {name: value if isinstance(value, list) else [value] for name, value in flat.items()}
    for name, values in swept.items():
        if not values:
            raise SelectError(f"{name}=[]: give at least one value")
    for chosen in product(*swept.values()):
        yield dict(zip(swept, chosen, strict=True))


def _config(path: Path, choice: Mapping[str, Any]) -> TrainConfig:
    given: dict[str, Any] = {**DEFAULTS, **{name: {} for name in GROUPS}}
    for name, value in choice.items():
        group, _, part = name.rpartition(".")
        if group:
            given[group][part] = tuple(value) if isinstance(value, list) else value
        else:
            given[name] = value
    try:
        return TrainConfig(**given)
    except SelectError as error:
        raise SelectError(f"{path}: {error}") from None
