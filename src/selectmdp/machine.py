"""What this process may use of its machine."""

import math
import os
import sys


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
"""Of XLA_FLAGS: compiled code keeps to one core."""


def threads() -> int:
    """Threads of compiled code on a CPU: how a sum is shared among them may change its rounding."""
    return 1 if ONE_THREAD in os.environ.get("XLA_FLAGS", "") else cores()


def peak_megabytes() -> float:
    """The most memory that this process ever had; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
