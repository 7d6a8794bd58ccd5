"""Files that are written whole or not at all, and what the disk refuses, said to a person."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selectmdp.spec import SelectError


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file under another name first, so that no reader sees half of it."""
    target = Path(path)
    if target.is_dir():
        raise SelectError(f"{target} is a folder: give the name of a file")
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.tmp")
    with told(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_bytes(data)
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What the disk refuses becomes a message."""
    try:
        yield
    except OSError as error:
        raise SelectError(
            f"cannot write {path}: {error.strerror or error}; "
            "make room on the disk, or choose a folder that can be written"
        ) from error
