"""Gymnasium's ids for the paper's worlds: `import selectmdp` is enough to make them.

Importing Gymnasium would double the time of `selectmdp --help`, so its names are registered at once
where Gymnasium is imported already, and else the moment it is. Entry points are strings: JAX is
imported when an environment is made and not before.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

WORLD_OF_ID = {
    "selectmdp/Circle-v0": "circle",
    "selectmdp/PredatorPrey-v0": "predator-prey",
    "selectmdp/League-v0": "league",
}


def register() -> None:
    """Register each id that is not registered yet."""
    import gymnasium

    for name, world in WORLD_OF_ID.items():
        if name in gymnasium.registry:
            continue
        gymnasium.register(
            id=name,
            entry_point="selectmdp.interop.gymnasium:make",
            vector_entry_point="selectmdp.interop.vector:make",
            # A step before a reset is ours to refuse, with our message; so is the time limit.
            order_enforce=False,
            kwargs={"world": world},
        )


def register_with_gymnasium() -> None:
    """Register now if Gymnasium is imported, else when it is."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


class _Waiting:
    """Finds Gymnasium as Python would, and registers our ids after it has been run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            register()

        spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
