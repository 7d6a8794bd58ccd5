"""Several devices and several processes make the run that one would: updates, resume, files."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import tiny

import selectmdp as sm
from selectmdp import devices, processes, worlds
from selectmdp.cli import main
from selectmdp.devices import ALONE, Shares
from selectmdp.learners.base import check_shares
from selectmdp.spec import SelectError

HERE = Path(__file__).parent
FINAL = "checkpoints/step-000000000640/training.safetensors"
SMALL = ["--num-items", "6", "--num-select", "2", "--set", "channels=8", "num_envs=8", "rollout=4"]
SMALL += ["minibatch=16", "chunk=64", "--evaluations", "2", "--episodes", "2"]


def environ(count: int, **more: str) -> dict[str, str]:
    flags = f"--xla_force_host_platform_device_count={count}"
    haste = {"XLA_FLAGS": flags, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    return {**os.environ, **haste, **more}


def on_devices(count: int, *what: str) -> tuple[Any, str]:
    """What a process with so many devices found, and what it said."""
    command = [sys.executable, HERE / "on_devices.py", *what]
    done = subprocess.run(command, env=environ(count), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


# One update


@pytest.mark.slow
@pytest.mark.parametrize("case", ["the paper's", "one set", "many sets", "each pick alone"])
def test_one_update_on_2_and_on_4_devices_is_that_of_one(case: str) -> None:
    for told in on_devices(4, "update", case)[0]:
        assert told["moved"] > 5e-4
        assert told["apart"] < 1e-5
        assert told["losses_apart"] < 1e-5
        assert told["same_key"]


@pytest.mark.slow
def test_several_devices_learn_what_one_learns() -> None:
    told, _ = on_devices(4, "learned", "1", "2", "4")
    means = {count: float(np.mean(shares)) for count, shares in told.items()}
    for count, shares in told.items():
        assert len(shares) == 4
        assert min(shares) > 0.98  # random: 0.3
        # Rounding parts their paths: seeds are no pairs, and a hundredth of the best is nothing.
        spread = float(np.std(shares, ddof=1) + np.std(told["1"], ddof=1))
        assert abs(means[count] - means["1"]) < max(2 * spread, 0.01)


# Shares


def test_one_device_has_all() -> None:
    key = jax.random.key(3)
    assert ALONE.of(128) == 128
    assert ALONE.own(key) is key
    assert ALONE.mean(key) is key
    assert (ALONE.keys(key, 5) == jax.random.split(key, 5)).all()


def test_devices_have_the_keys_of_one_in_order() -> None:
    """`vmap` with the name of the axis is what a device is inside."""
    key, shares = jax.random.key(3), Shares(4)
    keys = jax.vmap(lambda _: shares.keys(key, 8), axis_name=devices.AXIS)(np.arange(4))
    assert (keys.reshape(8) == jax.random.split(key, 8)).all()
    own = jax.vmap(lambda _: shares.own(key), axis_name=devices.AXIS)(np.arange(4))
    assert len({tuple(row) for row in jax.random.key_data(own).tolist()}) == 4
    means = jax.vmap(shares.mean, axis_name=devices.AXIS)(np.asarray([1.0, 2.0, 3.0, 6.0]))
    assert means.tolist() == [3.0, 3.0, 3.0, 3.0]


def test_what_cannot_be_shared_evenly_is_refused_with_a_number_that_can() -> None:
    check_shares("num_envs", 128, Shares(4))
    with pytest.raises(SelectError, match=r"num_envs=128: must be a multiple of the 3 .*=129"):
        check_shares("num_envs", 128, Shares(3))


@pytest.mark.parametrize(
    ("preset", "devices", "said"),
    [
        ("fast", 3, "num_envs=128: must be a multiple of the 3 devices"),
        ("fast", 64, "minibatch=16: must be a multiple of the 64 devices"),
        ("paper", 3, "batch_size=64: must be a multiple of the 3 devices"),
    ],
)
def test_a_run_that_devices_cannot_share_leaves_no_folder(
    preset: str, devices: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds.jax, "device_count", lambda: devices)
    with pytest.raises(SelectError, match=said):
        sm.train("circle", preset=preset, steps=100, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_device_has_the_engine_it_always_had() -> None:
    learner: Any = None
    engine = worlds.world("circle", {}).engine(learner, 0)
    assert type(engine).__name__ == "Compiled"
    assert engine.devices == 1


# Runs


@pytest.mark.slow
def test_a_run_on_4_devices_resumes_bit_for_bit_and_on_1_says_that_it_does_not(
    tmp_path: Path,
) -> None:
    on_devices(4, "broken_off", str(tmp_path))
    whole, killed, other = (tmp_path / name for name in ("whole", "killed", "other"))
    subprocess.run(["cp", "-r", killed, other], check=True)
    told, said = on_devices(4, "resumed", str(killed))
    assert told["devices"] == 4
    assert "not bit for bit" not in said
    assert (whole / FINAL).read_bytes() == (killed / FINAL).read_bytes()
    assert tiny.rows(whole) == tiny.rows(killed)
    told, said = on_devices(1, "resumed", str(other))
    assert told["devices"] == 1
    assert "not bit for bit what it would have been: devices=1 where the run has 4" in said
    assert json.loads((other / "config.json").read_text())["devices"] == 4
    policy = sm.load(killed)
    assert policy.about["devices"] == 4
    assert policy.select(np.zeros((9, 3), np.float32)).items.shape == (2,)


@pytest.mark.slow
def test_the_command_trains_on_4_devices(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "selectmdp", "train", "circle", "--steps", "20000", "--json"]
    command += ["--out", str(tmp_path / "run"), *SMALL]
    done = subprocess.run(command, env=environ(4), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "on 4 devices" in done.stderr
    told = json.loads(done.stdout)
    assert (told["devices"], told["steps"]) == (4, 20_032)


# Processes


class Pair:
    """The same command in two processes that know of each other, one device each."""

    def __init__(
        self, *arguments: str, most: int = resource.RLIM_INFINITY, second: tuple[str, ...] = ()
    ) -> None:
        """`most` bytes are what each can write into one file, as on a disk that is full; `second`
        is what is typed for the second alone."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "selectmdp", *arguments]
        names = dict(zip(processes.VARIABLES, (address, "2", ""), strict=True))
        self.both = [
            subprocess.Popen(
                [*command, *second * index],
                env=environ(1, **{**names, processes.INDEX: str(index)}),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for index in (0, 1)
        ]
        for each in self.both:  # not in a child of a fork, which JAX warns of
            resource.prlimit(each.pid, resource.RLIMIT_FSIZE, (most, most))

    def ended(self) -> list[tuple[int, str, str]]:
        """Exit code, standard output and standard error of each."""
        said = [each.communicate(timeout=900) for each in self.both]
        return [(each.returncode, *told) for each, told in zip(self.both, said, strict=True)]


@pytest.mark.slow
def test_two_processes_stopped_by_one_go_on_and_make_the_run_of_two_devices(
    tmp_path: Path,
) -> None:
    steps, final = 64 * 80, "checkpoints/step-000000005120/training.safetensors"
    run, whole = tmp_path / "run", tmp_path / "whole"
    train = ["train", "circle", *SMALL, "--steps", str(steps)]
    pair = Pair(*train, "--out", str(run))
    while not list(run.glob("checkpoints/step-*")):
        assert all(each.poll() is None for each in pair.both)
        time.sleep(0.05)
    pair.both[1].send_signal(signal.SIGTERM)
    first, second = pair.ended()
    assert first[0] == second[0] == 128 + signal.SIGTERM
    assert "all is saved" in first[2]
    assert not (run / final).exists()
    first, second = Pair("train", "--out", str(run), "--resume", "--json").ended()
    assert first[0] == second[0] == 0, first[2] + second[2]
    assert json.loads(first[1].splitlines()[-1])["devices"] == 2
    assert "resumed at step" in first[2]
    assert "isq-u" not in second[1] + second[2]
    alone = [sys.executable, "-m", "selectmdp", *train, "--out", str(whole)]
    subprocess.run(alone, env=environ(2), capture_output=True, check=True)
    assert (run / final).read_bytes() == (whole / final).read_bytes()


@pytest.mark.slow
def test_processes_that_are_asked_for_different_runs_both_refuse(tmp_path: Path) -> None:
    train = ["train", "circle", *SMALL, "--steps", "640", "--out", str(tmp_path / "run")]
    (one, _, first), (other, _, second) = Pair(*train, second=("--seed", "1")).ended()
    assert (one, other) == (2, 2)
    assert "were not asked for the same (another process tells which): give all" in first
    assert "not asked for the same (seed=1 here and None in the first): give all" in second
    assert not (tmp_path / "run").exists()


def test_a_process_whose_peer_is_gone_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a meeting hears it; else JAX itself ends the process once a heartbeat is missed."""

    def lost(*given: Any, **more: Any) -> None:
        with processes.meeting():
            raise jax.errors.JaxRuntimeError("Gloo all-reduce failed: reset by peer\nat pair.cc")

    with pytest.raises(jax.errors.JaxRuntimeError):  # alone, it is something else
        lost()
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr("selectmdp.training.train", lost)
    with pytest.raises(SystemExit, match="1"):
        main(["train", "circle"])
    assert capsys.readouterr().err == (
        "selectmdp: another process of this run ended, or cannot be reached any more (Gloo "
        "all-reduce failed: reset by peer): start all of them again, with --resume\n"
    )


@pytest.mark.slow
def test_what_the_first_process_refuses_both_refuse(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("not a run")
    for code, _, said in Pair("train", "circle", *SMALL, "--out", str(tmp_path)).ended():
        assert code == 2
        assert "exists and is not empty" in said


@pytest.mark.slow
@pytest.mark.parametrize(("most", "said"), [(3_000, "best was not written"), (20_000, "curve.png")])
def test_what_the_disk_refuses_the_first_process_both_refuse(
    tmp_path: Path, most: int, said: str
) -> None:
    train = ["train", "circle", *SMALL, "--steps", "640", "--out", str(tmp_path / "run")]
    for code, _, told in Pair(*train, most=most).ended():
        assert code == 2
        assert said in told


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"JAX_NUM_PROCESSES": "2"}, "JAX_NUM_PROCESSES without JAX_COORDINATOR_ADDRESS"),
        (
            {"JAX_COORDINATOR_ADDRESS": "127.0.0.1:1", "JAX_PROCESS_ID": "one"},
            "JAX_PROCESS_ID=one: must be a whole number",
        ),
        (
            {"JAX_COORDINATOR_ADDRESS": "127.0.0.1:1", "JAX_PROCESS_ID": "0"},
            "JAX_COORDINATOR_ADDRESS=127.0.0.1:1 JAX_PROCESS_ID=0: jax.distributed.initialize()",
        ),
    ],
)
def test_variables_that_name_no_meeting_are_refused(
    given: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for name in processes.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    jax.devices()  # too late to meet anyone
    with pytest.raises(SystemExit, match="2"):
        main(["train", "circle"])
    assert said in capsys.readouterr().err


def test_one_process_is_the_first_and_tells_itself() -> None:
    assert processes.is_first()
    assert processes.told(lambda: (1, 2)) == (1, 2)
    assert processes.copied([3], None) == [3]
    assert processes.any_of(True)
    assert not processes.any_of(False)
