"""A run's folder: its config, its checkpoints, and the policy in them.

`config.json`, `metrics.csv`, `tensorboard/`, `checkpoints/`, `curve.png`, `result.json`.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax

from selectmdp import agent, checkpoint, worlds
from selectmdp.agent import Agent
from selectmdp.checkpoint import CheckpointError, Keeper
from selectmdp.config import TrainConfig, differences, versions
from selectmdp.envs.base import offers
from selectmdp.evaluation import check_world
from selectmdp.files import write_whole
from selectmdp.learners.base import Learner
from selectmdp.learners.presets import preset
from selectmdp.policy import Policy
from selectmdp.sharing import PhaseMap
from selectmdp.spec import SelectError, Spec

CONFIG = "config.json"
NEEDED = ("legal_after", "sort_key")
"""What a policy may need of the world that it learned in."""


def claim(folder: Path) -> bool:
    """An empty folder, and whether it had to be made; one with something in it is left alone."""
    new = make_folder(folder)
    if any(folder.iterdir()):
        raise SelectError(
            f"{folder} exists and is not empty: choose another --out, or go on with the run in it "
            "by --resume"
        )
    return new


def make_folder(folder: Path) -> bool:
    """A folder that is there and can be read, and whether it had to be made."""
    try:
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        any(folder.iterdir())
    except FileExistsError:
        raise SelectError(f"{folder} is a file: choose another --out") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SelectError(f"{folder} cannot be made ({reason}): choose another --out") from None
    return new


def create(folder: Path, config: TrainConfig, spec: Spec) -> None:
    """A run's first file: its config."""
    content = {"config": config.to_json(), "spec": asdict(spec), "versions": versions()}
    write_whole(folder / CONFIG, (json.dumps(content, indent=2) + "\n").encode())


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """While this process trains in a folder no other may; a killed one leaves nothing behind."""
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
            raise SelectError(
                f"{folder}: another process is training here; wait for it, or stop it"
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(held)


def config_of(folder: Path) -> tuple[TrainConfig, Spec]:
    """The config of the run in a folder, and the sizes of its world."""
    path = folder / CONFIG
    try:
        content = json.loads(path.read_bytes())
        return TrainConfig.from_json(content["config"]), Spec(**content["spec"])
    except FileNotFoundError:
        raise SelectError(f"{folder} holds no run: there is no {CONFIG} in it") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SelectError(f"{path} cannot be read ({error}): train again elsewhere") from None


def is_run(path: str | Path) -> bool:
    """Whether there is a run, or a checkpoint of one, in this folder."""
    folder = Path(path)
    return (folder / CONFIG).is_file() or (folder / checkpoint.MANIFEST).is_file()


def keeper(folder: Path) -> Keeper:
    """The checkpoints of the run in a folder."""
    return Keeper(folder / "checkpoints")


def policy_meta(
    config: TrainConfig, env: Any, step: int, phase_map: PhaseMap, seconds: float
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
    }


def meta_of(folder: Path) -> tuple[TrainConfig, dict[str, Any]]:
    """The config in a checkpoint's manifest, and all that the manifest tells."""
    meta = checkpoint.manifest(folder)
    try:
        config = TrainConfig.from_json(meta["config"])
        if len(meta["phase_map"]) != Spec(**meta["spec"]).num_select:
            raise SelectError("phase_map and num_select do not fit")
    except (ValueError, KeyError, TypeError) as error:
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
    folder = Path(path)
    if not is_run(folder):
        raise SelectError(f"{folder} holds no run: give the folder that train wrote with --out")
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


def world_of(policy: Policy, changes: dict[str, Any]) -> worlds.World:
    """The world of a policy's run, with the options changed that are not None."""
    config = TrainConfig.from_json(policy.about["config"])
    if not worlds.has_name(config.task):
        raise SelectError(
            f"the run's world {config.task!r} has no name here: evaluate it in Python, by "
            "evaluate(world, load(path))"
        )
    given = {name: value for name, value in changes.items() if value is not None}
    return worlds.world(config.task, {**config.options, **given})


def _given(env: Any, meta: dict[str, Any]) -> Any:
    """A world that was given, if it has the sizes of the run's."""
    check_world(env)
    told = differences(meta["spec"], asdict(env.spec))
    if told:
        raise SelectError(
            f"env is not the world of the run: {'; '.join(told)}. Give that to load; the policy "
            "then plays in others too, by evaluate(other, policy)"
        )
    return env


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
