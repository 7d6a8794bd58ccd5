"""Does an environment keep the rules of a Select-MDP? Each check says what to mend, and how."""

from collections.abc import Callable
from typing import Any

from selectmdp.check.gym_probe import GymProbe
from selectmdp.check.loading import load_factory, made
from selectmdp.check.probe import JaxProbe
from selectmdp.check.report import CheckReport, CheckResult, walk
from selectmdp.check.tables import GYM_CHECKS, JAX_CHECKS
from selectmdp.spec import SelectError, check_count, check_seed

__all__ = ["CheckReport", "CheckResult", "check_select_env", "load_factory"]


def check_select_env(
    env: Any,
    *,
    seed: int = 0,
    steps: int = 20,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CheckReport:
    """Check a JAX `SelectEnv` or a Gymnasium environment whose action space is a `SelectSpace`.

    A class or a function without arguments is called first. A Gymnasium environment is reset and
    played; whoever made it closes it. What fails is in the report: only bad arguments raise.
    """
    seed, steps = check_seed(seed), check_count("steps", steps)
    if steps < 1:
        raise SelectError(f"steps={steps}: must be at least 1")
    env = made(env)
    if hasattr(env, "action_space") or hasattr(env, "unwrapped"):
        results = walk(GYM_CHECKS, GymProbe(env, seed, steps), progress)
    else:
        results = walk(JAX_CHECKS, JaxProbe(env, seed, steps), progress)
    return CheckReport(subject=type(getattr(env, "unwrapped", env)).__name__, results=results)
