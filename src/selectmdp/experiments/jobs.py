"""A run as a job: its name, the command that anybody would type for it, and whether it is done.

One description serves every engine: the processes of this machine, and a cluster's.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from selectmdp import runs
from selectmdp.config import TrainConfig, differences
from selectmdp.files import read_json
from selectmdp.spec import PlaceFault, SelectError
from selectmdp.tasks import told_items


class Job(NamedTuple):
    """A training to be made."""

    name: str
    """Of its folder; no two jobs have the same."""
    config: TrainConfig

    def command(self, folder: Path) -> list[str]:
        """What a person would type after `selectmdp`; a run that was begun goes on."""
        if runs.is_run(folder):
            return ["train", "--out", str(folder), "--resume", "--json"]
        return [*arguments(self.config), "--out", str(folder), "--json"]


class Failed(NamedTuple):
    """A run that did not come to its end."""

    job: Job
    told: str
    """Why, in a line."""
    lasting: bool = False
    """Its values are at fault: tried again, it would fail again."""


def again(failed: Sequence[Failed]) -> SelectError:
    """What to tell of runs that failed."""
    told = "; ".join(each.told for each in failed)
    return SelectError(f"{told}. The same command tries these again")


VARIED = ("preset", "steps", "evaluations", "episodes")
"""What a name tells of a run only where its runs differ in it."""


def jobs_of(configs: Sequence[TrainConfig]) -> tuple[Job, ...]:
    """A job for each config, named after what it is and in what it differs from the others.

    The same config twice is one job. Where a name does not tell two apart, their fingerprints do,
    so that no name depends on the order of the configs.
    """
    varied = [name for name in VARIED if len({getattr(config, name) for config in configs}) > 1]
    named: dict[str, Job] = {}
    for config in configs:
        more = [f"{name}={getattr(config, name)}" for name in varied]
        named[fingerprint(config)] = Job("-".join([name_of(config), *more]), config)
    often = Counter(job.name for job in named.values())
    return tuple(
        job if often[job.name] == 1 else job._replace(name=f"{job.name}-{mark}")
        for mark, job in named.items()
    )


MOST_NAME = 150
"""Bytes of a name before what jobs differ in; a file system takes 255 of all."""


def name_of(config: TrainConfig) -> str:
    """Task, sizes, algorithm, changed settings and seed: fit for a folder.

    One that would be too long for that ends in a fingerprint instead.
    """
    short = {"num_items": "N", "num_context": "U", "num_select": "K", "commands": "C"}
    parts = [config.task]
    for name, value in config.options.items():
        told = len(value) if name == "commands" else told_items(value)
        parts.append(f"{short.get(name, name + '=')}{told}")
    parts.append(config.algorithm)
    parts += [f"{name}={value}" for name, value in config.settings.items()]
    name = "-".join([*parts, f"seed{config.seed}"]).replace("/", "_")
    if len(name.encode()) <= MOST_NAME:
        return name
    return f"{name.encode()[:MOST_NAME].decode(errors='ignore')}-{fingerprint(config)}"


def fingerprint(config: TrainConfig) -> str:
    """Short for all that a run depends on, the preset's defaults too."""
    told = json.dumps(config.to_json(), sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def arguments(config: TrainConfig) -> list[str]:
    """What a person would type after `selectmdp` to train by this config."""
    typed = ["train", config.task]
    for name, value in config.options.items():
        values = value if name == "commands" else (told_items(value),)
        typed += [f"--{name.replace('_', '-')}", *map(str, values)]
    for name in ("algorithm", "preset", "steps", "seed", "evaluations", "episodes"):
        typed += [f"--{name}", str(getattr(config, name))]
    for name, value in config.settings.items():
        typed += ["--set", f"{name}={_typed(value)}"]
    return typed


def finished(job: Job, folder: Path) -> Mapping[str, Any] | None:
    """The result of a run that came to its end; a folder with another run in it is refused."""
    if not runs.is_run(folder):
        return None
    try:
        kept, _ = runs.config_of(folder)
    except PlaceFault:
        return None  # the process that goes on with it says what is wrong
    told = differences(asdict(kept), asdict(job.config))
    if told:
        raise SelectError(f"{folder} holds another run: {'; '.join(told)}. Choose another --out")
    path = folder / "result.json"
    if not path.is_file():
        return None
    try:
        result = read_json(path)
    except (OSError, ValueError):
        return None  # the run goes on from its last checkpoint and writes it again
    return result if _is_whole(result) else None


NEEDED = {
    *("mean_reward", "ci95", "references", "num_items", "num_context", "num_select"),
    *("num_commands", "dynamics", "unit", "evaluation_steps", "seconds", "cores", "megabytes"),
}
"""What is kept of a result: one without it is damaged."""


def _is_whole(result: Any) -> bool:
    """Whether all is there that is kept, and numbers are what they should be."""
    if not isinstance(result, dict) or not result.keys() >= NEEDED:
        return False
    references = result["references"]
    if not isinstance(references, dict):
        return False
    others = [told.get("mean_reward") for told in references.values() if isinstance(told, dict)]
    # Of one episode there is no interval, and a reference may earn without bound.
    optional = [number for number in (result["ci95"], *others) if number is not None]
    numbers = (result["mean_reward"], result["seconds"], *optional)
    return len(others) == len(references) and all(map(_is_finite, numbers))


def _is_finite(number: Any) -> bool:
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return is_number and math.isfinite(number)


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
