"""Files written whole or not at all, read with a bound; what the disk refuses, said to a person."""

import hashlib
import json
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selectmdp.spec import PlaceFault

MOST_JSON = 1_000_000
"""Bytes of a config, a manifest or a result; ours have some thousand, a larger one is not read."""
NO_DIGEST = "0" * 64
"""Stands where a file's own hash will be while that is taken."""
MOST_TABLE = 64_000_000
"""Bytes of a table of results or metrics."""


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file under another name first, so that no reader, and no crash, sees half of it."""
    target = Path(path)
    if target.is_dir():
        raise PlaceFault(f"{target} is a folder: give the name of a file")
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.tmp")
    with told(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # else a name may reach the disk before its content
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)


def read_bounded(path: Path, most: int) -> bytes:
    """A file's bytes; a pipe or device, or more than `most`, is refused before any is read."""
    with open(path, "rb", opener=_at_once) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a plain file")
        check_size(found.st_size, most)
        return file.read(most)


def _at_once(path: str, flags: int) -> int:
    """As `os.open`, but it does not wait for somebody to write into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def check_size(size: int, most: float) -> None:
    """Raise if a file is larger than anything that is written here."""
    if size > most:
        raise ValueError(f"it has {size:,} bytes, more than the {most:,} that are ever written")


def parse_json(data: bytes) -> Any:
    """What JSON says; lists within lists without end are a `ValueError` like every other fault."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None


def sealed(content: dict[str, Any]) -> bytes:
    """JSON with its own SHA-256 in it: of all of it, with zeros in that place."""
    text = json.dumps({"sha256": NO_DIGEST, **content}, indent=2) + "\n"
    return text.replace(NO_DIGEST, hashlib.sha256(text.encode()).hexdigest(), 1).encode()


def unsealed(data: bytes) -> dict[str, Any]:
    """What sealed JSON says, if nothing in it has changed."""
    content = parse_json(data)
    if not isinstance(content, dict):
        raise ValueError("it is no object")
    digest = str(content.get("sha256"))
    rest = data.decode().replace(digest, NO_DIGEST, 1).encode()
    if hashlib.sha256(rest).hexdigest() != digest:
        raise ValueError("its SHA-256 is not the one in it")
    return content


def read_json(path: Path) -> Any:
    """A small JSON file. All faults are `ValueError` or `OSError`, for the caller to explain."""
    return parse_json(read_bounded(path, MOST_JSON))


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What the disk refuses becomes a message."""
    try:
        yield
    except OSError as error:
        raise PlaceFault(
            f"cannot write {path}: {error.strerror or error}; "
            "make room on the disk, or choose a folder that can be written"
        ) from error
