"""A host world that hangs while it is checked: the check fails in time, and says in which step."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import faulty
import numpy as np
import pytest

from selectmdp import cli
from selectmdp.check import check_select_env
from selectmdp.spec import SelectError


class HangsInReset(faulty.Sound):
    def reset(self, seed: int) -> Any:
        time.sleep(3600)


class HangsMade(faulty.Sound):
    def __init__(self) -> None:
        time.sleep(3600)


class Greedy(faulty.Sound):
    def greedy(self) -> Any:
        try:
            time.sleep(3600)
        except Exception:  # no world can hold it back
            return np.array([0, 1]), np.array([0, 0])


def test_a_step_that_hangs_fails_its_check_and_is_named(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        cli.main(["check", f"{__name__}:hangs_in_step", "--timeout", "0.2"])
    said = capsys.readouterr().out
    assert "fail  steps: step 3 of an episode hangs: no end in 0.2 seconds (timeout); mend" in said
    assert "not checked  seeds: first mend what 'steps' says" in said


def hangs_in_step() -> faulty.Hangs:
    return faulty.Hangs(after=2)


@pytest.mark.parametrize(
    ("world", "name", "said"),
    [
        (HangsInReset, "reset", "reset hangs: no end in 0.1 seconds"),
        (Greedy, "greedy", "greedy after step 0 of an episode hangs"),
    ],
)
def test_what_hangs_is_named(world: Any, name: str, said: str) -> None:
    before = signal.getsignal(signal.SIGALRM)
    (failure,) = check_select_env(world, timeout=0.1).failures
    assert failure.name == name
    assert failure.message.startswith(said)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


def test_a_world_that_is_never_made_is_told() -> None:
    with pytest.raises(SelectError, match=r"the making of the world hangs: no end in 0\.1 seconds"):
        check_select_env(HangsMade, timeout=0.1)
    with pytest.raises(SelectError, match="timeout=0: must be more than 0"):
        check_select_env(HangsMade, timeout=0)


def test_in_another_thread_there_is_no_alarm_and_the_checks_are_the_same() -> None:
    reports: list[Any] = []
    thread = threading.Thread(
        target=lambda: reports.append(check_select_env(faulty.Sound, timeout=60.0))
    )
    thread.start()
    thread.join()
    assert reports == [check_select_env(faulty.Sound, timeout=60.0)]


def test_ctrl_c_names_the_check_and_the_step() -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "selectmdp", "check", "faulty:TellsAndHangs"],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "hanging\n"
    os.kill(started.pid, signal.SIGINT)
    _, said = started.communicate(timeout=60)
    assert started.returncode == 130
    assert said == "selectmdp: stopped in check 'steps', in step 1 of an episode\n"
