"""Many runs from one file: every value that is a list is swept, and the runs are their product.

The file is TOML, with the names that `selectmdp train` has:

    task = "circle"
    algorithm = ["isq-u", "isq-p"]
    steps = 200_000
    seed = [0, 1, 2, 3]
    options = { num_items = [20, 50], num_select = 3 }
    settings = { learning_rate = [1e-3, 2e-3] }

A value that is itself a list, such as `commands`, is written as a list in a list. Where not every
combination is wanted, `[[variants]]` are tables of such names, each taken in turn over the rest:

    [[variants]]                 # as it is
    [[variants]]
    settings = { layer_norm = true }
"""

import math
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from selectmdp import tasks
from selectmdp.config import TrainConfig
from selectmdp.experiments.figures import WHAT
from selectmdp.factories import is_factory
from selectmdp.files import MOST_JSON, read_bounded
from selectmdp.spec import SelectError
from selectmdp.training import DEFAULTS

GROUPS = ("options", "settings")
NAMES = ("task", "algorithm", "preset", "steps", "seed", "evaluations", "episodes")
OPTIONS = (
    *("num_items", "num_context", "num_select", "commands", "time_limit", "dynamics", "grid"),
    *("captors", "instance"),
)
"""Of a world, those that `train` takes: a run of a sweep is one that anybody could type."""
MOST_RUNS = 100_000
"""Of one sweep."""


def configs_of(path: Path) -> tuple[TrainConfig, ...]:
    """Every run of a sweep's file."""
    with _named(path):
        return configs_from(read(path))


def configs_from(told: Mapping[str, Any]) -> tuple[TrainConfig, ...]:
    """Every run of what such a file tells."""
    swept = [_swept(each) for each in _variants(told)]
    count = sum(math.prod(map(len, each.values())) for each in swept)
    if count > MOST_RUNS:
        raise SelectError(
            f"its lists make {count:,} runs, more than the {MOST_RUNS:,} of one sweep: shorten "
            "them, or write the [[variants]] that are wanted"
        )
    return tuple(
        _config(dict(zip(each, chosen, strict=True)))
        for each in swept
        for chosen in product(*each.values())
    )


def searches(target: str) -> bool:
    """Whether a file wants its values searched instead of swept."""
    return Path(target).is_file() and "search" in read(Path(target))


def read(path: Path) -> dict[str, Any]:
    """A sweep's file as it stands; a name that nothing has is refused."""
    with _named(path):
        try:
            told = tomllib.loads(read_bounded(path, MOST_JSON).decode())
        except OSError as error:
            also = "" if path.exists() else f", and no figure: those are {', '.join(WHAT)}, and all"
            raise SelectError(f"it cannot be read: {error.strerror}{also}") from None
        except (ValueError, RecursionError) as error:
            raise SelectError(f"it is no TOML: {error}") from None
        _check(told)
        return told


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """What is wrong in a file, with the file's name; once is enough."""
    try:
        yield
    except SelectError as error:
        told = str(error)
        raise SelectError(told if str(path) in told else f"{path}: {told}") from None


def _check(told: Mapping[str, Any]) -> None:
    known = (*NAMES, *GROUPS, "search", "trials", "variants")
    _check_names(told, known)
    variants = told.get("variants", [{}])
    if not isinstance(variants, list) or not all(isinstance(each, Mapping) for each in variants):
        raise SelectError(f"variants={variants!r} must be tables, each under [[variants]]")
    for each in variants:
        _check_names(each, (*NAMES, *GROUPS))
    if "trials" in told and "search" not in told:
        raise SelectError(f"trials={told['trials']!r}: is for a search; write a table [search]")
    if "task" not in told:
        raise SelectError('which task? Write, for instance, task = "circle"')


def _check_names(told: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name, value in told.items():
        if name not in known:
            raise SelectError(f"no name {name!r}; there are {', '.join(known)}")
        if name in (*GROUPS, "search") and not isinstance(value, Mapping):
            raise SelectError(f"{name}={value!r} must be a table, {name} = {{ … }}")


def _variants(told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The file with each of its variants laid over it; without any, the file."""
    base = {name: value for name, value in told.items() if name != "variants"}
    for variant in told.get("variants", [{}]):
        merged = {**base, **variant}
        for group in GROUPS:
            if group in merged:
                merged[group] = {**base.get(group, {}), **variant.get(group, {})}
        yield merged


def _swept(told: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Flat names (options.num_items) with the values that each takes."""
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
    return swept


def _config(choice: Mapping[str, Any]) -> TrainConfig:
    given: dict[str, Any] = {**DEFAULTS, **{name: {} for name in GROUPS}}
    for name, value in choice.items():
        group, _, part = name.rpartition(".")
        if group:
            given[group][part] = tuple(value) if isinstance(value, list) else value
        else:
            given[name] = value
    if isinstance(given["task"], str) and is_factory(given["task"]):
        raise SelectError(
            f"task={given['task']!r}: no file may name code to be run; train in it by its name on "
            "the command line"
        )
    tasks.make(given["task"], **given["options"])  # refuses what no world of ours is or has
    for name, value in given["options"].items():
        if name not in OPTIONS:
            raise SelectError(
                f"options.{name}={value!r}: `selectmdp train` has no such option; it has "
                f"{', '.join(OPTIONS)}"
            )
    return TrainConfig(**given)
