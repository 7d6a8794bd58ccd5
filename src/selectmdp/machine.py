"""What this process may use of its machine."""

import math
import os
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def keep_to_a_core(names: str = "selectmdp-core-") -> None:
    """Keep this process to a core that none has so; to no one core where there is none left.

    Each core has a name among Linux's own, which a process has until its end, however that comes.
    """
    if sys.platform != "linux":
        return
    for core in sorted(os.sched_getaffinity(0)):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as taken:
            taken.bind(f"\0{names}{core}")
            taken.detach()  # open from here on
            os.sched_setaffinity(0, {core})
            return


ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
"""Of XLA_FLAGS: compiled code keeps to one core."""


def threads() -> str:
    """Threads of compiled code on a CPU: how a sum is shared among them may change its rounding.

    One thread of a pool does not round as none: products are cut into other pieces.
    """
    return "1, no pool" if ONE_THREAD in os.environ.get("XLA_FLAGS", "") else str(cores())


def compiled_cache() -> Path | None:
    """Where compiled programs may wait for the next process: a folder that only this user writes.

    JAX runs what it finds there, so it is no folder that came from elsewhere. None: there is none.
    """
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(home) / "selectmdp" / "compiled"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except (OSError, RuntimeError):
        return None
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return folder if mine and not found.st_mode & OTHERS_WRITE else None


OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def peak_megabytes() -> float:
    """The most memory that this process ever had; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
