"""Does an environment keep the rules of a Select-MDP? Each check says what to mend, and how."""

from collections.abc import Callable
from typing import Any

from selectmdp.check.gym_probe import GymProbe
from selectmdp.check.numpy_probe import NumpyProbe
from selectmdp.check.probe import JaxProbe
from selectmdp.check.report import CheckReport, CheckResult, walk
from selectmdp.check.tables import GYM_CHECKS, JAX_CHECKS, NUMPY_CHECKS
from selectmdp.check.watch import Hangs, Watched, watched
from selectmdp.envs.base import is_numpy
from selectmdp.factories import made, makes
from selectmdp.settings import Hosting
from selectmdp.spec import SelectError, check_count, check_seed

__all__ = ["CheckReport", "CheckResult", "check_select_env"]


def check_select_env(
    env: Any,
    *,
    seed: int = 0,
    steps: int = 20,
    timeout: float | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CheckReport:
    """Check a world: a JAX `SelectEnv`, a NumPy class, an adapted Gymnasium environment, or one
    whose action space is a `SelectSpace`.

    A class or a function without arguments is called first. A host environment is reset and
    played; whoever made it closes it. What fails is in the report: only bad arguments raise.

    `timeout` is how many seconds making, resetting or stepping a host environment may take, without
    end if not given; what takes longer fails. It is an alarm (`SIGALRM`), so the main thread's.
    """
    if timeout is not None:
        Hosting(timeout=timeout)  # refuses what is no time
    seed, steps = check_seed(seed), check_count("steps", steps)
    if steps < 1:
        raise SelectError(f"steps={steps}: must be at least 1")

    def make() -> Any:
        with watched("the making of the world", timeout):
            return made(env, getattr(env, "__qualname__", type(env).__name__), {})

    def another() -> Any:
        return Watched(make(), timeout)

    try:
        first = make() if makes(env) else env
    except Hangs as hangs:
        raise SelectError(str(hangs)) from hangs
    known = Watched(first, timeout)
    if hasattr(first, "action_space") or hasattr(first, "unwrapped"):
        results = walk(GYM_CHECKS, GymProbe(known, seed, steps), progress)
    elif is_numpy(first):
        results = walk(NUMPY_CHECKS, NumpyProbe(another, known, seed, steps), progress)
    else:
        results = walk(JAX_CHECKS, JaxProbe(first, seed, steps), progress)
    return CheckReport(subject=type(getattr(first, "unwrapped", first)).__name__, results=results)
