"""Files on a disk that may be full, read-only, damaged, or left as a crash left them."""

import errno
import hashlib
import math
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from selectmdp.files import check_size
from selectmdp.spec import PlaceFault

WRITING, REPLACED = ".writing-", ".replaced-"


class CheckpointError(PlaceFault):
    """A checkpoint that cannot be written or believed; the message names the file and the fix."""


def draft_of(folder: Path) -> Path:
    """A name beside a folder for what is not to be seen under its own."""
    return folder.parent / f"{WRITING}{secrets.token_hex(8)}"


def replaced_by(folder: Path) -> Path:
    """Where what had a folder's name stays until the new one has it."""
    return folder.parent / f"{REPLACED}{folder.name}"


def write(path: Path, parts: list[Any]) -> dict[str, Any]:
    """Bring a file to the disk; its entry in the manifest."""
    digest, size = hashlib.sha256(), 0
    with open(path, "xb") as file:
        for part in parts:
            file.write(part)
            digest.update(part)
            size += len(part)
        file.flush()
        os.fsync(file.fileno())
    return {"sha256": digest.hexdigest(), "bytes": size}


def sync(folder: Path) -> None:
    """Bring a folder's names to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def reading(
    path: Path, size: int | None = None, most: float = math.inf
) -> Iterator[BufferedReader]:
    """A file to read. Whatever is wrong with it comes out as the one error that says what to do.

    One that has another size than expected, or more than `most`, is not read at all.
    """
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a plain file")
        if size not in (None, found.st_size):
            raise ValueError(f"it has {found.st_size} bytes, the manifest says {size}")
        check_size(found.st_size, most)
        with open(path, "rb") as file:
            yield file
    except Exception as error:
        fault = f"is damaged: {error}"
        if isinstance(error, OSError):
            fault = f"cannot be read: {error.strerror or error}"
        older = f"resume from an older checkpoint in {path.parent.parent}, or train again"
        raise CheckpointError(f"{path} {fault}; {older}") from error


def check_digest(found: str, wanted: str) -> None:
    """Raise if two hashes are not the same."""
    if found != wanted:
        raise ValueError("its SHA-256 is not the one in the manifest")


def refused(folder: Path, error: OSError) -> CheckpointError:
    """What to tell when the disk did not take a checkpoint."""
    reason, cure = f"{error.strerror or error}", "make it a folder you can write to"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):  # the last: a limit of its size
        reason, cure = f"disk full ({reason})", "free space"
    return CheckpointError(
        f"{folder} was not written: {reason}; {cure} or choose another --out "
        "(earlier checkpoints are untouched)"
    )


def tidy(root: Path) -> None:
    """Put right what a crash has left."""
    for replaced in root.glob(f"{REPLACED}*"):
        settle(replaced)
    for leftover in root.glob(f"{WRITING}*"):
        remove(leftover)


def settle(replaced: Path) -> None:
    """Take a replaced checkpoint back if its place is empty, else let it go."""
    place = replaced.parent / replaced.name.removeprefix(REPLACED)
    if os.path.lexists(place):
        remove(replaced)
    else:
        with suppress(OSError):
            os.rename(replaced, place)


def discard(folder: Path) -> None:
    """Remove a checkpoint so that no half of it is ever seen under its name."""
    leaving = draft_of(folder)
    try:
        os.rename(folder, leaving)
    except OSError as error:
        raise CheckpointError(
            f"{folder} cannot be removed: {error.strerror}; make {folder.parent} a folder you can "
            "write to, then go on by --resume"
        ) from error
    remove(leaving)


def remove(path: Path) -> None:
    """Remove a folder or a file as well as possible; the next write tries again."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
