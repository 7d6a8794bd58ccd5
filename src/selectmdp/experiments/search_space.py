"""What a search may choose from: the rules of a table `[search]`, and how a trial chooses by them.

A rule is a range, `{ low = 1e-4, high = 1e-2, log = true }`, of whole numbers if both ends are, or
`{ choices = [16, 32, 64] }`.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna

from selectmdp.experiments import sweeps
from selectmdp.spec import SelectError

Space = Mapping[str, Mapping[str, Any]]

MOST = 2**53
"""The ends of a range: as far as a float counts one by one."""


def space_of(path: Path, told: Mapping[str, Any]) -> Space:
    """The rules of a file, by name."""
    space: Space = told.get("search", {})
    if not space:
        raise SelectError(f"{path}: nothing to search; write a table [search]")
    for name, rule in space.items():
        if name in sweeps.GROUPS:
            inside = next(iter(rule), "…") if isinstance(rule, Mapping) else "…"
            raise SelectError(
                f'{path}: [search] has {name} without quotes: write "{name}.{inside}" = {{ … }}'
            )
        group, _, _ = name.rpartition(".")
        if group not in sweeps.GROUPS and name not in sweeps.NAMES:
            known = ", ".join([*sweeps.NAMES, *(f"{group}.…" for group in sweeps.GROUPS)])
            raise SelectError(f"{path}: no name {name!r} to search; there are {known}")
        if not (isinstance(rule, Mapping) and (_is_choice(rule) or _is_range(rule))):
            raise SelectError(
                f"{path}: search of {name!r} is {rule!r}; give {{ low = …, high = … }}, two finite "
                "numbers (above 0 with log = true), or { choices = […] } of numbers, texts or "
                "lists of them, and nothing beside"
            )
    return space


def asked(study: optuna.Study, space: Space) -> optuna.Trial:
    """A trial with its values chosen."""
    trial = study.ask()
    for name, rule in space.items():
        if "choices" in rule:
            trial.suggest_categorical(name, [_written(choice) for choice in rule["choices"]])
        elif isinstance(rule["low"], int) and isinstance(rule["high"], int):
            trial.suggest_int(name, rule["low"], rule["high"], log=rule.get("log", False))
        else:
            trial.suggest_float(name, rule["low"], rule["high"], log=rule.get("log", False))
    return trial


def with_values(told: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A sweep's file with the values of a trial in it."""
    given = {name: dict(value) if name in sweeps.GROUPS else value for name, value in told.items()}
    for name, written in values.items():
        group, _, part = name.rpartition(".")
        value = _read(written)
        if group:
            given.setdefault(group, {})[part] = value
        else:
            given[name] = value
    return given


def _is_choice(rule: Mapping[str, Any]) -> bool:
    choices = rule.get("choices")
    if rule.keys() != {"choices"} or not isinstance(choices, list) or not choices:
        return False
    listed = [choice if isinstance(choice, list) else [choice] for choice in choices]
    return all(_is_plain(part) for choice in listed for part in choice)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _is_range(rule: Mapping[str, Any]) -> bool:
    if not {"low", "high"} <= rule.keys() <= {"low", "high", "log"}:
        return False
    low, high, log = rule["low"], rule["high"], rule.get("log", False)
    if any(isinstance(end, bool) or not isinstance(end, int | float) for end in (low, high)):
        return False
    return isinstance(log, bool) and -MOST <= low <= high <= MOST and (low > 0 or not log)


def _written(choice: Any) -> Any:
    """A choice as Optuna keeps it: no list."""
    return json.dumps(choice) if isinstance(choice, list) else choice


def _read(choice: Any) -> Any:
    """A choice back; a list is one value here and not many to sweep."""
    is_list = isinstance(choice, str) and choice.startswith("[")
    return [json.loads(choice)] if is_list else choice
