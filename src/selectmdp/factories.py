"""`module:factory`: worlds of the user's own, by name.

Importing runs code. So only a name that a person gave, on the command line or in Python, comes
here; a name that was read from a file never does.
"""

import copy
import importlib
import inspect
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

from selectmdp.spec import SelectError

EXAMPLE = "write module:factory, for example selectmdp.envs:Circle or my_worlds:make_env"


def is_factory(text: str) -> bool:
    """Whether a text has the form `module:factory`."""
    module, colon, path = text.strip().partition(":")
    return bool(colon and module and path)


def found(text: str) -> Any:
    """What `module:factory` names; modules in the current directory are found."""
    if not is_factory(text):
        raise SelectError(f"{text!r} names no factory: {EXAMPLE}")
    module_name, _, path = text.strip().partition(":")
    thing: Any = _module(text, module_name)
    for name in path.split("."):
        if not hasattr(thing, name):
            offered = ", ".join(n for n in dir(thing) if not n.startswith("_")) or "nothing public"
            raise SelectError(
                f"{text!r}: {module_name} has no {path!r}; {EXAMPLE}. There is: {offered}"
            )
        thing = getattr(thing, name)
    return thing


def made(factory: Any, name: str, options: Mapping[str, Any]) -> Any:
    """The world that a class or a function makes with these options; a world itself is copied."""
    if not makes(factory):
        if options:
            raise SelectError(f"options {sorted(options)}: give them to the world itself")
        try:
            return copy.deepcopy(factory)
        except Exception as error:
            raise SelectError(
                f"{name} cannot be copied ({told(error)}): give its class, or a function that "
                "makes one"
            ) from error
    _check_options(factory, name, options)
    try:
        with redirect_stdout(sys.stderr):  # a command's own output may be JSON
            return factory(**options)
    except SelectError:
        raise
    except (Exception, SystemExit) as error:
        how = f"with {dict(options)}" if options else "without arguments"
        mend = "give other options, or " * bool(options)
        raise SelectError(
            f"{name}: making the environment {how} raised {told(error)}; {mend}write a factory "
            "that works so"
        ) from error


def makes(thing: Any) -> bool:
    """Whether a world comes of calling this; a world itself is not called."""
    is_env = hasattr(thing, "step") and hasattr(thing, "reset")
    return isinstance(thing, type) or (callable(thing) and not is_env)


def address(factory: Any) -> str | None:
    """`module:path` by which another process finds the same factory; None: it cannot."""
    module, path = getattr(factory, "__module__", None), getattr(factory, "__qualname__", None)
    if not module or not path or module == "__main__":  # importing that would run the script anew
        return None
    thing = sys.modules.get(module)
    for name in path.split("."):
        thing = getattr(thing, name, None)
    return f"{module}:{path}" if thing is factory else None


def told(error: BaseException) -> str:
    """An exception in one line: its kind and the first line of what it says."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:
        lines = []
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _check_options(factory: Any, name: str, options: Mapping[str, Any]) -> None:
    try:
        taken = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # not written in Python: it will say so itself
        return
    if any(each.kind is each.VAR_KEYWORD for each in taken.values()):
        return
    for option, value in options.items():
        if option not in taken:
            known = f"it takes {', '.join(taken)}" if taken else "it takes none"
            raise SelectError(f"{option}={value!r}: {name} has no such option; {known}")


def _module(text: str, name: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()  # the module may have been written a moment ago
    try:
        with redirect_stdout(sys.stderr):
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
    except (Exception, SystemExit) as error:
        raise SelectError(f"{text!r}: importing {name} raised {told(error)}; mend it") from error
