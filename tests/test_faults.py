"""The benchmark of faults in small: that it finds what is wrong, and that nothing is.

The kills, full disks and rivals themselves, in processes, are slow; damaged files are not.
"""

import json
import os
import pickle
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny

from benchmarks import made_results
from benchmarks.faults import damage, disks, rivals, soak, sweeps, tables
from benchmarks.faults.__main__ import COUNTS, FAULTS, main
from benchmarks.faults.damage import DAMAGES
from benchmarks.faults.lab import Heard, Lab, Reference, Tally, heard
from benchmarks.faults.readers import READERS, Reader
from benchmarks.faults.subject import hashes
from selectmdp import checkpoint
from selectmdp.spec import SelectError

haste = tiny.haste
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(tiny.finished())


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a finished run, with a trap beside it that would tell if it was imported."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    damage.set_trap(tmp_path)
    return shutil.copytree(tiny.finished(), tmp_path / "run")


def counts(tally: Tally) -> list[int]:
    return [getattr(tally, name) for name in COUNTS]


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_refused_with_a_message_and_runs_no_code(
    reader: Reader, run: Path, tmp_path: Path, name: str
) -> None:
    rng, tally = random.Random(name), Tally(name)
    for number in range(4):
        here = shutil.copytree(run, tmp_path / str(number) / "run")
        DAMAGES[name](rng, here)
        reader.meet(here, tally)
    assert not Path(damage.MARK).exists()
    assert tally.untyped == 0, tally.notes
    assert tally.loaded_corrupt == 0 or name in damage.HARMLESS, tally.notes


@pytest.mark.parametrize("name", tables.DAMAGES)
def test_a_damaged_table_ends_no_report_without_a_message(tmp_path: Path, name: str) -> None:
    rng, tally = random.Random(name), Tally(name)
    for number in range(4):
        folder = made_results.make(tmp_path / str(number))
        tables.DAMAGES[name](rng, folder)
        tables.meet(folder, tally)
    assert counts(tally) == [0, 0, 0, 0, 0], tally.notes


def test_whole_tables_become_a_page_and_a_script_in_it_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, tally = made_results.make(tmp_path / "results"), Tally("nothing")
    assert tables.meet(folder, tally)
    assert counts(tally) == [0, 0, 0, 0, 0]
    page = tables.overview.page_of
    monkeypatch.setattr(tables.overview, "page_of", lambda told: page(told) + "<SCRIPT>")
    tables.meet(folder, tally)
    assert tally.code_run == 1


def test_the_traps_would_tell(run: Path) -> None:
    pickle.loads(pickle.dumps(damage.Bomb()))
    assert Path(damage.MARK).is_dir()
    os.rmdir(damage.MARK)
    __import__(damage.TRAP)
    assert Path(damage.MARK).is_dir()
    del sys.modules[damage.TRAP]


def test_a_whole_run_is_met_with_the_truth_and_another_runs_numbers_are_found(
    reader: Reader, run: Path
) -> None:
    tally = Tally("nothing")
    assert reader.meet(run, tally) == READERS  # none of them refuses it
    assert counts(tally) == [0, 0, 0, 0, 0]
    newest = damage.newest(run)
    path = newest / "policy.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    damage._forge(path, bytes(data))  # a number is another, and every hash is right
    reader.meet(run, tally)
    assert tally.loaded_corrupt == 2  # the run, and its checkpoint


def test_a_damaged_file_that_passes_for_whole_is_counted(
    reader: Reader, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = Tally("truncated")
    damage.truncated(random.Random(0), run)
    monkeypatch.setattr(checkpoint, "verify", lambda folder: None)
    reader.meet(run, tally)
    assert "truncated, verify: other numbers" in tally.notes
    assert tally.loaded_corrupt >= 1


def test_a_fault_that_was_not_tried_is_not_survived() -> None:
    assert not Tally("ray").is_clean
    assert Tally("ray", trials=1).is_clean
    assert not Tally("ray", trials=1, lost=1).is_clean


def test_an_error_without_a_type_is_counted(
    reader: Reader, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: Path) -> None:
        raise KeyError("meta")

    tally = Tally("broken")
    monkeypatch.setattr(checkpoint, "verify", broken)
    reader.meet(run, tally)
    assert tally.untyped == 1
    assert tally.notes == ["broken, verify: KeyError('meta')"]


def judged(run: Path, least: int, states: dict[int, dict[str, str]]) -> Tally:
    lab, tally = Lab(run.parent / "lab"), Tally("judged")
    best = run / "checkpoints" / "best"
    known = {checkpoint.manifest(best)["step"]: hashes(best)}
    lab.__dict__["references"] = {"paper": Reference(states, known, 0, 0.0, {})}
    lab.judge(tally, run, "paper", least)
    return tally


def test_the_judge_tells_what_was_lost_and_what_is_not_what_was_written(run: Path) -> None:
    states = {
        int(folder.name[5:]): hashes(folder) for folder in (run / "checkpoints").glob("step-*")
    }
    assert sorted(states) == [350, 400]
    assert counts(judged(run, 400, states)) == [0, 0, 0, 0, 0]
    other = {**states, 350: states[400]}
    assert judged(run, 400, other).loaded_corrupt == 1
    shutil.rmtree(run / "checkpoints" / "step-000000000400")
    assert judged(run, 350, states).lost == 0
    assert judged(run, 400, states).lost == 1
    shutil.rmtree(run / "checkpoints" / "best")
    lab, tally = Lab(run.parent / "lab"), Tally("judged")
    lab.__dict__["references"] = {"paper": Reference(states, {0: {}, 400: {}}, 0, 0.0, {})}
    assert lab.judge(tally, run, "paper", 350) == 350
    assert tally.lost == 1
    assert "that of step 0 was complete, now it is -1" in tally.notes[0]


class Scripted:
    """A lab in which every process ends as it is told to."""

    def __init__(self, root: Path, how: str, said: str = "") -> None:
        self.root, self.ended, self.judged = root, Heard(how, said, -1, []), 0

    def folder(self, name: str) -> Path:
        return self.root / name

    def run(self, out: Path, preset: str, plan: Any = None) -> Heard:
        return self.ended

    @contextmanager
    def started(self, out: Path, preset: str) -> Iterator[Any]:
        told = SimpleNamespace(poll=lambda seconds: True, recv=lambda: ("begun", 7))
        yield SimpleNamespace(pid=7, kill=lambda: None), told

    def judge(self, *given: Any) -> int:
        return -1

    def judge_end(self, *given: Any) -> None:
        self.judged += 1

    finish = judge_end


def test_a_first_process_that_the_second_ends_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab: Any = Scripted(tmp_path, "refused", "process 7 is training here")
    monkeypatch.setattr(rivals, "heard", lambda *given: Heard("broken", "KeyError", -1, []))
    tally = rivals.two_processes(lab, 4, 0, lambda: None)
    assert (tally.trials, tally.lost, tally.untyped) == (4, 4, 0)


def test_a_run_that_ends_on_a_small_disk_is_judged_and_is_no_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab: Any = Scripted(tmp_path, "end")
    monkeypatch.setattr(lab, "folder", lambda name: tmp_path / str(lab.judged))
    monkeypatch.setattr(disks, "small_disk", lambda place, size: nullcontext(None))
    tally = disks.full_disk(lab, 1, 0, lambda: None)
    assert (tally.trials, lab.judged) == (0, disks.TRIES)
    assert not tally.is_clean


def test_a_run_that_does_not_begin_for_a_user_without_rights_is_lost(tmp_path: Path) -> None:
    lab: Any = Scripted(tmp_path, "broken", "PermissionError")
    assert disks.read_only(lab, 1, 0, lambda: None).lost == disks.TRIES


def test_a_sweep_on_ray_that_fails_or_hangs_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **more: Any) -> None:
        raise SelectError("the sweep did not come so far")

    monkeypatch.setattr(sweeps, "find_spec", lambda name: True)
    monkeypatch.setattr(sweeps, "started", lambda *given: None)
    monkeypatch.setattr(sweeps, "_end", lambda *given: {})
    monkeypatch.setattr(sweeps, "_one", fails)
    tally = sweeps.sweep_killed(Lab(tmp_path / "lab"), 2, 0, lambda: None)
    assert (tally.trials, tally.lost) == (2, 2)


def test_memory_is_flat_where_its_second_half_has_little_more_than_the_first() -> None:
    flat = [(float(second), 400.0 + second % 3) for second in range(100)]
    assert soak.judged(flat)["flat"]
    growing = [(float(second), 400.0 + second) for second in range(100)]
    told = soak.judged(growing)
    assert (told["early_megabytes"], told["late_megabytes"], told["flat"]) == (437.0, 487.0, False)
    assert told["megabytes_an_hour"] == 3600.0


@pytest.mark.slow
def test_a_short_soak_trains_saves_and_tells_its_memory(capfd: pytest.CaptureFixture[str]) -> None:
    main(["--soak", "0.5", "--json"])  # too short to be flat: it still warms up
    told = json.loads(capfd.readouterr().out)
    assert "lost" not in told
    assert 0.5 <= told["soak"]["minutes"] < 0.7
    assert told["soak"]["steps"] > 0
    assert 100 < told["soak"]["early_megabytes"] <= told["soak"]["most_megabytes"] < 5000


@pytest.mark.slow
def test_nothing_is_lost_on_any_of_the_bad_days(capfd: pytest.CaptureFixture[str]) -> None:
    names = [name for name in FAULTS if name != "ray"]  # tests/test_on_ray.py
    assert main(["--trials", "12", "--seed", "7", "--json", "--only", *names]) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["lost"], told["loaded_corrupt"], told["untyped"], told["code_run"]) == (0, 0, 0, 0)
    kinds = {each["fault"]: each["trials"] for each in told["faults"]}
    assert kinds["kill-training"] == kinds["kill-checkpoint"] == 6
    assert set(kinds) >= {*DAMAGES, *tables.DAMAGES, "full-disk", "read-only", "two-processes"}
    assert min(kinds.values()) >= 1


def die(told: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_how_a_process_ended_is_heard_though_others_begin_meanwhile(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "lab")

    def ends(_: int) -> str:
        with lab.working(die) as (process, told):
            return heard(process, told).how

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(ends, range(200))) == {"killed"}


@pytest.mark.slow
@pytest.mark.parametrize("odd", [None, 0.5, []])
def test_no_value_of_a_config_can_be_another_without_a_message(
    reader: Reader, run: Path, tmp_path: Path, odd: Any
) -> None:
    tally = Tally("every value")
    count = len(damage.places(json.loads((run / "config.json").read_bytes())))
    assert count > 30
    for number in range(count):

        def change(content: dict[str, Any], number: int = number) -> None:
            part, key = damage.places(content)[number]
            part[key] = odd

        here = shutil.copytree(run, tmp_path / "here" / "run")
        damage.sealed(here / "config.json", change)
        reader.meet(here, tally)
        shutil.rmtree(here)
    assert tally.untyped == 0, tally.notes
