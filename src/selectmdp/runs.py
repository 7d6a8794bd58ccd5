"""A run's folder: its config, its checkpoints, and the policy in them.

`config.json`, `metrics.csv`, `tensorboard/`, `checkpoints/`, `curve.png`, `result.json`.
"""

import math
import os
import re
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax

from selectmdp import agent, checkpoint, worlds
from selectmdp.agent import Agent
from selectmdp.checkpoint import CheckpointError, Keeper
from selectmdp.config import TrainConfig, check_sizes, differences, versions
from selectmdp.envs.base import is_numpy, offers
from selectmdp.evaluation import check_world
from selectmdp.factories import is_factory
from selectmdp.files import (
    MOST_JSON,
    read_bounded,
    sealed,
    unsealed,
    write_whole,
)
from selectmdp.learners.base import Learner
from selectmdp.learners.presets import preset
from selectmdp.policy import Policy
from selectmdp.settings import Hosting
from selectmdp.sharing import PhaseMap
from selectmdp.spec import PlaceFault, SelectError, Spec, check_count

CONFIG = "config.json"
HOLDER = ".process"
"""Which process trains here: its id and machine. The lock counts, this only tells whose it is."""
MOST_HOLDER = 300
"""Bytes of it."""
LEFTOVER = r"\.process|\.(config\.json|\.process)\.[0-9a-f]{12}\.tmp"
"""What a process leaves that was killed before its run had a config."""
NEEDED = ("legal_after", "sort_key")
"""What a policy may need of the world that it learned in."""


def check_empty(folder: Path) -> None:
    """A folder with something in it is left alone; a run killed before its config is nothing."""
    if any(not re.fullmatch(LEFTOVER, path.name) for path in folder.iterdir()):
        raise PlaceFault(
            f"{folder} exists and is not empty: choose another --out, or go on with the run in it "
            "by --resume"
        )


def make_folder(folder: Path) -> bool:
    """A folder that is there and can be read, and whether it had to be made."""
    try:
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        any(folder.iterdir())
    except FileExistsError:
        raise PlaceFault(f"{folder} is a file: choose another --out") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PlaceFault(f"{folder} cannot be made ({reason}): choose another --out") from None
    return new


def create(folder: Path, config: TrainConfig, spec: Spec, devices: int = 1) -> None:
    """A run's first file: its config, and with what it began."""
    content = {
        "config": config.to_json(),
        "spec": asdict(spec),
        "versions": versions(),
        "devices": devices,
    }
    write_whole(folder / CONFIG, sealed(content))


def check_links(folder: Path) -> None:
    """A run that goes on writes into its own folders alone, wherever it came from."""
    for path in (folder / "checkpoints", folder / "tensorboard"):
        if path.is_symlink():
            raise PlaceFault(f"{path} is a link: put the folder itself there, then resume")


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """While this process works in a folder no other may; the lock of a killed one is gone too."""
    try:
        import fcntl
    except ImportError:  # Windows: there is no lock
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlaceFault(
                f"{folder}: {_holder(folder)} is training here; wait for it, or stop it"
            ) from None
        except OSError:  # a file system without locks
            pass
        write_whole(folder / HOLDER, f"{os.getpid()} {socket.gethostname()}\n".encode())
        try:
            yield
        finally:
            with suppress(OSError):
                (folder / HOLDER).unlink()
    finally:
        os.close(held)


def _holder(folder: Path) -> str:
    """Who has the lock, as far as it told."""
    with suppress(OSError, ValueError):
        text = read_bounded(folder / HOLDER, MOST_HOLDER).decode()
        number, _, machine = text.strip().partition(" ")
        here = machine == socket.gethostname()
        return f"process {int(number)}" + ("" if here else f" on {machine!r}")
    return "another process"


def config_of(folder: Path, content: Any = None) -> tuple[TrainConfig, Spec]:
    """The config of the run in a folder, and the sizes of its world; of `content` if it is read."""
    told = content_of(folder) if content is None else content
    try:
        config, spec = TrainConfig.from_json(told["config"]), Spec(**told["spec"])
        check_sizes(config, spec)
        return config, spec
    except (ValueError, KeyError, TypeError) as error:
        raise _unread(folder, error) from None


def content_of(folder: Path) -> Any:
    """What the config's file in a folder holds."""
    try:
        return unsealed(read_bounded(folder / CONFIG, MOST_JSON))
    except FileNotFoundError:
        raise PlaceFault(f"{folder} holds no run: there is no {CONFIG} in it") from None
    except (OSError, ValueError) as error:
        raise _unread(folder, error) from None


def _unread(folder: Path, error: Exception) -> PlaceFault:
    return PlaceFault(f"{folder / CONFIG} cannot be read ({error}): train again elsewhere")


def is_run(path: str | Path) -> bool:
    """Whether there is a run, or a checkpoint of one, in this folder."""
    folder = Path(path)
    return (folder / CONFIG).is_file() or (folder / checkpoint.MANIFEST).is_file()


def keeper(folder: Path) -> Keeper:
    """The checkpoints of the run in a folder."""
    return Keeper(folder / "checkpoints")


def policy_meta(
    config: TrainConfig,
    env: Any,
    step: int,
    phase_map: PhaseMap,
    seconds: float,
    devices: int = 1,
) -> dict[str, Any]:
    """What a manifest tells beside the numbers."""
    return {
        "step": step,
        "seconds": seconds,
        "config": config.to_json(),
        "spec": asdict(env.spec),
        "phase_map": list(phase_map),
        "command_names": list(offers(env, "command_names") or ()),
        "needs": [name for name in NEEDED if offers(env, name) is not None],
        "versions": versions(),
        "devices": devices,
    }


def meta_of(folder: Path) -> tuple[TrainConfig, dict[str, Any]]:
    """The config in a checkpoint's manifest, and all that the manifest tells."""
    meta = checkpoint.manifest(folder)
    try:
        config, spec = TrainConfig.from_json(meta["config"]), Spec(**meta["spec"])
        check_sizes(config, spec)
        sets = [check_count("phase_map", each) for each in meta["phase_map"]]
        if len(sets) != spec.num_select or max(sets) >= spec.num_select:
            raise SelectError("phase_map and num_select do not fit")
        for name in ("command_names", "needs"):
            if not all(isinstance(text, str) for text in [*meta[name]]):
                raise SelectError(f"{name}={meta[name]!r}: must be names")
        check_count("step", meta["step"])
        for number in (meta["seconds"], meta.get("best") or 0.0):
            if not math.isfinite(number):
                raise SelectError(f"{number} is not finite")
        if not isinstance(meta["versions"], dict):
            raise SelectError("versions must be an object")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{folder / checkpoint.MANIFEST} is whole but not of a training run ({error}): "
            "give a folder that train wrote"
        ) from None
    return config, meta


def load(path: str | Path, env: Any = None) -> Policy:
    """The policy of a run's newest checkpoint, or of the checkpoint in this very folder.

    A world of your own that offers `legal_after` (or `sort_key`, for sorting) must be given again.
    """
    folder = checkpoint_of(path)
    config, meta = meta_of(folder)
    made = agent_of(config, _world(config, meta) if env is None else _given(env, meta))
    like = jax.eval_shape(made.init, jax.random.key(0))
    params = checkpoint.read(folder, "policy", like)
    return Policy(made, params, tuple(meta["phase_map"]), meta)


def checkpoint_of(path: str | Path) -> Path:
    """Where the newest checkpoint of a run lies, or the checkpoint in this very folder."""
    if not isinstance(path, str | os.PathLike) or not is_run(Path(path)):
        raise SelectError(f"{path} holds no run: give the folder that train wrote with --out")
    folder = Path(path)
    if not (folder / checkpoint.MANIFEST).is_file():
        folder, damaged = keeper(folder).newest_intact()
        if damaged:
            raise CheckpointError(
                f"{damaged[0]}; the newest that is whole is {folder}: load that to use it"
            )
    return folder


def agent_of(config: TrainConfig, env: Any) -> Agent:
    """The agent that a config asks for."""
    return agent.make(config.algorithm, env, shape=config.full_settings.shape)


def learner_of(config: TrainConfig, env: Any) -> Learner:
    """The learner that a config asks for; one that the world cannot serve is refused."""
    made: Learner = preset(config.preset).learner(
        agent_of(config, env), config.full_settings, config.steps
    )
    return made


def played(
    path: str | Path,
    changes: dict[str, Any],
    task: str | None = None,
    hosting: Hosting = Hosting(),  # noqa: B008 - it does not change
) -> tuple[Policy, worlds.World]:
    """The policy of a run, and the world to play it in, as `world_of` has it.

    The run's own world, where a person names it, also serves what the policy needs of it.
    """
    config, _ = meta_of(checkpoint_of(path))
    named = None
    if task is not None and task == config.task:
        named = worlds.world(task, config.options, hosting).env
    policy = load(path, named)
    return policy, world_of(policy, changes, task, hosting)


def world_of(
    policy: Policy,
    changes: dict[str, Any],
    task: str | None = None,
    hosting: Hosting = Hosting(),  # noqa: B008 - it does not change
) -> worlds.World:
    """The world of a policy's run, with the options changed that are not None.

    A person may name the `task`; where the run's own is code of theirs, they must.
    """
    config = TrainConfig.from_json(policy.about["config"])
    given = {name: value for name, value in changes.items() if value is not None}
    if task is not None and task != config.task:
        return worlds.world(task, given, hosting)
    if task is None and not worlds.has_name(config.task):
        how = "in Python, evaluate(world, load(path))"
        if is_factory(config.task):
            how = f"--world {shlex.quote(config.task)}"
        raise SelectError(
            f"the run's world {config.task!r} is code of its own, which no file may start: name "
            f"it, {how}"
        )
    return worlds.world(config.task, {**config.options, **given}, hosting)


def _given(env: Any, meta: dict[str, Any]) -> Any:
    """A world that was given, if it has the sizes of the run's."""
    check_world(env)
    told = differences(asdict(Spec(**meta["spec"])), asdict(env.spec))
    if told:
        raise SelectError(
            f"env is not the world of the run: {'; '.join(told)}. Give that to load; the policy "
            "then plays in others too, by evaluate(other, policy)"
        )
    if not is_numpy(env):
        return env
    from selectmdp.interop.host import HostEnv

    return HostEnv(env)


def _world(config: TrainConfig, meta: dict[str, Any]) -> Any:
    """What a policy needs of its run's world: sizes, which the manifest tells, or more."""
    used = [name for name in meta["needs"] if name != "sort_key" or config.algorithm == "sorting"]
    if not used:
        names = tuple(meta["command_names"]) or None
        return SimpleNamespace(spec=Spec(**meta["spec"]), command_names=names)
    if worlds.has_name(config.task):
        return worlds.world(config.task, config.options).env
    raise SelectError(
        f"the policy needs {' and '.join(used)} of the world {config.task!r} that it learned "
        "in: load(path, env=that world)"
    )
