"""A run's folder: its config, its checkpoints, and the policy in them.

`config.json`, `metrics.csv`, `tensorboard/`, `checkpoints/`, `curve.png`, `result.json`.
"""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax

from selectmdp import agent, checkpoint, tasks
from selectmdp.agent import Agent
from selectmdp.checkpoint import CheckpointError, Keeper
from selectmdp.config import TrainConfig, versions
from selectmdp.envs.base import offers
from selectmdp.policy import Policy
from selectmdp.runlog import write_whole
from selectmdp.sharing import PhaseMap
from selectmdp.spec import SelectError, Spec

NEEDED = ("legal_after", "sort_key")
"""What a policy may need of the world that it learned in."""


def create(folder: Path, config: TrainConfig) -> None:
    """A new folder with the config in it; one that exists is left alone."""
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise SelectError(
            f"{folder} exists: choose another --out, or go on with that run by --resume"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SelectError(f"{folder} cannot be made ({error.strerror}): choose another") from None
    content = {"config": config.to_json(), "versions": versions()}
    write_whole(folder / "config.json", (json.dumps(content, indent=2) + "\n").encode())


def config_of(folder: Path) -> TrainConfig:
    """The config of the run in a folder."""
    path = folder / "config.json"
    try:
        return TrainConfig.from_json(json.loads(path.read_text())["config"])
    except FileNotFoundError:
        raise SelectError(f"{folder} holds no run: there is no {path.name} in it") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, SelectError):
            raise
        raise SelectError(f"{path} cannot be read ({error}): train again elsewhere") from None


def is_run(path: str | Path) -> bool:
    """Whether there is a run, or a checkpoint of one, in this folder."""
    folder = Path(path)
    return (folder / "config.json").is_file() or (folder / checkpoint.MANIFEST).is_file()


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


def load(path: str | Path, env: Any = None) -> Policy:
    """The policy of a run's newest checkpoint, or of the checkpoint in this very folder.

    A world of your own that offers `legal_after` (or `sort_key`, for sorting) must be given again.
    """
    folder = Path(path)
    if not is_run(folder):
        raise SelectError(f"{folder} holds no run: give the folder that train wrote with --out")
    if not (folder / checkpoint.MANIFEST).is_file():
        folder, damaged = keeper(folder).newest_intact()
        if damaged:
            raise CheckpointError(
                f"{damaged[0]}; the newest that is whole is {folder}: load that to use it"
            )
    meta = checkpoint.manifest(folder)
    config = TrainConfig.from_json(meta["config"])
    made = agent_of(config, env if env is not None else _world(config, meta))
    like = jax.eval_shape(made.init, jax.random.key(0))
    params = checkpoint.read(folder, "policy", like)
    return Policy(made, params, tuple(meta["phase_map"]), meta)


def agent_of(config: TrainConfig, env: Any) -> Agent:
    """The agent that a config asks for."""
    settings = config.full_settings
    return agent.make(
        config.algorithm,
        env,
        channels=settings.channels,
        layers=settings.layers,
        hidden=settings.hidden,
    )


def world_of(policy: Policy, changes: dict[str, Any]) -> Any:
    """The world of a policy's run, with the options changed that are not None."""
    config = TrainConfig.from_json(policy.about["config"])
    given = {name: value for name, value in changes.items() if value is not None}
    return tasks.make(config.task, **{**config.options, **given})


def _world(config: TrainConfig, meta: dict[str, Any]) -> Any:
    """The world of a run by its name; of one that has no name, its sizes."""
    if tasks.is_known(config.task):
        return tasks.make(config.task, **config.options)
    used = [name for name in meta["needs"] if name != "sort_key" or config.algorithm == "sorting"]
    if used:
        raise SelectError(
            f"the policy needs {' and '.join(used)} of the world {config.task!r} that it learned "
            "in: load(path, env=that world)"
        )
    names = tuple(meta["command_names"]) or None
    return SimpleNamespace(spec=Spec(**meta["spec"]), command_names=names)
