"""The benchmark of faults in small: that it finds what is wrong, and that nothing is.

The kills, full disks and rivals themselves, in processes, are slow; damaged files are not.
"""

import json
import os
import pickle
import random
import shutil
import sys
from pathlib import Path

import pytest
import tiny

from benchmarks.faults import damage, soak, tables
from benchmarks.faults.__main__ import COUNTS, FAULTS, main
from benchmarks.faults.damage import DAMAGES
from benchmarks.faults.lab import Lab, Reference, Tally
from benchmarks.faults.readers import Reader
from benchmarks.faults.subject import hashes
from selectmdp import checkpoint

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
        folder = shutil.copytree(tables.RESULTS, tmp_path / str(number))
        tables.DAMAGES[name](rng, folder)
        tables.meet(folder, tally)
    assert counts(tally) == [0, 0, 0, 0, 0], tally.notes


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
    reader.meet(run, tally)
    assert counts(tally) == [0, 0, 0, 0, 0]
    newest = damage.newest(run)
    path = newest / "policy.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    damage._forge(path, bytes(data))  # a number is another, and every hash is right
    reader.meet(run, tally)
    assert tally.loaded_corrupt == 2  # the run, and its checkpoint


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


def test_memory_is_flat_where_its_second_half_has_little_more_than_the_first() -> None:
    flat = [(float(second), 400.0 + second % 3) for second in range(100)]
    assert soak.judged(flat)["flat"]
    growing = [(float(second), 400.0 + second) for second in range(100)]
    told = soak.judged(growing)
    assert (told["early_megabytes"], told["late_megabytes"], told["flat"]) == (437.0, 487.0, False)


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
