"""`module:factory` on the command line: find what makes the environment to check."""

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from selectmdp.check.report import told
from selectmdp.spec import SelectError

EXAMPLE = "write module:factory, for example selectmdp.envs:Circle or my_worlds:make_env"


def load_factory(text: str) -> Callable[[], Any]:
    """What `module:factory` names, as a function without arguments that makes the environment.

    The factory may be a class, a function, or an environment that is already made. Modules in the
    current directory are found.
    """
    module_name, colon, path = text.strip().partition(":")
    if not (colon and module_name and path):
        raise SelectError(f"{text!r} names no factory: {EXAMPLE}")
    found: Any = _module(text, module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            offered = ", ".join(n for n in dir(found) if not n.startswith("_")) or "nothing public"
            raise SelectError(
                f"{text!r}: {module_name} has no {path!r}; {EXAMPLE}. There is: {offered}"
            )
        found = getattr(found, name)

    def make() -> Any:
        try:
            return made(found)
        except SelectError:
            raise
        except Exception as error:
            raise SelectError(
                f"{text!r}: making the environment raised {told(error)}; write a factory that "
                "works without arguments"
            ) from error

    return make


def made(env: Any) -> Any:
    """The environment itself: classes and factories are called without arguments."""
    is_env = hasattr(env, "step") and hasattr(env, "reset")
    return env() if isinstance(env, type) or (callable(env) and not is_env) else env


def _module(text: str, name: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()  # the module may have been written a moment ago
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise SelectError(
                f"{text!r}: importing {name} raised {told(error)}; install what it needs"
            ) from error
        raise SelectError(
            f"{text!r}: there is no module {name!r} here ({here}) or among what is installed; "
            f"{EXAMPLE}"
        ) from error
    except Exception as error:
        raise SelectError(f"{text!r}: importing {name} raised {told(error)}; mend it") from error
