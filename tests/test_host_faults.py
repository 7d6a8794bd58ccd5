"""Worlds that break in their worker: one error that names the place, no process left, no file lost.

The processes are real. Each world is sound for a while, so that there is a checkpoint to lose.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import faulty
import jax
import numpy as np
import pytest
import tiny

import selectmdp as sm
from selectmdp import checkpoint
from selectmdp.interop.crew import Crew, Source, here
from selectmdp.interop.workers import Workers
from selectmdp.spec import PlaceFault, Spec, WorldFault
from selectmdp.types import Action

haste = tiny.haste
pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into Linux's /proc")

SPEC = Spec(4, 2, 0, 0, 2, 2)
PICKS = Action(np.tile([0, 2], (3, 1)), np.tile([1, 0], (3, 1)))


def workers(name: str, timeout: float = 60.0, **options: Any) -> Workers:
    """Three copies in two processes: one has the first, the other two."""
    return Workers(f"faulty:{name}", options, SPEC, 3, 2, timeout)


def children() -> set[int]:
    """Processes that this one started and that are there, be it as zombies."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except OSError:  # it ended while we looked
            continue
        if int(parent) == os.getpid():
            found.add(int(stat.parent.name))
    return found


@pytest.fixture(autouse=True)
def none_left() -> Any:
    before = children()
    yield
    assert children() == before


FAULTS = [
    ("Raises", r"raised ZeroDivisionError: .* \(faulty\.py, line \d+\)"),
    ("Panics", r"raised PanicException: index out of bounds \(faulty\.py, line \d+\)"),
    ("Mute", r"raised Error \(faulty\.py, line \d+\)"),
    ("Hangs", r"hangs: no end in 1 seconds \(timeout\)"),
    ("Nan", r"is wrong: items\[1, 0\] is nan"),
    ("NanReward", "is wrong: the reward is nan"),
    ("Shape", r"is wrong: items has shape \(5, 2\), the spec says \(4, 2\)"),
    ("Exits", r"ended its process \(exit code 3\)"),
    ("Killed", r"died with its process \(killed by SIGKILL\)"),
]


@pytest.mark.parametrize(("name", "said"), FAULTS)
def test_a_fault_names_the_environment_and_its_step(name: str, said: str) -> None:
    team = workers(name, timeout=1.0 if name == "Hangs" else 60.0, after=9)
    crew = Crew(team)
    seen = crew.reset(5)
    assert seen.items.shape == (3, 4, 2)
    for _ in range(9):
        crew.step(PICKS)
    with pytest.raises(WorldFault) as fault:
        crew.step(PICKS)
    # The ninth step was the second of the second episode; either process may be heard first.
    told = str(fault.value)
    number = int(told.removeprefix("environment ")[0])
    assert number in (0, 1)
    second = np.random.SeedSequence([5 + number, 1]).generate_state(1)[0]
    assert told.startswith(f"environment {number}, step 3 of the episode with seed {second}, ")
    assert re.search(said, told)


def test_a_world_that_cannot_be_made_says_so() -> None:
    with pytest.raises(WorldFault, match=r"environment \d, being made, is wrong.*no licence"):
        workers("Tired")
    with pytest.raises(WorldFault, match="there is no module 'no_such_module'"):
        Workers("no_such_module:make", {}, SPEC, 3, 2, 60.0)


@pytest.mark.parametrize(
    ("seats", "said"),
    [
        (10, r"^environment 2, being made, .*seat.* \(5 copies .*: num_envs; --set num_envs=…"),
        (7, r"^in an evaluation, environment 7, being made, .* \(8 .*: one for each episode\)"),
    ],
)
def test_where_not_all_copies_can_be_made_it_says_how_many_there_are(
    seats: int, said: str, tmp_path: Path
) -> None:
    taken: list[int] = []

    class Seats(faulty.Sound):
        def __init__(self) -> None:
            super().__init__()
            assert len(taken) < seats, "no seat is free"
            taken.append(0)

        def close(self) -> None:
            taken.pop()

    settings = {**tiny.SETTINGS, "num_envs": 5}
    how = {**tiny.RUN, "steps": 100, "evaluations": 1, "settings": settings}
    with pytest.raises(WorldFault, match=said):
        sm.train(Seats, out=tmp_path / "run", workers=0, **how)
    assert taken == []


def test_workers_play_what_this_process_plays() -> None:
    rng = np.random.default_rng(0)
    steps = [
        Action(np.stack([rng.permutation(4)[:2] for _ in range(3)]), rng.integers(2, size=(3, 2)))
        for _ in range(20)
    ]

    def played(team: Any) -> list[Any]:
        crew = Crew(team)
        told = [crew.reset(3).items, *(tuple(crew.step(action)) for action in steps)]
        crew.close()
        return told

    alone = played(here(Source.of(faulty.Sound, {}), SPEC, 3, partial_reward=False))
    spread = played(workers("Sound"))
    assert all(np.array_equal(a, b) for a, b in
               zip(jax.tree.leaves(alone), jax.tree.leaves(spread), strict=True))  # fmt: skip
    assert alone[7][3].tolist() == [True] * 3  # truncated by the time limit, and not terminated
    assert not alone[7][2].any()


def test_closing_leaves_no_process_even_where_one_hangs() -> None:
    before = children()
    team = workers("Hangs", timeout=1.0, after=1)
    crew = Crew(team)
    crew.reset(0)
    crew.step(PICKS)
    assert len(children() - before) == 2
    team._each[0].wire.sendall(b"s")  # it hangs now, and nobody waits for it
    said = r"environment 0, step 2 of the episode with seed 0, did not end: .* after 0\.2 seconds"
    with pytest.warns(UserWarning, match=said):
        team.close(grace=0.2)


@pytest.mark.parametrize(
    ("end", "closed"),
    [("", 3), ("forgets", 0), ("raises", 3), ("hangs", 0), ("dies", 1), ("lingers", 0)],
)
def test_what_environments_started_ends_with_them(end: str, closed: int, tmp_path: Path) -> None:
    """`dies`: of three copies the two of one worker cannot be closed."""
    team = workers("Simulator", timeout=1.0, after=1, end=end, book=str(tmp_path))
    crew = Crew(team)
    crew.reset(0)
    crew.step(PICKS)
    assert len([page for page in tmp_path.iterdir() if alive(int(page.name))]) == 3
    if end in ("raises", "hangs", "dies"):
        if end == "dies":
            os.kill(team._each[1].process.pid, signal.SIGKILL)
        with pytest.raises(WorldFault):
            crew.step(PICKS)
    elif end == "lingers":
        with pytest.warns(
            UserWarning, match=r"environment \d, being closed, did not end: .* 0\.5 s"
        ):
            team.close(grace=0.5)
    else:
        crew.close()
    gone({int(page.name) for page in tmp_path.iterdir()})
    assert [page.read_text() for page in tmp_path.iterdir()].count("closed -15") == closed


def test_a_worker_that_dies_is_heard_while_what_it_forked_lives_on() -> None:
    crew = Crew(workers("ForkedAndDead", after=1))
    crew.reset(0)
    crew.step(PICKS)
    with pytest.raises(WorldFault, match=r"ended its process \(exit code 3\)"):  # no "hangs"
        crew.step(PICKS)


def test_where_there_is_no_room_for_what_workers_share_the_disk_is_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full() -> Any:
        file = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115 - closed by who asked
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(PlaceFault, match=r"cannot write /.*: No space left on device; make room"):
        workers("Sound")


def test_why_a_copy_cannot_be_made_is_told_before_the_others_are_closed() -> None:
    with (
        pytest.warns(UserWarning, match="environment 0, being closed, did not end"),
        pytest.raises(WorldFault, match=r"environment 1, being made, .*no licence for a second"),
    ):
        Workers("faulty:SlowToClose", {}, SPEC, 2, 1, 60.0)


def test_a_forked_process_heeds_its_environment() -> None:
    team = workers("Forked")
    team.do(b"r")
    team.close()  # without a warning: none had to be killed


def test_a_worker_whose_fault_nobody_hears_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    team = workers("Raises", after=1)
    team.do(b"r")
    team.do(b"s")
    for worker in team._each:  # as where another worker's fault was heard first
        worker.wire.sendall(b"s")
        worker.wire.close()
    assert [worker.process.wait(60) for worker in team._each] == [0, 0]
    team.close()
    assert capfd.readouterr().err == ""


def test_a_world_that_exits_is_told_of_in_this_process_too() -> None:
    class Ends(faulty.Sound):
        def broken(self, action: Any) -> Any:
            sys.exit(3)

    said = r"environment 0, step 3 of .* raised SystemExit: 3 \(test_host_faults\.py, line \d+\)"
    with pytest.raises(WorldFault, match=said):
        sm.evaluate(Ends, episodes=1, after=2)


def test_rules_that_look_at_the_copy_that_is_played_are_told(tmp_path: Path) -> None:
    class Budget(faulty.Pairs):
        def legal_after(self, observation: Any, chosen: Any, command: Any) -> Any:
            return np.full((4, 2), self.level.sum() > 0)

    said = (
        r"`legal_after` raised AttributeError: .*'level' \(test_host_faults\.py, line \d+\): it is"
    )
    with pytest.raises(
        WorldFault, match=said + r".*its arguments must tell all \(nothing was saved"
    ):
        sm.train(Budget, out=tmp_path / "run", **{**tiny.RUN, "steps": 100})


@pytest.mark.parametrize("hang", [True, False])
def test_workers_end_with_a_process_that_is_killed(hang: bool, tmp_path: Path) -> None:
    options = {"after": 1, "end": "hangs" if hang else "forgets", "book": str(tmp_path)}
    program = (
        "import sys, time; sys.path[:] = sys.argv[1].split('|')\n"
        "from selectmdp.interop.workers import Workers\n"
        "from selectmdp.spec import Spec\n"
        f"team = Workers('faulty:Simulator', {options}, Spec(4, 2, 0, 0, 2, 2), 3, 2, 60.0)\n"
        "team.do(b'r'); team.do(b's')\n"
        f"{hang} and [worker.wire.sendall(b's') for worker in team._each]\n"
        "print(*(worker.process.pid for worker in team._each), flush=True); time.sleep(60)"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", program, "|".join(sys.path)], stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    pids = [int(pid) for pid in started.stdout.readline().split()]
    assert len(pids) == 2
    started.send_signal(signal.SIGKILL)
    started.wait()
    started.stdout.close()
    simulators = {int(page.name) for page in tmp_path.iterdir()}
    assert len(simulators) == 3
    gone({*pids, *simulators})


def gone(pids: set[int]) -> None:
    """None of them is there any more, or soon."""
    for _ in range(200):
        if not any(map(alive, pids)):
            return
        time.sleep(0.05)
    raise AssertionError(f"{pids} are still there")


def alive(pid: int) -> bool:
    """Whether a process runs; an orphan's corpse is init's."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("name", ["Raises", "Hangs", "Nan", "Shape", "Killed"])
def test_a_training_on_a_world_that_breaks_keeps_its_last_checkpoint(
    name: str, tmp_path: Path
) -> None:
    out, settings = tmp_path / "run", {**tiny.SETTINGS, "num_envs": 2}
    how = {**tiny.RUN, "steps": 200, "evaluations": 1, "settings": settings}
    with pytest.raises(WorldFault, match=r"environment 0, step \d of the episode") as fault:
        sm.train(f"faulty:{name}", out=out, after=60, timeout=2.0, workers=1, **how)
    kept = out / "checkpoints" / "step-000000000100"
    assert f"(the last good checkpoint is {kept})" in str(fault.value)
    assert int(checkpoint.manifest(kept)["step"]) == 100
    assert sm.load(out).select(np.ones((4, 2))).items.shape == (2,)
    assert not (out / "result.json").exists()


@pytest.mark.slow
def test_a_signal_for_the_whole_group_is_heeded_by_the_training_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    program = "from selectmdp.cli import main; main()"
    arguments = ["train", "faulty:Sound", "--preset", "paper", "--steps", "100000000"]
    started = subprocess.Popen(
        [sys.executable, "-c", program, *arguments, "--out", str(out), "--workers", "2"],
        cwd=Path(__file__).parent,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(1200):
        if (out / "metrics.csv").exists():
            break
        time.sleep(0.1)
    os.killpg(started.pid, signal.SIGINT)
    _, said = started.communicate(timeout=120)
    assert started.returncode == 130
    assert "all is saved" in said
    assert f"selectmdp train faulty:Sound --out {out} --resume" in said
    assert "environment" not in said
