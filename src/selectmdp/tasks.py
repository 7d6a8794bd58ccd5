"""Tasks by name: `make("circle", num_items=50)` is a world, checked, with messages for people."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from selectmdp.spec import SelectError


def make(task: str, **options: Any) -> Any:
    """The world of this name; an option that is None takes the world's default."""
    from selectmdp.envs import WORLDS

    if not isinstance(task, str) or task not in WORLDS:
        raise SelectError(f"task {task!r} is none of {', '.join(WORLDS)}")
    world = WORLDS[task]
    known = [field.name for field in fields(world) if field.init]
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in known:
            raise SelectError(
                f"{name}={given[name]!r}: {task} has no such option; it has {', '.join(known)}"
            )
    return world(**given)


def describe(env: Any) -> Mapping[str, Any]:
    """What a reported number must say of its world."""
    return {
        "dynamics": getattr(env, "dynamics", None),
        "unit": getattr(env, "unit", "reward"),
        "num_items": getattr(env, "item_range", None) or env.spec.num_items,
        "num_context": env.spec.num_context,
        "num_select": env.spec.num_select,
        "num_commands": env.spec.num_commands,
    }


def told_items(num_items: Any) -> str:
    """N for people: a number, or a range as `--num-items` takes it."""
    return ":".join(map(str, num_items)) if isinstance(num_items, tuple | list) else str(num_items)


def names() -> list[str]:
    """The worlds that `make` knows."""
    from selectmdp.envs import WORLDS

    return list(WORLDS)


def is_known(task: str) -> bool:
    """Whether `make` knows a world of this name."""
    return task in names()
