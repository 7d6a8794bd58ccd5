"""Select-MDPs: choose K of N items and give each a command, again and again.

Names are loaded when first used, so that `import selectmdp` costs nothing; it makes our ids known
to Gymnasium.
"""

from importlib import import_module
from typing import Any

from selectmdp.interop.registration import register_with_gymnasium

__version__ = "0.1.0"

_ROOMS = {
    "Action": "types",
    "Circle": "envs",
    "CircleRules": "envs",
    "Evaluation": "evaluation",
    "League": "envs",
    "Observation": "types",
    "Policy": "policy",
    "PredatorPrey": "envs",
    "SelectEnv": "envs",
    "SelectError": "spec",
    "Spec": "spec",
    "Stopped": "signals",
    "TrainResult": "results",
    "Transition": "types",
    "check_select_env": "check",
    "evaluate": "worlds",
    "export_policy": "export",
    "from_gymnasium": "interop.adapter",
    "load": "runs",
    "make": "tasks",
    "train": "training",
}

__all__ = ["__version__", *_ROOMS]

register_with_gymnasium()


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'selectmdp' has no attribute {name!r}")
    return getattr(import_module(f"selectmdp.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
