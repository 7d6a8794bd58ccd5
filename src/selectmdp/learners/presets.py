"""Ways to learn by name: a preset is a learner and the settings that it begins with."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from selectmdp.agent import Agent
from selectmdp.learners.base import Learner
from selectmdp.learners.dqn import DQN
from selectmdp.learners.qlambda import QLambda
from selectmdp.settings import FastSettings, PaperSettings, with_changes
from selectmdp.spec import SelectError


class Preset(NamedTuple):
    """One way to learn."""

    about: str
    settings: type[Any]
    learner: Callable[[Agent, Any, int], Learner]


PRESETS: dict[str, Preset] = {
    "fast": Preset(
        "Q(λ) in many environments at once, without replay: minutes instead of hours",
        FastSettings,
        QLambda,
    ),
    "paper": Preset("DQN with replay, as the paper trains", PaperSettings, DQN),
}


def check_suits(offered: Any) -> Mapping[str, Mapping[str, Any]]:
    """What a world offers as `suits`, if all of it can be; None offers nothing."""
    try:
        each = dict(offered or {})
        for name, changes in each.items():
            with_changes(preset(name).settings, dict(changes))
    except (SelectError, TypeError, ValueError) as error:
        raise SelectError(
            f"suits={offered!r}: give {{preset: {{setting: value}}}} ({error})"
        ) from None
    return each


def preset(name: str) -> Preset:
    """The preset of this name."""
    if name not in PRESETS:
        raise SelectError(f"preset {name!r} is none of {', '.join(PRESETS)}")
    return PRESETS[name]
