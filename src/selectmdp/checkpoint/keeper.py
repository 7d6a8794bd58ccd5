"""The checkpoints of one run: which are kept, which is the newest that can be believed."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selectmdp.checkpoint import disk, folders
from selectmdp.checkpoint.disk import CheckpointError
from selectmdp.spec import SelectError, check_count


class Keeper:
    """The checkpoints of one run: the newest `keep` of `step-…`, and `best`. One process writes."""

    def __init__(self, root: Path, keep: int = 2) -> None:
        self.root, self.keep = root, check_count("keep", keep)
        if keep < 1:
            raise SelectError(f"keep={keep}: must be at least 1")

    def write(self, step: int, trees: Mapping[str, Any], meta: Mapping[str, Any]) -> Path:
        """Save a step, unless it is there intact, and let go of the older ones."""
        folder = self._folder(check_count("step", step))
        disk.tidy(self.root)
        if self._fault(step):
            folders.put(folder, trees, meta)
        for later in [other for other in self.steps() if other > step]:
            if self._fault(later):  # it would count as one of those to keep
                disk.discard(self._folder(later))
        for old in self.steps()[: -self.keep]:
            if old != step:
                disk.discard(self._folder(old))
        return folder

    def write_best(self, trees: Mapping[str, Any], meta: Mapping[str, Any]) -> Path:
        """Save as `best`; the one before goes when the new one is in its place."""
        disk.tidy(self.root)
        folders.put(self.root / "best", trees, meta)
        return self.root / "best"

    def steps(self) -> list[int]:
        """The steps there are checkpoints of, intact or not, in order."""
        try:
            names = [path.name for path in self.root.iterdir() if path.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CheckpointError(f"{self.root} cannot be read: {error.strerror}") from error
        return sorted(int(name[5:]) for name in names if re.fullmatch("step-[0-9]{12}", name))

    def newest(self) -> Path:
        """The checkpoint of the last step."""
        steps = self.steps()
        if not steps:
            raise CheckpointError(f"no checkpoint in {self.root}: train first, or name another run")
        return self._folder(steps[-1])

    def newest_intact(self) -> tuple[Path, list[str]]:
        """The newest checkpoint without a fault, and what is wrong with those after it."""
        faults: list[str] = []
        for step in reversed(self.steps()):
            fault = self._fault(step)
            if not fault:
                return self._folder(step), faults
            faults.append(fault)
        if not faults:
            self.newest()  # says that there is none at all
        raise CheckpointError(f"no intact checkpoint in {self.root}: {'; '.join(faults)}")

    def _fault(self, step: int) -> str | None:
        """What is wrong with the checkpoint of a step; another's under its name is none."""
        folder = self._folder(step)
        if folder.is_symlink():
            return f"{folder} is a link: put the checkpoint itself there"
        fault = folders.fault(folder)
        if fault is None and folders.manifest(folder).get("step", step) != step:
            return f"{folder} is of another step: give it its own name again, or remove it"
        return fault

    def _folder(self, step: int) -> Path:
        return self.root / f"step-{step:012d}"
