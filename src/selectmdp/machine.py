"""What this process may use of its machine."""

import math
import os
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from selectmdp.spec import SelectError, Spec


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


NO_POOL = "--xla_cpu_multi_thread_eigen=false"
"""Of XLA_FLAGS: products are not shared among threads."""
NUM_CORES = "NPROC"
"""The variable that tells XLA for how many cores to compile, whatever a process may use."""
ONE_THREAD = f"XLA_FLAGS={NO_POOL} {NUM_CORES}=1"
"""How a shell says what `one_thread` does."""


def one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """The same environment, in which compiled code keeps to one thread."""
    flags = environment.get("XLA_FLAGS", "")
    more = flags if NO_POOL in flags else f"{flags} {NO_POOL}".strip()
    return {**environment, "XLA_FLAGS": more, NUM_CORES: "1"}


def threads() -> str:
    """Threads of compiled code on a CPU: how a sum is shared among them may change its rounding.

    One thread of a pool does not round as none: products are cut into other pieces. Nor does code
    without a pool round the same when it was compiled for another number of cores.
    """
    count = os.environ.get(NUM_CORES, str(cores()))
    return f"{count}, no pool" if NO_POOL in os.environ.get("XLA_FLAGS", "") else count


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


@contextmanager
def enough_memory(spec: Spec | None = None) -> Iterator[None]:
    """A lack of memory becomes a message, with the sizes of the world where they are known."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # JAX's own is a RuntimeError
        said = str(error)
        told = isinstance(error, MemoryError) or any(words in said for words in NO_MEMORY)
        if not told:
            raise
        sizes = "this"
        if spec is not None:
            sizes = f"N={spec.num_items}, U={spec.num_context}, K={spec.num_select}"
        raise SelectError(
            f"there is not the memory for {sizes} ({(said or 'MemoryError').splitlines()[0]}): "
            "choose fewer items or picks, episodes or environments, or a smaller batch"
        ) from error


NO_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory")


def peak_megabytes() -> float:
    """The most memory that this process ever had; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
