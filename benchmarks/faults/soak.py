"""An hour of training, or as long as one likes, whose memory stays flat."""

import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.faults.lab import Lab
from selectmdp import runs
from selectmdp.spec import SelectError

WITHOUT_END = 10**9
"""Steps that no soak comes to; after so many minutes the run is told to save and end."""
EVERY = 2.0
"""Seconds between two looks at the process's memory."""
GROWTH, NOISE = 0.02, 8.0
"""What the second half may have above the first: this share, and megabytes."""


def soak(lab: Lab, minutes: float, look: Callable[[float, float], None]) -> dict[str, Any]:
    """Train for so long, with evaluations and checkpoints all the way; what memory did."""
    out = lab.folder("soak")
    typed = ["train", "circle", "--num-items", "12", "--num-select", "2", "--time-limit", "100"]
    typed += ["--set", "channels=16"]
    typed += ["--steps", str(WITHOUT_END), "--evaluations", str(WITHOUT_END // 50_000)]
    log = Path(f"{out}.log")
    samples: list[tuple[float, float]] = []
    began: float | None = None
    with log.open("wb") as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "selectmdp", *typed, "--out", str(out), "--json"],
            stdout=subprocess.DEVNULL,
            stderr=told,
        )
        try:
            while process.poll() is None and (not samples or samples[-1][0] < 60 * minutes):
                time.sleep(EVERY)
                megabytes = resident(process.pid)
                if megabytes is not None and any(out.glob("checkpoints/step-*")):
                    began = time.monotonic() if began is None else began
                    samples.append((time.monotonic() - began, megabytes))
                    look(*samples[-1])
        finally:
            process.terminate()
            process.wait()
    if process.returncode != 128 + signal.SIGTERM or len(samples) < 8:  # it saves, and says so
        raise SelectError(f"the soak did not come to its end: {log.read_text()[-500:]}")
    return {"steps": runs.keeper(out).steps()[-1], **judged(samples)}


def judged(samples: list[tuple[float, float]]) -> dict[str, Any]:
    """Medians of the second and the last quarter of (seconds, megabytes); the first warms up."""
    quarter = len(samples) // 4
    early = statistics.median(megabytes for _, megabytes in samples[quarter : 2 * quarter])
    late = statistics.median(megabytes for _, megabytes in samples[-quarter:])
    slope = statistics.linear_regression(*zip(*samples[quarter:], strict=True)).slope
    return {
        "minutes": round((samples[-1][0] - samples[0][0]) / 60, 1),
        "samples": len(samples),
        "early_megabytes": round(early, 1),
        "late_megabytes": round(late, 1),
        "most_megabytes": round(max(megabytes for _, megabytes in samples), 1),
        "megabytes_an_hour": round(3600 * slope, 1),
        "flat": late <= early * (1 + GROWTH) + NOISE,
    }


def resident(process: int) -> float | None:
    """Megabytes that a process has in memory; None when it is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(found[0]) / 1024 if found else None
